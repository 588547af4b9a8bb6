"""Layers, data and cuDNN of ``python -m benchmarks ablation --document im2win``."""
