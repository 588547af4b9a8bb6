"""How sure each shift is: standard errors, and the probability that a peak is chance."""
