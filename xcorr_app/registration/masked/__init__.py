"""Shifts where parts of the images do not count: `rules` says what counts."""
