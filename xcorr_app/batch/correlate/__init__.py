"""``xcorr correlate``: `plan` checks, `run` computes."""
