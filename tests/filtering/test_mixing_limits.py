"""Which matrices of channels a kernel takes on a device; the others are CuPy's."""

import numpy as np
import pytest

from xcorr_app.filtering.array_choice import has_kernel
from xcorr_app.gpu.pointwise.problem import MAX_ELEMENTS


@pytest.mark.parametrize(
    ("source", "target", "shape", "pixels", "expected"),
    [
        ("uint8", "uint8", (32, 32), 10**9, True),
        ("uint8", "uint8", (33, 3), 1, False),  # many channels into integers: summed in float64
        ("uint8", "float32", (33, 3), 1, True),
        ("uint8", "float32", (3, 4096), 1, True),
        ("uint8", "float32", (4097, 3), 1, False),
        ("uint8", "float32", (3, 64), MAX_ELEMENTS // 64, True),
        ("uint8", "float32", (3, 64), MAX_ELEMENTS // 64 + 1, False),  # offsets of 32 bits
        ("float64", "float32", (3, 3), 1, False),
        ("uint8", "float64", (3, 3), 1, False),
    ],
)
def test_what_a_kernel_mixes(source, target, shape, pixels, expected):
    assert has_kernel(np.dtype(source), np.dtype(target), shape, pixels) is expected
