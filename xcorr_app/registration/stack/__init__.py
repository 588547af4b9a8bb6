"""Frames of a stack: where they come from, how they are read, and what is compared of them."""
