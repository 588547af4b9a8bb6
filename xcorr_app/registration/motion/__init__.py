"""Frames that turn, change their size or shear: `models` is the table of what they may do."""
