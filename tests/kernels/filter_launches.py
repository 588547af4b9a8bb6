"""Launches of filters, banks, channel mixing and moving that ship, as the launchers make them."""

import functools
import itertools

import numpy as np

from tests.kernels.sweep import possible, sweep
from xcorr_app.gpu.im2win import launches
from xcorr_app.gpu.im2win.bank import BankPart, BankProblem, pad_launch
from xcorr_app.gpu.im2win.options import ABLATION, STEPS
from xcorr_app.gpu.im2win.problem import LAYERS
from xcorr_app.gpu.im2win.tiles import TILE_DEPTHS, TILES
from xcorr_app.gpu.pointwise.blocking_options import BlockingOptions
from xcorr_app.gpu.pointwise.kernels import pointwise_launch
from xcorr_app.gpu.pointwise.problem import PointwiseProblem
from xcorr_app.gpu.resample.problem import PIXEL_TYPES, TAPS, TranslationProblem
from xcorr_app.gpu.resample.splines import READ, spline_launch
from xcorr_app.gpu.resample.translation import translation_launch
from xcorr_app.gpu.resample.warping import WarpProblem, warp_launch
from xcorr_app.gpu.stencil.cosine_series import EXACT_TOLERANCE, TOLERANCE, gaussian_series, start_table
from xcorr_app.gpu.stencil.problem import BOUNDARIES, FilterProblem
from xcorr_app.gpu.stencil.reuse import filter_launch
from xcorr_app.gpu.stencil.separable import SeparableProblem, separable_launch
from xcorr_app.gpu.stencil.sliding import SlidingPass, sliding_launch, sum_type_for

_BOTH = (False, True)
_TYPES = ("float32", "uint16")
_INTEGERS = ("uint8", "uint16", "int16")
_OF_TYPES = (("float32", "float32"), ("uint8", "uint8"), ("int16", "float32"))
"""Types of images and results."""


def _filter(shape, types=("float32", "float32"), image=(1024, 1024, 64), kernel=(), boundary="reflect", **options):
    """One filter: its shape, the types of images and results, rows, columns and number of images."""
    problem = FilterProblem(image[:2], shape, image[2], boundary)
    return filter_launch(problem, *kernel, image_type=types[0], result_type=types[1], **options)


def _square(side, element, clips=False, width=1024):
    return _filter((side, side), (element, element), (1024, width, 64), clips=clips)


def _shaped(shape, element, width_and_count):
    boundary = "reflect" if element == "float32" else "constant"
    return _filter(shape, (element, element), (1024, *width_and_count), boundary=boundary)


def _summed(side):
    options = {"types": ("uint16", "uint16"), "double_sums": True}
    return [_filter((side, side), **options), _filter((side, side), ("uint16", "float32"))]


def _exchange(side, tuning):
    return _filter((side, side), image=(1024, 1024, 1), kernel=("exchange",), tuning=tuning)


def _exchanged(shape, element):
    return _filter(shape, (element, element), (1024, 1024, 1), ("exchange",), "constant")


_TUNINGS = ("COLUMN_REUSE", "ROW_REUSE", "SHARED_TAPS", "SHARED_LAST", "EDGES_APART")
_SHAPES = [(1, 63), (2, 63), (13, 13), (15, 15), (9, 18), (7, 7), (8, 8), (6, 21), (21, 21), (25, 17), (63, 62)]


def _separable(shape, types, terms=1, boundary="reflect", image=(1024, 1024, 64), **options):
    problem = SeparableProblem(image[:2], shape, image[2], boundary, terms=terms)
    return separable_launch(problem, image_type=types[0], result_type=types[1], **options)


def _gaussian(taps, element, terms):
    return _separable((taps, taps), (element, element), terms, clips=terms > 1)


def _constant_outside(shape, terms, types):
    return _separable(shape, types, terms, "constant")


_SEPARABLE_SHAPES = [(1, 1), (5, 129), (9, 9), (14, 14), (18, 18), (34, 34), (68, 68), (129, 129), (128, 6)]


def _sliding(types, boundary="reflect", sum_for=None):
    """One pass over 64 images, in the sums for results of a type."""
    sums = sum_type_for(sum_for or types[1])
    series = gaussian_series(64.0, EXACT_TOLERANCE if sums == "double" else TOLERANCE)
    table = start_table(series, 1024, 1024, boundary)
    how = {"image_type": types[0], "result_type": types[1], "sum_type": sums}
    return sliding_launch(SlidingPass((1024, 1024), 64, boundary), series, table, 1024, **how)


def _layer(layer):
    """The kernels of a layer, with the tile that is chosen."""
    kinds = [make(layer, implicit=each) for make in (launches.basic_launch, launches.convolve_launch) for each in _BOTH]
    return [launches.transform_launch(layer), *kinds]


