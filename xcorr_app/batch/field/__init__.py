"""``xcorr field``: `run` is the entry."""
