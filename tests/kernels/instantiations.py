"""Every launch that ships, as the launchers make it from their tables: what must compile everywhere."""

from __future__ import annotations

from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.direct.kernels import KERNELS, LARGEST, STAGED
from xcorr_app.gpu.direct.options import TUNABLES, KernelOptions
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.direct.tile_launches import sum_of_segments
from xcorr_app.gpu.direct.tuning import NARROW
from xcorr_app.gpu.im2win.bank import BankPart, BankProblem, pad_launch
from xcorr_app.gpu.im2win.launches import (
    add_segments_launch,
    basic_launch,
    convolve_launch,
    filters_launch,
    transform_launch,
)
from xcorr_app.gpu.im2win.options import ABLATION, STEPS
from xcorr_app.gpu.im2win.problem import LAYERS
from xcorr_app.gpu.im2win.tiles import TILE_DEPTHS, TILES
from xcorr_app.gpu.peaks.around_peak import around_peak_launch
from xcorr_app.gpu.peaks.common_overlap import common_overlap_launch
from xcorr_app.gpu.peaks.frame_peaks import Rules, frame_peaks_launch, peak_places_launch
from xcorr_app.gpu.peaks.left_over import (
    aligned_bins_launch,
    aligned_products_launch,
    faded_images_launch,
    left_over_launch,
)
from xcorr_app.gpu.peaks.line_sums import line_sums_launch
from xcorr_app.gpu.peaks.near_peak import near_peak_launch
from xcorr_app.gpu.peaks.noise_sums import noise_sums_launch
from xcorr_app.gpu.peaks.outlier_pixels import (
    held_pixels_launch,
    outlier_pixels_launch,
    small_steps_launch,
    stuck_lines_launch,
)
from xcorr_app.gpu.peaks.rated_peak import rated_peak_launch
from xcorr_app.gpu.peaks.reference_tiles import reference_tiles_launch
from xcorr_app.gpu.peaks.row_sums import row_sums_launch
from xcorr_app.gpu.peaks.search import peak_launch, plane_peak_launch
from xcorr_app.gpu.peaks.standard_values import image_ranges_launch, standard_values_launch
from xcorr_app.gpu.peaks.table_launches import small_table_launch, summed_area_launch
from xcorr_app.gpu.peaks.tile_scatter import tile_products_launch, tile_scatter_launch
from xcorr_app.gpu.peaks.tile_sums import tile_bins_launch, tile_levels_launch, tile_sums_launch
from xcorr_app.gpu.peaks.tile_verdict import Limits, tile_verdict_launch
from xcorr_app.gpu.peaks.zncc_planes import zncc_planes_launch
from xcorr_app.gpu.runtime.launch import Launch
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.gpu.runtime.types import INPUT_TYPES
from xcorr_app.gpu.stencil.problem import FilterProblem
from xcorr_app.gpu.stencil.reuse import filter_launch
from xcorr_app.gpu.stencil.separable import SeparableProblem, separable_launch
from xcorr_app.gpu.tensor.planes import uncentre_launch

COMMON_TYPES = [("float32", "float32", "float"), ("uint16", "uint16", "float")]
"""Types of left, right and sums: read as they are, and converted on load."""
_DOUBLE = [("float32", "float32", "double"), ("float64", "float64", "double")]
OTHER_TYPES = [("float32", "uint8", "float"), ("int16", "float32", "float"), ("float32", "float32", "double")]


def window(size, most, **batch):
    """A square window of shifts up to `most`."""
    return Problem((size, size), (size, size), (-most, -most), (2 * most + 1, 2 * most + 1), **batch)


def full(size, **batch):
    """Every shift of square matrices."""
    return Problem.full_plane((size, size), (size, size), **batch)


_WINDOWS = [window(512, 3), window(512, 8), window(64, 16), window(512, 32)]
SHAPED = {
    "combined": [full(16), full(32), full(64), full(256), *_WINDOWS],
    "combined-shuffle": [full(256), full(64, lefts=9, rights=9, rights_per_left=9)],
    "row-product": [full(size, lefts=99, rights=99) for size in (16, 20, 24, 28, 32, 256)],
}
"""Problems that make the variants whose tile depends on the shape take each kind of tile."""


