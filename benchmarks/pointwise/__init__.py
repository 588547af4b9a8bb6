"""``python -m benchmarks pointwise``: channel mixing and the pointwise layers of networks, beside matrix products."""
