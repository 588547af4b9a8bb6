"""Measuring all frames of a stack against one kind of reference."""
