"""``xcorr align``: `run` is the entry."""