def _tile(tile):
    """A tile with every depth, and with a window tensor."""
    convolve, defines = launches.convolve_launch, tile.defines()
    depths = [convolve(LAYERS[8], implicit=True, tuning={**defines, "TILE_K": depth}) for depth in TILE_DEPTHS]
    return [*depths, convolve(LAYERS[8], tuning=defines)]


def _step(options, implicit):
    return launches.convolve_launch(LAYERS[8], implicit=implicit, tuning=options.tuning())


def _padding(boundary, element="float32"):
    return pad_launch(BankProblem(1, 3, 64, 64, 16, 5, 5, boundary), BankPart(0, 1, 0, 60), image_type=element)


_PLANES = 2048 * 2048


def _mixing(channels, filters, types=("float32", "float32"), interleaved=False, alignment=None, **options):
    """A product over planes, or over interleaved pixels."""
    outer, inner = (_PLANES, 1) if interleaved else (16, _PLANES)
    how = {} if alignment is None else {"alignment": alignment}
    return pointwise_launch(PointwiseProblem(outer, channels, filters, inner, *types, **options), **how)


def _unmixing(channels):
    counted = [_mixing(channels, channels, ("uint16", "uint16"), count=count) for count in _BOTH]
    return [_mixing(channels, channels), *counted]


def _types_of_mixing(channels, types):
    ways = ({"count": True, "clip": True}, {"density": True}, {"interleaved": True, "count": True})
    return [_mixing(*channels, types, **way) for way in ways]


def _unaligned(channels, element, interleaved):
    return _mixing(*channels, (element, element), interleaved, 4)


def _rounded(image, result):
    types = (image, result)
    aligned = [_mixing(17, 9, types, alignment=each, count=True, clip=True) for each in (8, 16)]
    return [_mixing(32, 32, types, count=True), *aligned]


POINTWISE_LAYERS = (
    (32, 64, 112),
    (64, 128, 56),
    (512, 512, 14),
    (1024, 1024, 7),
    (96, 24, 56),
    (144, 32, 28),
    (320, 1280, 7),
)
"""Channels, filters and side of pointwise layers: both layouts, large and small planes, odd ones."""


def _blocking(layer, images=32, **options):
    channels, filters, side = layer
    return pointwise_launch(PointwiseProblem(images, channels, filters, side * side), "blocking", **options)


def _blocks(images, channels, filters, inner, types=("float32", "float32"), tuning=None, **options):
    return pointwise_launch(
        PointwiseProblem(images, channels, filters, inner, *types, **options), "blocking", tuning=tuning
    )


def _tuned(options, types):
    return _blocks(10**5, 24, 40, 1, types, options.tuning(), count=True)


_BLOCKINGS = (
    BlockingOptions(staging="registers"),
    *(BlockingOptions(warps=warps, staging=staging) for warps in (1, 2, 8) for staging in ("async", "registers")),
    *(BlockingOptions(channel_count=count, blocks=1, staging="registers") for count in (1, 8, 32)),
)
"""Constants of the planner other than those published."""
_MIXED = (("uint8", "uint8"), ("int16", "int16"), ("uint8", "float32"), ("uint16", "float32"))
_CHANNELS = ((1, 1), (1, 32), (32, 1), (5, 7), (9, 24), (31, 17), (32, 32))


def _translation(dtype, method, shape=(512, 512), count=512, counts=True, **options):
    return translation_launch(TranslationProblem(shape, count, dtype, method, counts=counts), **options)


def _small(dtype, method):
    odd = _translation(dtype, method, (511, 513))
    off = _translation(dtype, method, (33, 18), 1, alignment=np.dtype(dtype).itemsize)
    return [_translation(dtype, method), odd, off]


def _warp(dtype, method, grid, shape=(512, 512)):
    return warp_launch(WarpProblem(shape, 64, dtype, method, grid))


_GRIDS = (None, (9, 9))
_FRAMES = ("uint8", "uint16", "float32")

