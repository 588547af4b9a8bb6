"""Launches of the kernels for small matrices: they are compiled for the sizes, so these stand for all."""

from __future__ import annotations

from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.gpu.tensor.small_hankel import small_hankel_launch
from xcorr_app.gpu.tensor.small_planes import small_planes_launch

_DEVICE = DeviceLimits(132, 227 * 1024)
_SIZES = (16, 24, 32, 48, 64)
_REACHES = (4, 8, 16, 24, 31, 47, 63)
_TYPES = ("float32", "uint8", "uint16", "int16")


def _launch(problem, kind):
    launch = small_hankel_launch(problem, left_type=kind, right_type=kind, device=_DEVICE)
    return [launch] if launch else []


def _planes(problem, kind, *splits):
    options = {"left_type": kind, "right_type": kind, "device": _DEVICE}
    launches = [small_planes_launch(problem, split=split, **options) for split in splits or (1, 2)]
    return [launch for launch in launches if launch]


def _window(size, reach, **counts):
    return Problem((size, size), (size, size), (-reach, -reach), (2 * reach + 1, 2 * reach + 1), **counts)


_ALL = {"lefts": 40, "rights": 40, "rights_per_left": 40}
"""So many pairs that rights share a block."""


def launches_of_small_hankel():
    """The windows of the benchmarks, of the two common types."""
    for kind in ("float32", "uint16"):
        for size, reach in ((64, 16), (64, 8), (32, 31), (16, 15)):
            yield from _launch(_window(size, reach), kind)


def other_launches_of_small_hankel():
    """Every tile of square windows, the types in turn, and sizes off every tile."""
    for i, size in enumerate(_SIZES):
        for j, reach in enumerate(_REACHES):
            yield from _launch(_window(size, reach), _TYPES[(i + j) % 4])
    yield from _launch(Problem((63, 61), (57, 62), (-9, -33), (20, 70)), "float32")
    yield from _launch(Problem((5, 64), (64, 7), (-63, -6), (68, 70)), "uint8")


def launches_of_small_planes():
    """Full planes and a window, of the two common types."""
    for kind in ("float32", "uint16"):
        for size, reach in ((64, 63), (64, 16), (32, 31), (16, 15)):
            yield from _planes(_window(size, reach), kind)
            yield from _planes(_window(size, reach, **_ALL), kind)


def other_launches_of_small_planes():
    """As for the peaks."""
    for i, size in enumerate(_SIZES):
        for j, reach in enumerate(_REACHES):
            yield from _planes(_window(size, reach), _TYPES[(i + j) % 4])
            yield from _planes(_window(size, reach, **_ALL), _TYPES[(i + j + 1) % 4], 1 + j % 2)
    yield from _planes(Problem((63, 61), (57, 62), (-9, -33), (20, 70)), "float32")
    yield from _planes(Problem((5, 64), (64, 7), (-63, -6), (68, 70)), "uint8")
