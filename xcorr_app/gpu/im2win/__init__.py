"""Banks of filters: launches and runs of ``kernels/im2win``."""
