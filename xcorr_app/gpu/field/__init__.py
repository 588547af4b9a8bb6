"""Smooth fields of displacements fitted to frames on a device: launches of ``kernels/field``."""
