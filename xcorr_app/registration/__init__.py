"""Registration: shifts of a stack, their quality and their check, and moving frames by them."""
