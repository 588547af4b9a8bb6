"""One model of a series: what moves and what stands still, noise of every frequency, and shifts by likelihood."""
