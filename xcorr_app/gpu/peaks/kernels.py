"""The table of the kernels on the way to peaks: summed-area tables, searches, and values around a peak."""

from __future__ import annotations

from collections.abc import Callable

from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.direct.tuning import window_tile
from xcorr_app.gpu.peaks.around_peak import around_peak_launch
from xcorr_app.gpu.peaks.common_overlap import common_overlap_launch
from xcorr_app.gpu.peaks.costs import combined_peak_cost, search_cost
from xcorr_app.gpu.peaks.frame_peaks import frame_peaks_launch, peak_places_launch
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
from xcorr_app.gpu.peaks.search import finds_peaks, peak_launch, plane_peak_launch
from xcorr_app.gpu.peaks.standard_values import image_ranges_launch, standard_values_launch
from xcorr_app.gpu.peaks.table_launches import small_table_launch, summed_area_launch
from xcorr_app.gpu.peaks.tile_scatter import tile_products_launch, tile_scatter_launch
from xcorr_app.gpu.peaks.tile_sums import tile_bins_launch, tile_levels_launch, tile_sums_launch
from xcorr_app.gpu.peaks.tile_verdict import tile_verdict_launch
from xcorr_app.gpu.peaks.zncc_planes import zncc_planes_launch
from xcorr_app.gpu.runtime.kernel_table import KernelEntry
from xcorr_app.gpu.runtime.limits import DeviceLimits


def _accepts_any(_: Problem, __: DeviceLimits) -> str | None:
    return None


def _accepts_covered(problem: Problem, _: DeviceLimits) -> str | None:
    return None if window_tile(problem) else "combined-peak is for windows that one block covers"


def _accepts_plane(problem: Problem, limits: DeviceLimits) -> str | None:
    if finds_peaks(problem.plane_shape, limits):
        return None
    return "plane-peak is for planes whose scores fit the shared memory of a block"


_NOT_IN_A_DOCUMENT: Callable[[str], str] = "Not in a document: {}".format