OF_FILTERS = [
    # Gaussians of 1, 2, 4 and 8 px, and differences of two.
    *sweep(_gaussian, (9, 17, 33, 65), _TYPES, (1, 2)),
    # Unmixing of 2 to 32 channels, counted and not, and stains of colour images.
    *sweep(_unmixing, (2, 3, 4, 8, 16, 32)),
    *(_mixing(32, 24, ("uint8", "uint8"), count=count) for count in _BOTH),
    _mixing(32, 32, ("uint16", "float32")),
    _mixing(3, 3, ("uint8", "float32"), interleaved=True, density=True),
    _mixing(3, 3, ("uint16", "uint16"), interleaved=True, count=True),
    _mixing(8, 8, interleaved=True),
    *sweep(_blocking, POINTWISE_LAYERS),
    # Both passes of sliding sums.
    *sweep(_sliding, [("float32", "float32"), ("uint8", "float32"), ("float32", "uint8"), ("float32", "uint16")]),
    _sliding(("uint16", "float32"), sum_for="uint16"),
    # Camera frames moved by every method, counted or not.
    *(_translation(dtype, method, counts=counts) for dtype in _FRAMES for method in TAPS for counts in _BOTH),
    *sweep(_warp, _FRAMES, ("linear", "cubic"), _GRIDS),
    *sweep(functools.partial(spline_launch, (512, 512), 64), _FRAMES),
    # The twelve layers and the padding of banks.
    *sweep(_layer, LAYERS.values()),
    launches.add_segments_launch(LAYERS[12].filters * LAYERS[12].columns, 2),
    _padding("reflect"),
    # Rolling sums from small to the largest that registers hold, loops for the rest.
    *sweep(_square, (1, 3, 5, 7, 9, 11, 13, 15, 31, 63), _TYPES, _BOTH),
    *(_filter((side, side), kernel=("exchange",)) for side in (3, 5, 7, 11, 31, 63)),
]
OTHERS_OF_FILTERS = [
    launches.add_segments_launch(1, 2),
    *sweep(_tile, TILES),
    *sweep(_step, (*STEPS.values(), *ABLATION.values()), _BOTH),
    *sweep(_padding, ("mirror", "nearest", "wrap", "constant", "valid")),
    *sweep(_padding, ("reflect",), _INTEGERS),
    # Flat and tall filters, other types and boundaries, and every step of the ablation.
    *sweep(_shaped, _SHAPES, ("float32", "float64", "uint8", "int16"), ((1024, 64), (1003, 64), (512, 1))),
    *sweep(_square, range(2, 10), ("float32", *_INTEGERS), (True,), (1024, 1003)),
    *(_filter((side, side), image=(1024, 1024, 16)) for side in (17, 20, 48)),
    *sweep(_summed, (3, 9, 31)),
    *sweep(_exchange, (3, 5, 31), ({"WARPS": 8}, *({name: 0} for name in _TUNINGS))),
    *sweep(_exchanged, [(1, 63), (48, 1), (48, 63), (2, 7), (9, 4)], ("float64", "uint8", "int16")),
    # Channels and filters of any number, planes that allow no vectors, arrays off a boundary, densities.
    *sweep(_types_of_mixing, _CHANNELS, _MIXED),
    *sweep(_unaligned, _CHANNELS, _TYPES, _BOTH),
    *sweep(_rounded, _INTEGERS, _INTEGERS),
    *sweep(_blocking, POINTWISE_LAYERS, (1, 128)),
    *(_blocks(1, 64, 40, _PLANES, types, count=True, clip=True) for types in (_MIXED[0], _MIXED[3])),
    _blocks(1, 64, 64, _PLANES // 16, density=True),
    _blocks(10**5, 64, 64, 1),
    # No tiles of so many filters may fit.
    *itertools.chain(
        *(sweep(possible(functools.partial(_blocking, tuning=each.tuning())), POINTWISE_LAYERS) for each in _BLOCKINGS)
    ),
    *sweep(_tuned, _BLOCKINGS, (_MIXED[0], _MIXED[3])),
    # Every tile at the most rolling sums that it takes, all types, narrow images, and a constant outside.
    *sweep(_constant_outside, _SEPARABLE_SHAPES, (1, 2), _OF_TYPES),
    *sweep(_separable, [(taps, taps) for taps in (12, 18, 24, 34, 48, 65, 68, 96, 129)], _OF_TYPES),
    *(
        _separable(shape, ("float64", "float64"), terms, image=(1024, 1024, 1))
        for shape in [(3, 3), (17, 17), (34, 9), (68, 129)]
        for terms in (1, 2)
    ),
    *(_separable((9, 9), ("uint8", "int16"), image=(1024, width, 1)) for width in (64, 32)),
    # Sliding sums at every boundary, and the first pass of every type.
    *sweep(_sliding, [("float32", "float32"), ("float32", "int16")], BOUNDARIES[:-1]),
    *sweep(_sliding, [(each, "float32") for each in ("float32", "uint8", "int16")], BOUNDARIES[:-1], ("int16",)),
    # Widths and addresses that allow no vectors, small frames.
    *(spline_launch((511, 513), 64, dtype) for dtype in READ),
    *sweep(_small, PIXEL_TYPES, TAPS),
    *sweep(_warp, PIXEL_TYPES, ("nearest", "linear", "cubic"), _GRIDS, ((511, 513),)),
]
