"""The element types that kernels read, by NumPy's name and by CUDA's."""

from __future__ import annotations

__all__ = ["INPUT_TYPES"]

INPUT_TYPES = {"uint8": "unsigned char", "uint16": "unsigned short", "int16": "short", "float32": "float"}
"""NumPy name of every input type a kernel takes, and its name in CUDA C++."""
