"""Every launch that ships, as the launchers make it: what must compile everywhere, and what for one architecture."""

import functools
import itertools

from tests.kernels.filter_launches import OF_FILTERS, OTHERS_OF_FILTERS
from tests.kernels.sweep import possible, sweep
from xcorr_app.gpu.direct.kernels import KERNELS, LARGEST
from xcorr_app.gpu.direct.options import TUNABLES, KernelOptions
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.direct.tile_launches import sum_of_segments
from xcorr_app.gpu.direct.tuning import NARROW
from xcorr_app.gpu.peaks import left_over, outlier_pixels, tile_sums
from xcorr_app.gpu.peaks.around_peak import around_peak_launch
from xcorr_app.gpu.peaks.common_overlap import common_overlap_launch
from xcorr_app.gpu.peaks.frame_peaks import Rules, frame_peaks_launch, peak_places_launch
from xcorr_app.gpu.peaks.line_sums import line_sums_launch
from xcorr_app.gpu.peaks.near_peak import near_peak_launch
from xcorr_app.gpu.peaks.noise_sums import noise_sums_launch
from xcorr_app.gpu.peaks.rated_peak import rated_peak_launch
from xcorr_app.gpu.peaks.reference_tiles import reference_tiles_launch
from xcorr_app.gpu.peaks.row_sums import row_sums_launch
from xcorr_app.gpu.peaks.search import peak_launch, plane_peak_launch
from xcorr_app.gpu.peaks.standard_values import image_ranges_launch, standard_values_launch
from xcorr_app.gpu.peaks.summed_area import small_table_launch, summed_area_launch
from xcorr_app.gpu.peaks.tile_scatter import tile_products_launch, tile_scatter_launch
from xcorr_app.gpu.peaks.tile_verdict import Limits, tile_verdict_launch
from xcorr_app.gpu.peaks.zncc_planes import zncc_planes_launch
from xcorr_app.gpu.runtime.launch import Launch
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.gpu.runtime.types import INPUT_TYPES
from xcorr_app.gpu.tensor.hankel import hankel_launch
from xcorr_app.gpu.tensor.hankel_frames import frames_launch
from xcorr_app.gpu.tensor.planes import uncentre_launch

COMMON_TYPES = [("float32", "float32", "float"), ("uint16", "uint16", "float")]
"""Types of left, right and sums: read as they are, and converted on load."""
_OTHER_TYPES = [("float32", "uint8", "float"), ("int16", "float32", "float"), ("float32", "float32", "double")]
_ARCHITECTURE_OF_TENSORS = ("tensor/hankel", "tensor/to_fp16", "tensor/to_fp16_hankel", "tensor/sum_frames")
OLDEST = dict.fromkeys(_ARCHITECTURE_OF_TENSORS, 80)
"""Architectures from which on a kernel does anything."""
_H100 = DeviceLimits(132, 227 * 1024)


def window(size, most, **batch):
    """A square window of shifts up to `most`."""
    return Problem((size, size), (size, size), (-most, -most), (2 * most + 1, 2 * most + 1), **batch)


def full(size, **batch):
    """Every shift of square matrices."""
    return Problem.full_plane((size, size), (size, size), **batch)


_BATCH = full(256, lefts=16, rights=16, rights_per_left=16)
_SHAPED = {
    "combined": [*map(full, (16, 32, 64, 256)), window(512, 3), window(512, 8), window(64, 16), window(512, 32)],
    "combined-shuffle": [full(256), full(64, lefts=9, rights=9, rights_per_left=9)],
    "row-product": [full(size, lefts=99, rights=99) for size in (16, 20, 24, 28, 32, 256)],
}
"""Problems that make the variants whose tile depends on the shape take each kind of tile."""
_PROBLEMS = [(variant, problem) for variant in KERNELS for problem in _SHAPED.get(variant, [full(256)])]


def _planes(of, types, **options):
    """A variant with its tunables, and the launches that follow it."""
    (variant, problem), (left, right, _) = of, types
    launch = KERNELS[variant].launch(problem, left_type=left, right_type=right, **options)
    summed = [sum_of_segments(launch, problem)] if launch.segments > 1 else []
    return [*summed, launch, *([launch.then] if launch.then else [])]