def launches_of_variants(types_of_sums):
    """Every variant with its table's tunables, and the launches that follow it; what a variant refuses is left out."""
    for variant in KERNELS:
        for problem in SHAPED.get(variant, [full(256)]):
            for left_type, right_type, sum_type in types_of_sums:
                types = {"left_type": left_type, "right_type": right_type, "sum_type": sum_type}
                try:
                    launch = KERNELS[variant].launch(problem, **types)
                except ArgumentError:
                    continue
                if launch.segments > 1:
                    yield sum_of_segments(launch, problem)
                yield launch
                if launch.then:
                    yield launch.then


def launches_of_peaks(types_of_sums):
    """Peaks without a plane, peaks of planes, and the rectangle sums that normalisation needs."""
    device = DeviceLimits()
    for left_type, right_type, sum_type in types_of_sums:
        if sum_type == "float":
            for most, normalize in ((3, True), (8, False), (8, True), (16, True)):
                types = {"left_type": left_type, "right_type": right_type}
                yield peak_launch(window(512, most, lefts=256), normalize=normalize, device=device, **types)
                for side in (3, 5):
                    batch = full(most * 16, lefts=9)
                    yield near_peak_launch(batch, side=side, normalize=normalize, device=device, **types)
            centred = (left_type != "float32", right_type != "float32")
            yield uncentre_launch(full(64), centred)
            for normalize in (False, True):
                yield plane_peak_launch(full(64), normalize=normalize, device=device, centred=centred)
            yield small_table_launch(right_type, 1)
            for side in (3, 15):
                yield common_overlap_launch(1, side, left_type, right_type)
            yield noise_sums_launch(1, 100, right_type)
            yield tile_products_launch(right_type, 144)
            yield tile_scatter_launch(1)
            yield tile_verdict_launch(1, Limits(0.3, 6.0, 0.02, 0.3, 0.1, 6.0, 1.0, 8, 0.9, 40.0, 1e-9, 12, 14.1))
            yield peak_places_launch(1)
            yield frame_peaks_launch(1, Rules(1e-6, 1.1, 1e-3, 2, 1e3, 1e-12, 1e12, 0.02, 1e-12, 0.04, 6))
            yield row_sums_launch(1, right_type)
            yield reference_tiles_launch(100)
            yield tile_bins_launch(1, right_type, 100)
            yield tile_sums_launch(100)
            yield tile_levels_launch(3, 1e-3)
            yield outlier_pixels_launch(right_type)
            yield image_ranges_launch(1, right_type)
            written = "float64" if sum_type == "double" else "float32"
            yield standard_values_launch(1, 100, right_type, written, 1e-15 if right_type == "uint16" else 4.8e-7)
            yield small_steps_launch(right_type, 0.08)
            yield stuck_lines_launch(right_type, 6.3)
            yield held_pixels_launch(right_type)
            yield line_sums_launch((100, 90), 49, right_type)
            yield aligned_bins_launch(5, 100, right_type, 2)
            yield rated_peak_launch(1, fisher=left_type == "float32")
            yield rated_peak_launch(1, fisher=False, rate=False)
            yield zncc_planes_launch(full(64), left_type if left_type == "float32" else "float64", "float32")
            yield around_peak_launch(1, 512)
            for width in (100, 512, 1024):
                yield summed_area_launch(right_type, 1, width, 1)
    yield faded_images_launch(5, 100, 0.15)
    yield aligned_products_launch(100, 0.3)
    yield left_over_launch(100, 0.3, 0.35, 0.04)
    for normalize in (False, True):
        yield plane_peak_launch(full(64), normalize=normalize, device=device)


def other_launches_of_peaks():
    """Neighbourhoods of peaks in matrices of every pair of types, with one to four warps a block."""
    for left_type in INPUT_TYPES:
        for right_type in INPUT_TYPES:
            for size in (32, 64, 128):
                types = {"left_type": left_type, "right_type": right_type}
                for batch in (full(size), full(size, rights=9, rights_per_left=9)):
                    yield near_peak_launch(batch, normalize=True, device=DeviceLimits(), **types)
                    for side in (3, 5):
                        how = {"side": side, "margin": 2e-3, "normalize": True}
                        yield near_peak_launch(batch, device=DeviceLimits(), **how, **types)


