"""The element types that kernels read, by NumPy's name and by CUDA's."""

from __future__ import annotations

import functools

import numpy as np

INPUT_TYPES = {"uint8": "unsigned char", "uint16": "unsigned short", "int16": "short", "float32": "float"}
"""NumPy name of every input type a kernel takes, and its name in CUDA C++."""
WITH_DOUBLE = {**INPUT_TYPES, "float64": "double"}
"""The same of kernels that sum in double precision where images are of it."""


@functools.lru_cache(maxsize=64)
def name_of(dtype: np.dtype) -> str:
    """Return NumPy's name of a type, which NumPy makes each time it is asked: that takes as long as a launch."""
    return dtype.name
