"""Every launch of the tensor-core kernels that ships."""

from __future__ import annotations

from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.gpu.tensor.hankel import hankel_launch
from xcorr_app.gpu.tensor.hankel_frames import frames_launch

OLDEST = {
    "tensor/hankel": 80,
    "tensor/to_fp16": 80,
    "tensor/to_fp16_hankel": 80,
    "tensor/sum_frames": 80,
}
"""Architectures from which on a kernel does anything."""
_DEVICE = DeviceLimits(132, 227 * 1024)
_SIDES = (1, 17, 32, 33, 48, 64)
_TYPES = ("float32", "uint8", "uint16", "int16")


def _window(size, rows, columns, rights=8):
    shape = (size, size)
    return Problem(shape, shape, (0, 0), (rows, columns), rights=rights, rights_per_left=rights)


def _launches(problem, **options):
    chosen = hankel_launch(problem, device=_DEVICE, **options)
    return [chosen.launch, *([chosen.convert] if chosen.convert else [])]


def _of_frames(problem, **options):
    chosen = frames_launch(problem, device=_DEVICE, **options)
    return [chosen.expand, chosen.products, chosen.sums]


def launches_of_hankel():
    """The windows of the benchmarks, of the two common types."""
    for kind in ("float32", "uint16"):
        for size, side in ((512, 32), (512, 33), (64, 33), (32, 63), (1024, 64)):
            yield from _launches(_window(size, side, side), right_type=kind)
            yield from _launches(_window(size, side, side), right_type=kind, warpgroup=True)
            yield from _of_frames(_window(size, side, side), right_type=kind)
        yield from _launches(_window(64, 33, 33, 1), left_type=kind, right_type=kind)
    yield from _launches(_window(512, 33, 33), split=2)


def other_launches_of_hankel():
    """Every tile, with the types in turn, both orders and both precisions."""
    for i, rows in enumerate(_SIDES):
        for j, columns in enumerate(_SIDES):
            kind = _TYPES[(i + j) % 4]
            for size in (100, 500):
                problem = _window(size, rows, columns)
                yield from _launches(problem, right_type=kind, warpgroup=True)
                yield from _launches(problem, right_type=kind)
                yield from _launches(problem, right_type=kind, split=2)
            lefts = Problem((500, 500), (500, 500), (0, 0), (rows, columns), lefts=8)
            yield from _launches(lefts, left_type=kind, warpgroup=True)
            yield from _launches(lefts, left_type=kind)
            yield from _of_frames(_window(500, rows, columns), right_type=kind)
            yield from _of_frames(lefts, left_type=kind)
            yield from _launches(_window(100, rows, columns, 1), left_type=kind)