def narrow_launches():
    """The tile of every narrow window: its width is the window's, its height what registers allow."""
    for width in range(1, NARROW + 1):
        yield KERNELS["combined"].launch(Problem((512, 512), (512, 512), (-1, -1), (width, width), lefts=256))


def extreme_launches():
    """Every tunable that a user may set at the largest value, all of a variant's together; in double where it fits."""
    problem = full(256, lefts=16, rights=16, rights_per_left=16)
    for variant in KERNELS:
        largest = LARGEST.get(variant, {})
        names = {name: largest[macro] for name, macro in TUNABLES.items() if macro in largest}
        ways = [{"distribution": "triangle"}] if "DISTRIBUTION" in largest else [{}]
        if "PHASES" in largest:
            ways += [{"distribution": "rectangle", "phases": True}]
        for way in ways if names else ():
            options = KernelOptions(variant, **names, **way)
            for left_type, right_type, sum_type in [*COMMON_TYPES, *_DOUBLE]:
                types = {"left_type": left_type, "right_type": right_type, "sum_type": sum_type}
                try:
                    yield KERNELS[variant].launch(problem, tuning=options.tuning(), **types)
                except ArgumentError:
                    assert sum_type == "double"  # too many registers, or elements that are staged as float32


def other_launches_of_variants():
    """Elements of float64, by the tables' tunables; and one warp a block, with the most registers."""
    for variant, entry in KERNELS.items():
        if variant not in STAGED:
            problem = full(256, lefts=16, rights=16, rights_per_left=16)
            yield entry.launch(problem, left_type="float64", right_type="float64", sum_type="double")
        if {"WARPS", "PHASES"} <= entry.tunables:
            yield entry.launch(full(256, lefts=16, rights=16, rights_per_left=16), tuning={"WARPS": 1, "PHASES": 1})


def launches_of_im2win():
    """The kernels of each of the twelve layers, with the tile that is chosen, and the padding of banks."""
    for layer in LAYERS.values():
        yield from (transform_launch(layer), basic_launch(layer), basic_launch(layer, implicit=True))
        yield filters_launch(layer)
        yield from (convolve_launch(layer), convolve_launch(layer, implicit=True))
    yield add_segments_launch(LAYERS[12].filters * LAYERS[12].columns, 2)
    yield _padding("reflect", "float32")


def other_launches_of_im2win():
    """Every tile with every depth, and in turns; the ablation's steps; boundaries and types of a bank's images."""
    yield transform_launch(LAYERS[8], vector=1)
    yield add_segments_launch(1, 2)
    for tile in TILES:
        for depth in TILE_DEPTHS:
            yield convolve_launch(LAYERS[8], implicit=True, tuning={**tile.defines(), "TILE_K": depth})
        yield convolve_launch(LAYERS[8], tuning=tile.defines())
        yield convolve_launch(LAYERS[12], implicit=True, segments=5, tuning={**tile.defines(), "TILE_K": 16})
    for options in (*STEPS.values(), *ABLATION.values()):
        for implicit in (False, True):
            yield convolve_launch(LAYERS[8], implicit=implicit, tuning=options.tuning())
    for boundary in ("mirror", "nearest", "wrap", "constant", "valid"):
        yield _padding(boundary, "float32")
    for image_type in ("uint8", "uint16", "int16"):
        yield _padding("reflect", image_type)


def _padding(boundary, image_type):
    return pad_launch(BankProblem(1, 3, 64, 64, 16, 5, 5, boundary), BankPart(0, 1, 0, 60), image_type=image_type)


def launches_of_filters():
    """Every filter kernel: rolling sums from small to the largest that registers hold, loops for the rest."""
    for side in (1, 3, 5, 7, 9, 11, 13, 15, 31, 63):
        for element in ("float32", "uint16"):
            problem = FilterProblem((1024, 1024), (side, side), 64)
            for clips in (False, True):
                yield filter_launch(problem, image_type=element, result_type=element, clips=clips)
    for side in (3, 5, 7, 11, 31, 63):
        yield filter_launch(FilterProblem((1024, 1024), (side, side), 64), "exchange")