def _narrow(width):
    """The tile of a narrow window: its width is the window's, its height what registers allow."""
    return KERNELS["combined"].launch(Problem((512, 512), (512, 512), (-1, -1), (width, width), lefts=256))


def _extremes():
    """Variants with every tunable that a user may set at the largest value, all of them together."""
    for variant, largest in LARGEST.items():
        names = {name: largest[macro] for name, macro in TUNABLES.items() if macro in largest}
        ways = [{"distribution": "triangle"}] if "DISTRIBUTION" in largest else [{}]
        ways += [{"distribution": "rectangle", "phases": True}] if "PHASES" in largest else []
        for way in ways if names else ():
            yield functools.partial(_planes, (variant, _BATCH), tuning=KernelOptions(variant, **names, **way).tuning())


def _peaks_of_windows(types, most_and_normalize):
    """Peaks without a plane, and the values around them."""
    (most, normalize), kinds = most_and_normalize, {"left_type": types[0], "right_type": types[1]}
    around = functools.partial(near_peak_launch, full(most * 16, lefts=9), normalize=normalize, **kinds)
    search = peak_launch(window(512, most, lefts=256), normalize=normalize, device=DeviceLimits(), **kinds)
    return [search, *(around(side=side, device=DeviceLimits()) for side in (3, 5))]


def _peaks(types):
    """Peaks of planes, and all that is said of frames and their peaks."""
    left, right, sums = types
    centred = (left != "float32", right != "float32")
    return [
        uncentre_launch(full(64), centred),
        *(plane_peak_launch(full(64), normalize=each, device=DeviceLimits(), centred=centred) for each in (0, 1)),
        small_table_launch(right, 1),
        *(common_overlap_launch(1, side, left, right) for side in (3, 15)),
        noise_sums_launch(1, 100, right),
        tile_products_launch(right, 144),
        tile_scatter_launch(1),
        tile_verdict_launch(1, Limits(0.3, 6.0, 0.02, 0.3, 0.1, 6.0, 1.0, 8, 0.9, 40.0, 1e-9, 12, 14.1)),
        peak_places_launch(1),
        frame_peaks_launch(1, Rules(1e-6, 1.1, 1e-3, 2, 1e3, 1e-12, 1e12, 0.02, 1e-12, 0.04, 6)),
        row_sums_launch(1, right),
        reference_tiles_launch(100),
        tile_sums.tile_bins_launch(1, right, 100),
        tile_sums.tile_sums_launch(100),
        tile_sums.tile_levels_launch(3, 1e-3),
        outlier_pixels.outlier_pixels_launch(right),
        outlier_pixels.small_steps_launch(right, 0.08),
        outlier_pixels.stuck_lines_launch(right, 6.3),
        outlier_pixels.held_pixels_launch(right),
        image_ranges_launch(1, right),
        standard_values_launch(
            1, 100, right, "float64" if sums == "double" else "float32", 1e-15 if right == "uint16" else 4.8e-7
        ),
        line_sums_launch((100, 90), 49, right),
        left_over.aligned_bins_launch(5, 100, right, 2),
        rated_peak_launch(1, fisher=left == "float32"),
        rated_peak_launch(1, fisher=False, rate=False),
        zncc_planes_launch(full(64), left if left == "float32" else "float64", "float32"),
        around_peak_launch(1, 512),
        *(summed_area_launch(right, 1, width, 1) for width in (100, 512, 1024)),
    ]


def _of_any_type():
    """What every run asks for, whatever the pixels."""
    return [
        left_over.faded_images_launch(5, 100, 0.15),
        left_over.aligned_products_launch(100, 0.3),
        left_over.residual_launch(100, 0.3, 0.35, 0.04),
        *(plane_peak_launch(full(64), normalize=each, device=DeviceLimits()) for each in (False, True)),
    ]


def _near(left, right, size, batch):
    """Neighbourhoods of peaks, with one to four warps a block."""
    how = {"left_type": left, "right_type": right, "normalize": True, "device": DeviceLimits()}
    sides = [near_peak_launch(full(size, **batch), side=side, margin=2e-3, **how) for side in (3, 5)]
    return [near_peak_launch(full(size, **batch), **how), *sides]


