"""Launches of the kernels that fit fields, as the launchers make them: what must compile everywhere."""

from __future__ import annotations

from xcorr_app.gpu.field.kernels import KERNELS
from xcorr_app.gpu.field.launches import READ
from xcorr_app.gpu.field.problem import FieldProblem


def launch(name, *sizes, **kind):
    return KERNELS[name].launch(*sizes, **kind)


def launches_of_field():
    """Tiles of both widths, both ends of a step, and camera frames under every Gaussian."""
    for columns in (32, 64):
        problem = FieldProblem((512, 512), 64, (9, 9), (10, 10), (10, 10), columns)
        for name in ("compare-frames", "alike-sums", "slope-sums", "field-levels"):
            yield launch(name, problem)
        yield launch("field-summary", 64, 100)
        yield launch("field-step", problem, 0.35)
    for name in ("linear-sums", "linear-scatter"):
        yield launch(name, (512, 512), 64)
    for side, shifts in ((32, 9), (64, 9)):
        yield launch("patch-match", 64, side, shifts)
    for field in (False, True):
        yield launch("patch-trust", 64, 64, field=field)
    for radius in (0, 3, 4, 6, 8):
        yield launch("filter-frames", (512, 512), 64, "uint16", radius, full=radius > 0, half=True, centres=radius > 0)
    yield launch("filter-frames", (512, 512), 64, "uint16", 0, half=True, centres=True)
    yield launch("filter-frames", (512, 512), 64, "uint16", 12, spline=True)


def other_launches_of_field():
    """Other types of frames, small patches, wide searches, and what is not halved."""
    for side, shifts in ((16, 15), (33, 15), (48, 21), (64, 25), (100, 9)):
        yield launch("patch-match", 64, side, shifts)
    for dtype in READ:
        for radius in (3, 8):
            yield launch("filter-frames", (512, 512), 64, dtype, radius, centres=True)
        yield launch("filter-frames", (512, 512), 64, dtype, 12, spline=True)
