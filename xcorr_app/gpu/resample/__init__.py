"""Frames moved and summed up: launches and runs of ``kernels/resample``."""
