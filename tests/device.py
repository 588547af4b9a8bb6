"""Tests that need a device: ``pytest -m gpu`` on a machine that has one."""

import pytest

from xcorr_app.gpu.runtime.device import cuda_status

NEEDS_DEVICE = [
    pytest.mark.gpu,
    pytest.mark.skipif(not cuda_status().available, reason=cuda_status().reason or "a device is there"),
]
"""Marks of a file of such tests."""


class OutOfMemoryError(MemoryError):
    """Stands in for CuPy's where there is no device."""

    __module__ = "cupy.cuda.memory"
