"""Light that changes from place to place over a series."""
