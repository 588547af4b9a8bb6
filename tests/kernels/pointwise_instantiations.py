"""Launches of channel mixing that ship, as the launcher makes them: what must compile everywhere."""

from __future__ import annotations

import contextlib

from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.pointwise.blocking_options import BlockingOptions
from xcorr_app.gpu.pointwise.kernels import pointwise_launch
from xcorr_app.gpu.pointwise.problem import PointwiseProblem

BLOCKINGS = (
    BlockingOptions(staging="registers"),
    *(BlockingOptions(warps=warps, staging=staging) for warps in (1, 2, 8) for staging in ("async", "registers")),
    *(BlockingOptions(channel_count=count, blocks=1, staging="registers") for count in (1, 8, 32)),
)
"""Constants of the planner other than those published."""
_PLANES = 2048 * 2048
LAYERS = ((32, 64, 112), (64, 128, 56), (512, 512, 14), (1024, 1024, 7), (96, 24, 56), (144, 32, 28), (320, 1280, 7))
"""Channels, filters and side of pointwise layers: both layouts, large and small planes, odd ones."""


def mixing(channels, filters, image="float32", result=None, *, interleaved=False, **options):
    """A product over planes, or over interleaved pixels."""
    outer, inner = (_PLANES, 1) if interleaved else (16, _PLANES)
    return PointwiseProblem(outer, channels, filters, inner, image, result or image, **options)


def launches_of_pointwise():
    """Unmixing of 2 to 32 channels, counted and not, and stains of colour images."""
    for channels in (2, 3, 4, 8, 16, 32):
        yield pointwise_launch(mixing(channels, channels))
        for count in (False, True):
            yield pointwise_launch(mixing(channels, channels, "uint16", count=count))
    for count in (False, True):
        yield pointwise_launch(mixing(32, 24, "uint8", count=count))
    yield pointwise_launch(mixing(32, 32, "uint16", "float32"))
    yield pointwise_launch(mixing(3, 3, "uint8", "float32", interleaved=True, density=True))
    yield pointwise_launch(mixing(3, 3, "uint16", interleaved=True, count=True))
    yield pointwise_launch(mixing(8, 8, interleaved=True))
    for channels, filters, side in LAYERS:
        problem = PointwiseProblem(32, channels, filters, side * side)
        yield pointwise_launch(problem, "blocking")


def other_launches_of_pointwise():
    """Other types and numbers of channels, planes that allow no vectors, arrays off a boundary, densities."""
    for channels, filters in ((1, 1), (1, 32), (32, 1), (5, 7), (9, 24), (31, 17), (32, 32)):
        for image, result in (("uint8", "uint8"), ("int16", "int16"), ("uint8", "float32"), ("uint16", "float32")):
            yield pointwise_launch(mixing(channels, filters, image, result, count=True, clip=True))
            yield pointwise_launch(mixing(channels, filters, image, result, density=True))
            yield pointwise_launch(mixing(channels, filters, image, result, interleaved=True, count=True))
        for dtype in ("float32", "uint16"):
            yield pointwise_launch(mixing(channels, filters, dtype), alignment=4)
            yield pointwise_launch(mixing(channels, filters, dtype, interleaved=True), alignment=4)
    for image in ("uint8", "uint16", "int16"):
        for result in ("uint8", "uint16", "int16"):
            yield pointwise_launch(mixing(32, 32, image, result, count=True))
            for alignment in (8, 16):
                yield pointwise_launch(mixing(17, 9, image, result, count=True, clip=True), alignment=alignment)
    for images in (1, 128):
        for channels, filters, side in LAYERS:
            problem = PointwiseProblem(images, channels, filters, side * side)
            yield pointwise_launch(problem, "blocking")
    for image, result in (("uint8", "uint8"), ("uint16", "float32")):
        yield pointwise_launch(PointwiseProblem(1, 64, 40, _PLANES, image, result, count=True, clip=True), "blocking")
    yield pointwise_launch(PointwiseProblem(1, 64, 64, _PLANES // 16, density=True), "blocking")
    yield pointwise_launch(PointwiseProblem(10**5, 64, 64, 1), "blocking")
    for options in BLOCKINGS:
        for channels, filters, side in LAYERS:
            problem = PointwiseProblem(32, channels, filters, side * side)
            with contextlib.suppress(ArgumentError):  # no tiles of so many filters fit
                yield pointwise_launch(problem, "blocking", tuning=options.tuning())
        for image, result in (("uint8", "uint8"), ("uint16", "float32")):
            problem = PointwiseProblem(10**5, 24, 40, 1, image, result, count=True)
            yield pointwise_launch(problem, "blocking", tuning=options.tuning())
