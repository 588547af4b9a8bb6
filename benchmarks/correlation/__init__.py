"""``python -m benchmarks correlation``: the correlation kernels beside FFTs."""