def _rights(size, rows, columns, rights=8):
    return Problem((size, size), (size, size), (0, 0), (rows, columns), rights=rights, rights_per_left=rights)


def _lefts(rows, columns):
    return Problem((500, 500), (500, 500), (0, 0), (rows, columns), lefts=8)


def _products(problem, **options):
    """The products of windows of shifts, with the conversion before them."""
    chosen = hankel_launch(problem, device=_H100, **options)
    return [chosen.launch, *([chosen.convert] if chosen.convert else [])]


def _frames(problem, **options):
    chosen = frames_launch(problem, device=_H100, **options)
    return [chosen.expand, chosen.products, chosen.sums]


def _tensors(kind, size_and_side):
    """The windows of the benchmarks."""
    size, side = size_and_side
    problem, types = _rights(size, side, side), {"right_type": kind}
    ways = [*_products(problem, **types), *_products(problem, warpgroup=True, **types), *_frames(problem, **types)]
    return [*ways, *_products(_rights(64, 33, 33, 1), left_type=kind, right_type=kind)]


def _tiles_of_tensors(rows, columns):
    """Every tile, with the types in turn, both orders and both precisions."""
    kinds = ("float32", "uint8", "uint16", "int16")
    kind = kinds[(_SIDES.index(rows) + _SIDES.index(columns)) % 4]
    lefts, alone = _lefts(rows, columns), _rights(100, rows, columns, 1)
    ways = ({"warpgroup": True}, {}, {"split": 2})
    of_rights = [_products(_rights(size, rows, columns), right_type=kind, **way) for size in (100, 500) for way in ways]
    of_lefts = [_products(lefts, left_type=kind, **way) for way in ways[:2]]
    frames = [_frames(_rights(500, rows, columns), right_type=kind), _frames(lefts, left_type=kind)]
    return itertools.chain(*of_rights, *of_lefts, *frames, _products(alone, left_type=kind))


_SIDES = (1, 17, 32, 33, 48, 64)
_BENCHMARKED = ((512, 32), (512, 33), (64, 33), (32, 63), (1024, 64))
_MOSTS = ((3, True), (8, False), (8, True), (16, True))


def distinct(*launches) -> dict[str, Launch]:
    """Launches by a name that shows the instantiation; those that compile the same source are one."""
    found = {}
    for launch in itertools.chain(*launches):
        defines = " ".join(f"{name}={value}" for name, value in sorted(launch.defines.items()))
        found[f"{launch.entry}: {defines}"] = launch
    return found


EVERYWHERE = distinct(
    sweep(possible(_planes), _PROBLEMS, COMMON_TYPES),
    sweep(_peaks_of_windows, COMMON_TYPES, _MOSTS),
    sweep(_peaks, COMMON_TYPES),
    _of_any_type(),
    sweep(_tensors, ("float32", "uint16"), _BENCHMARKED),
    _products(_rights(512, 33, 33), split=2),
    OF_FILTERS,
)
"""Compiled for all the chosen architectures."""
_OTHERS = distinct(
    sweep(possible(_planes), _PROBLEMS, _OTHER_TYPES),
    sweep(_peaks_of_windows, _OTHER_TYPES[:2], _MOSTS),
    sweep(_peaks, _OTHER_TYPES),
    sweep(_narrow, range(1, NARROW + 1)),
    *(sweep(extreme, COMMON_TYPES) for extreme in _extremes()),
    # One warp a block has the most registers.
    *(
        _planes((variant, _BATCH), COMMON_TYPES[0], tuning={"WARPS": 1, "PHASES": 1})
        for variant, entry in KERNELS.items()
        if {"WARPS", "PHASES"} <= entry.tunables
    ),
    sweep(_near, INPUT_TYPES, INPUT_TYPES, (32, 64, 128), ({}, {"rights": 9, "rights_per_left": 9})),
    sweep(_tiles_of_tensors, _SIDES, _SIDES),
    OTHERS_OF_FILTERS,
)
OTHERS = {name: launch for name, launch in _OTHERS.items() if name not in EVERYWHERE}
"""Other types, the tile of every narrow window, and tunables at their largest: compiled for one."""
