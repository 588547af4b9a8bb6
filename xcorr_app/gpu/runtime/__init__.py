"""The device and how kernels get onto it: arrays, limits, memory, compilation, launches."""
