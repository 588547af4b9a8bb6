"""What callers hand in as arrays: other libraries' kinds, named axes, lazy ones."""