def other_launches_of_filters():
    """Other types and boundaries, flat and tall filters, and every step of the ablation."""
    shapes = [(1, 63), (2, 63), (13, 13), (15, 15), (9, 18), (7, 7), (8, 8), (6, 21), (21, 21), (25, 17), (63, 62)]
    for shape in shapes:
        for element in ("float32", "float64", "uint8", "int16"):
            for width, count in ((1024, 64), (1003, 64), (512, 1)):
                boundary = "reflect" if element == "float32" else "constant"
                problem = FilterProblem((1024, width), shape, count, boundary)
                yield filter_launch(problem, image_type=element, result_type=element)
    for side in range(2, 10):
        for element in ("float32", "uint8", "uint16", "int16"):
            for width in (1024, 1003):
                yield filter_launch(
                    FilterProblem((1024, width), (side, side), 64), image_type=element, result_type=element
                )
    for side in (17, 20, 48):
        yield filter_launch(FilterProblem((1024, 1024), (side, side), 16))
    for side in (3, 9, 31):
        problem = FilterProblem((1024, 1024), (side, side), 64)
        yield filter_launch(problem, image_type="uint16", result_type="uint16", double_sums=True)
        yield filter_launch(problem, image_type="uint16", result_type="float32")
    for side in (3, 5, 31):
        problem = FilterProblem((1024, 1024), (side, side))
        yield filter_launch(problem, "exchange", tuning={"WARPS": 8})
        for switched in ("COLUMN_REUSE", "ROW_REUSE", "SHARED_TAPS", "SHARED_LAST", "EDGES_APART"):
            yield filter_launch(problem, "exchange", tuning={switched: 0})
    for shape in [(1, 63), (48, 1), (48, 63), (2, 7), (9, 4)]:
        for element in ("float64", "uint8", "int16"):
            problem = FilterProblem((1024, 1024), shape, 1, "constant")
            yield filter_launch(problem, "exchange", image_type=element, result_type=element)


def launches_of_separable():
    """Gaussians of 1, 2, 4 and 8 px, and differences of two."""
    for taps in (9, 17, 33, 65):
        for element in ("float32", "uint16"):
            for terms in (1, 2):
                problem = SeparableProblem((1024, 1024), (taps, taps), 64, terms=terms)
                yield separable_launch(problem, image_type=element, result_type=element, clips=terms > 1)


def other_launches_of_separable():
    """Every tile at the most rolling sums that it takes, all types, narrow images, and a constant outside."""
    shapes = [(1, 1), (5, 129), (9, 9), (14, 14), (18, 18), (34, 34), (68, 68), (129, 129), (128, 6)]
    for shape in shapes:
        for terms in (1, 2):
            for element, result in (("float32", "float32"), ("uint8", "uint8"), ("int16", "float32")):
                problem = SeparableProblem((1024, 1024), shape, 64, "constant", terms=terms)
                yield separable_launch(problem, image_type=element, result_type=result)
    for taps in (12, 18, 24, 34, 48, 65, 68, 96, 129):
        for element, result in (("float32", "float32"), ("uint8", "uint8"), ("int16", "float32")):
            problem = SeparableProblem((1024, 1024), (taps, taps), count=64)
            yield separable_launch(problem, image_type=element, result_type=result)
    for shape in [(3, 3), (17, 17), (34, 9), (68, 129)]:
        for terms in (1, 2):
            problem = SeparableProblem((1024, 1024), shape, terms=terms)
            yield separable_launch(problem, image_type="float64", result_type="float64")
    for width in (64, 32):
        yield separable_launch(SeparableProblem((1024, width), (9, 9)), image_type="uint8", result_type="int16")


def distinct(launches) -> dict[str, Launch]:
    """Launches by a name that shows the instantiation; those that compile the same source are one."""
    found = {}
    for launch in launches:
        assert launch is not None
        defines = " ".join(f"{name}={value}" for name, value in sorted(launch.defines.items()))
        found[f"{launch.entry}: {defines}"] = launch
    return found
