"""Launches of the kernel for few values a result that ship, as the launcher makes them: what must compile."""

from __future__ import annotations

from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.im2win.problem import LAYERS, Im2winProblem
from xcorr_app.gpu.pointwise.problem import PointwiseProblem
from xcorr_app.gpu.pointwise.shallow import shallow_launch
from xcorr_app.gpu.pointwise.shallow_plan import ShallowProblem

_CHANNELS = (16, 24, 32, 40, 48)


def _pixels(channels, filters, inner, image="float32", result=None, **options):
    problem = PointwiseProblem(32, channels, filters, inner, image, result or image, **options)
    return ShallowProblem.of_pixels(problem)


def _windows(channels, size, filter_size, stride=1):
    return ShallowProblem.of_bank(Im2winProblem(8, channels, *size, 64, *filter_size, stride))


def launches_of_shallow():
    """The seventh layer, layers of networks with few channels, unmixing of 32 channels."""
    yield shallow_launch(ShallowProblem.of_bank(LAYERS[7]))
    for channels in _CHANNELS:
        yield shallow_launch(_pixels(channels, 6 * channels, 784))
    for element in ("float32", "uint16"):
        yield shallow_launch(_pixels(32, 32, 2048 * 2048, element, count=element != "float32"))


def other_launches_of_shallow():
    """Other types, planes and arrays that allow no vectors, windows of many sizes, to the last register."""
    for channels in (1, 5, 9, *_CHANNELS, 64, 100, 150, 200):
        for inner in (784, 1250, 49):
            yield shallow_launch(_pixels(channels, 96, inner))
    for channels in (20, 48, 96):
        for image, result in (("uint8", "uint8"), ("int16", "int16"), ("uint8", "float32"), ("float32", "uint16")):
            yield shallow_launch(_pixels(channels, 40, 784, image, result, count=True, clip=True))
            yield shallow_launch(_pixels(channels, 40, 49, image, result, count=True))
            yield shallow_launch(_pixels(channels, 40, 784, image, result, density=True), alignment=4)
    for size in ((64, 64), (66, 66), (65, 65)):
        for channels in (1, 2, 3, 4, 5, 7, 9, 14, 20):
            for side in (1, 2, 3, 4, 5, 7):
                for stride in (1, 2):
                    try:
                        yield shallow_launch(_windows(channels, size, (side, side), stride))
                    except ArgumentError:
                        continue
    for tuning in ({"PIXELS_Y": 1}, {"PIXELS_X": 1, "PIXELS_Y": 8}, {"GROUP": 8, "PIXELS_Y": 2}, {"THREADS": 64}):
        yield shallow_launch(ShallowProblem.of_bank(LAYERS[7]), tuning=tuning)
