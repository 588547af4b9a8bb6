"""``python -m benchmarks filter``: the filter kernels beside CuPy's ndimage and PyTorch's convolutions."""
