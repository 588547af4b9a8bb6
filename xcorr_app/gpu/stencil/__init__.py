"""One filter over every image: launches and runs of ``kernels/stencil``."""
