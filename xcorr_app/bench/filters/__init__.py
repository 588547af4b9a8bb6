"""``xcorr bench filter``: the filter kernels beside CuPy's ndimage and PyTorch's convolutions."""
