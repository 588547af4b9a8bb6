"""Every launch of the tensor-core kernel for bytes that ships."""

from __future__ import annotations

from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.gpu.tensor.hankel_bytes import hankel_bytes_launch

_DEVICE = DeviceLimits(132, 227 * 1024)
_SIDES = (1, 17, 32, 33, 48, 64)


def _launch(size, rows, columns, **batch):
    return hankel_bytes_launch(Problem((size, size), (size, size), (0, 0), (rows, columns), **batch), device=_DEVICE)


def launches_of_hankel_bytes():
    """The windows of the benchmarks, for many matrices, a single pair, and many over one."""
    for size, side in ((512, 32), (512, 33), (64, 33)):
        yield _launch(size, side, side, rights=8, rights_per_left=8)
        yield _launch(size, side, side)
        yield _launch(size, side, side, lefts=8)


def other_launches_of_hankel_bytes():
    """Every tile and every panel."""
    for rows in _SIDES:
        for columns in _SIDES:
            for size in (60, 120, 250, 500):
                yield _launch(size, rows, columns, rights=8, rights_per_left=8)
                yield _launch(size, rows, columns)
