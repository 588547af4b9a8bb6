"""``python -m benchmarks im2win``: convolution with banks of filters beside cuDNN, on twelve layers."""
