"""Shifts where parts of the images do not count: `estimate` is the entry, `rules` says what counts."""
