"""Windows of shifts on tensor cores: launches and costs of ``kernels/tensor``."""
