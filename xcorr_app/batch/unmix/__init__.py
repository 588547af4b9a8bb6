"""``xcorr unmix``: `run` is the entry for many stacks, `stack` for one file."""
