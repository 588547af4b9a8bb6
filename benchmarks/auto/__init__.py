"""Is ``auto`` right? Random problems, every candidate timed, and how far the one choice is from the best of them."""
