"""Channels mixed pixel by pixel: planner, launches and runs of ``kernels/pointwise``."""
