"""``xcorr filter``: `run` is the entry."""
