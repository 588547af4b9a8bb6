"""Random pixels of every type."""

import numpy as np


def pixels(rng, shape, dtype, spread=100.0, mean=0.0):
    """Values over the whole range of an integer type; of others, normal ones."""
    kind = np.dtype(dtype)
    if kind.kind == "f":
        return (mean + spread * rng.standard_normal(shape)).astype(kind)
    limits = np.iinfo(kind)
    return rng.integers(limits.min, limits.max, shape, kind.newbyteorder("="), endpoint=True).astype(kind, copy=False)
