"""``xcorr apply``: `run` is the entry."""
