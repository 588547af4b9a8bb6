"""Measurements of the project beside its peers, run from a checkout: ``python -m benchmarks --help``."""
