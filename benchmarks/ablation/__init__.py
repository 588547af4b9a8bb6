"""What each of the four documents evaluates, measured on the device at hand: ``python -m benchmarks ablation``."""
