"""The CUDA device: what is there, compiled kernels, launch parameters. The only layer that knows CuPy's RawModule."""