KERNELS: dict[str, KernelEntry[Problem]] = {
    entry.name: entry
    for entry in (
        KernelEntry(
            "combined-peak",
            ("direct/combined_peak",),
            _accepts_covered,
            peak_launch,
            combined_peak_cost,
            document=_NOT_IN_A_DOCUMENT("combined, which scores and searches its tile of shifts before it leaves"),
        ),
        KernelEntry(
            "plane-peak",
            ("peaks/plane_peak",),
            _accepts_plane,
            plane_peak_launch,
            search_cost,
            document="Lewis 1995, fast normalised cross-correlation: scores by summed-area tables, then their maximum",
        ),
        KernelEntry(
            "near-peak",
            ("peaks/near_peak",),
            _accepts_any,
            near_peak_launch,
            document=_NOT_IN_A_DOCUMENT("values around a peak recomputed in single precision"),
        ),
        KernelEntry(
            "around-peak",
            ("peaks/around_peak",),
            _accepts_any,
            around_peak_launch,
            document=_NOT_IN_A_DOCUMENT("sums around a peak by the definition, in double precision, as a check"),
        ),
        KernelEntry(
            "zncc-planes",
            ("peaks/zncc_planes",),
            _accepts_any,
            zncc_planes_launch,
            document="Lewis 1995, fast normalised cross-correlation: scores by summed-area tables",
        ),
        KernelEntry(
            "rated-peak",
            ("peaks/rated_peak",),
            _accepts_any,
            rated_peak_launch,
            document=_NOT_IN_A_DOCUMENT("the peak of a plane of scores and how far it stands above the rest"),
        ),
        KernelEntry(
            "common-overlap",
            ("peaks/common_overlap",),
            _accepts_any,
            common_overlap_launch,
            document=_NOT_IN_A_DOCUMENT("scores around a peak over one overlap"),
        ),
        KernelEntry(
            "noise-sums",
            ("peaks/noise_sums",),
            _accepts_any,
            noise_sums_launch,
            document=_NOT_IN_A_DOCUMENT("an image's products with itself, a few pixels apart"),
        ),
        KernelEntry(
            "tile-scatter",
            ("peaks/tile_scatter",),
            _accepts_any,
            tile_scatter_launch,
            document=_NOT_IN_A_DOCUMENT("the covariance of a shift, from what frame and reference do not share"),
        ),
        KernelEntry(
            "tile-products",
            ("peaks/tile_products",),
            _accepts_any,
            tile_products_launch,
            document=_NOT_IN_A_DOCUMENT("products of frame and reference on tiles"),
        ),
        KernelEntry(
            "peak-places",
            ("peaks/peak_places",),
            _accepts_any,
            peak_places_launch,
            document=_NOT_IN_A_DOCUMENT("shifts and nearest scores of records of peaks"),
        ),
        KernelEntry(
            "frame-peaks",
            ("peaks/frame_peaks",),
            _accepts_any,
            frame_peaks_launch,
            document=_NOT_IN_A_DOCUMENT("all that is said of a frame by its peak"),
        ),
        KernelEntry(
            "row-sums",
            ("peaks/row_sums",),
            _accepts_any,
            row_sums_launch,
            document=_NOT_IN_A_DOCUMENT("sums over rows of images, of values and of their squares"),
        ),
        KernelEntry(
            "reference-tiles",
            ("peaks/reference_tiles",),
            _accepts_any,
            reference_tiles_launch,
            document=_NOT_IN_A_DOCUMENT("slopes of an image on tiles, and their products"),
        ),
        KernelEntry(
            "tile-bins",
            ("peaks/tile_bins",),
            _accepts_any,
            tile_bins_launch,
            document=_NOT_IN_A_DOCUMENT("a moved image in bins of 2 x 2 pixels, of zero mean"),
        ),
        KernelEntry(
            "tile-levels",
            ("peaks/tile_levels",),
            _accepts_any,
            tile_levels_launch,
            document=_NOT_IN_A_DOCUMENT("mean, magnitude and noise of images"),
        ),
        KernelEntry(
            "tile-sums",
            ("peaks/tile_sums",),
            _accepts_any,
            tile_sums_launch,
            document="Lucas and Kanade 1981, for the displacement of a tile that its sums tell",
        ),
        KernelEntry(
            "tile-verdict",
            ("peaks/tile_verdict",),
            _accepts_any,
            tile_verdict_launch,
            document="Lucas and Kanade 1981, for the motion of a frame that its tiles tell",
        ),
        KernelEntry(
            "standing-out",
            ("peaks/outlier_pixels",),
            _accepts_any,
            outlier_pixels_launch,
            document=_NOT_IN_A_DOCUMENT("the pixel farthest beyond all eight around it"),
        ),
        KernelEntry(
            "small-steps",
            ("peaks/small_steps",),
            _accepts_any,
            small_steps_launch,
            document=_NOT_IN_A_DOCUMENT("on which side of a limit the median step between pixels lies"),
        ),
        KernelEntry(
            "stuck-lines",
            ("peaks/stuck_lines",),
            _accepts_any,
            stuck_lines_launch,
            document=_NOT_IN_A_DOCUMENT("whether a row or column lies beyond those beside it"),
        ),
        KernelEntry(
            "line-sums",
            ("peaks/line_sums",),
            _accepts_any,
            line_sums_launch,
            document="Lucas and Kanade 1981, for the displacement of odd rows",
        ),
        KernelEntry(
            "aligned-bins",
            ("peaks/aligned_bins",),
            _accepts_any,
            aligned_bins_launch,
            document=_NOT_IN_A_DOCUMENT("bins of pixels of what images show of one scene"),
        ),
        KernelEntry(
            "faded-images",
            ("peaks/faded_images",),
            _accepts_any,
            faded_images_launch,
            document="Harris 1978, windows for the discrete Fourier transform: Tukey's",
        ),
        KernelEntry(
            "aligned-products",
            ("peaks/aligned_products",),
            _accepts_any,
            aligned_products_launch,
            document=_NOT_IN_A_DOCUMENT("products of spectra that phases bring onto each other"),
        ),
        KernelEntry(
            "left-over",
            ("peaks/left_over",),
            _accepts_any,
            left_over_launch,
            document=_NOT_IN_A_DOCUMENT("what aligned images leave, by sums over frequencies"),
        ),
        KernelEntry(
            "held-pixels",
            ("peaks/held_pixels",),
            _accepts_any,
            held_pixels_launch,
            document=_NOT_IN_A_DOCUMENT("pixels of one value in all of three images"),
        ),
        KernelEntry(
            "image-ranges",
            ("peaks/image_ranges",),
            _accepts_any,
            image_ranges_launch,
            document=_NOT_IN_A_DOCUMENT("smallest and largest value and sum of images"),
        ),
        KernelEntry(
            "standard-values",
            ("peaks/standard_values",),
            _accepts_any,
            standard_values_launch,
            document=_NOT_IN_A_DOCUMENT("images of zero mean and magnitude one"),
        ),
        KernelEntry(
            "summed-area",
            ("peaks/summed_area",),
            _accepts_any,
            summed_area_launch,
            document="Crow 1984, summed-area tables (doi 10.1145/800031.808600)",
        ),
        KernelEntry(
            "small-summed-area",
            ("peaks/small_summed_area",),
            _accepts_any,
            small_table_launch,
            document="Crow 1984, summed-area tables (doi 10.1145/800031.808600), a block for every matrix",
        ),
    )
}
"""Every kernel by name; ``combined-peak`` and ``plane-peak`` compete, the others serve them and the tensor cores."""
