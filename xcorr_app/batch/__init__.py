"""A folder becomes results: every stack measured, moved, recorded and reported."""
