"""Peaks of correlations: summed-area tables, search, values around a peak; ``kernels/peaks``."""
