"""Launch parameters of separable taps on tensor cores: pure, without a device."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels.separable_definition import gaussian, random_terms
from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.runtime.launch import ceil_div
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.gpu.stencil.banded import banded_argument, banded_launch, fits_banded, is_faster_banded
from xcorr_app.gpu.stencil.separable import SeparableProblem

H200 = DeviceLimits(132, 232448)

SHAPES = [
    (1, 256, 256),
    (1, 512, 512),
    (4, 512, 512),
    (1, 1024, 1024),
    (16, 512, 512),
    (256, 128, 128),
    (1, 2048, 2048),
    (1000, 100, 130),
    (16, 1000, 1001),
    (1, 4096, 4096),
    (64, 512, 512),
    (64, 1024, 1024),
]
MEASURED = {
    (17, 17): (0.86, 0.97, 0.75, 0.78, 0.72, 0.76, 0.74, 1.34, 1.39, 0.92, 0.84, 0.94),
    (25, 25): (0.80, 0.97, 0.82, 0.81, 0.75, 0.76, 0.78, 1.22, 0.71, 0.75, 0.71, 0.81),
    (33, 33): (1.51, 1.66, 1.29, 1.33, 1.13, 1.15, 1.17, 1.59, 1.71, 1.13, 1.09, 1.10),
    (41, 41): (1.14, 1.44, 1.21, 1.23, 0.96, 0.92, 0.95, 1.02, 1.44, 0.90, 0.78, 0.97),
    (49, 49): (1.47, 1.38, 1.26, 1.23, 1.07, 1.01, 1.06, 1.11, 1.89, 1.06, 0.92, 1.13),
    (65, 65): (2.15, 1.88, 1.56, 1.54, 1.31, 1.24, 1.37, 1.69, 1.48, 1.23, 0.99, 1.21),
    (3, 65): (0.34, 0.51, 0.54, 0.54, 0.51, 0.46, 0.51, 0.75, 0.84, 0.70, 0.66, 0.80),
    (65, 3): (1.42, 1.35, 1.10, 1.08, 1.02, 1.03, 0.97, 1.11, 1.23, 0.81, 0.83, 0.86),
    (17, 33): (0.86, 1.00, 0.85, 0.86, 0.83, 0.87, 0.86, 1.11, 1.26, 0.84, 0.80, 0.90),
    (33, 17): (1.12, 1.33, 1.09, 1.13, 0.97, 0.99, 0.99, 1.32, 1.37, 0.89, 0.85, 0.95),
}
"""By taps of a column and a row, for each shape: time of `separable` over that of `banded` on an H200, whole calls; of
`banded` with those of the measured tiles and rows that are nearest to the chosen ones."""
MISJUDGED = {((25, 25), (1000, 100, 130)), ((49, 49), (64, 512, 512))}
"""A gain that is left, and a loss."""


def problem(shape=(1, 512, 512), taps=(33, 33), **options):
    count, *image_shape = shape
    return SeparableProblem(tuple(image_shape), taps, count, **options)


def rows_of(launch):
    return launch.extra[-1]


@pytest.mark.parametrize(
    ("taps", "shape", "near"),
    [
        (17, (1, 512, 512), 16),
        (17, (16, 512, 512), 64),
        (17, (64, 512, 512), 256),
        (33, (1, 1024, 1024), 32),
        (33, (1, 2048, 2048), 64),
        (33, (16, 1000, 1001), 256),
        (33, (1, 4096, 4096), 256),
        (33, (64, 512, 512), 256),
        (33, (64, 1024, 1024), 256),
        (49, (256, 128, 128), 128),
        (49, (1, 4096, 4096), 352),
        (65, (64, 1024, 1024), 352),
    ],
)
def test_rows_are_those_that_were_measured_as_best(taps, shape, near):
    launch = banded_launch(problem(shape, (taps, taps)), same_taps=True, device=H200)
    assert ceil_div(shape[1], rows_of(launch)) == ceil_div(shape[1], near)


def test_rows_follow_the_shared_memory():
    """Where it holds one block of a multiprocessor, a wave has fewer blocks, which are longer."""
    large = problem((1, 2048, 2048))
    long, short = (banded_launch(large, device=DeviceLimits(132, size * 1024)) for size in (40, 227))
    assert rows_of(long) > rows_of(short)


@pytest.mark.parametrize(
    ("taps", "shape", "narrow"),
    [
        ((33, 33), (1, 256, 256), True),
        ((33, 33), (1, 512, 512), True),
        ((33, 33), (1, 1024, 1024), True),
        ((33, 33), (1, 2048, 2048), False),
        ((49, 49), (1, 2048, 2048), True),
        ((33, 33), (1000, 100, 130), True),
        ((33, 33), (1000, 100, 200), False),
        ((33, 33), (64, 1024, 1024), False),
        ((65, 65), (1, 2048, 2048), True),
        ((65, 65), (1, 4096, 4096), False),
        ((65, 3), (1, 2048, 2048), True),
    ],
)
def test_narrow_blocks_where_wide_ones_are_few_or_reach_beyond_the_image(taps, shape, narrow):
    launch = banded_launch(problem(shape, taps), same_taps=True, device=H200)
    assert launch.defines["WARP_COLUMNS"] == (16 if narrow else 32)


@pytest.mark.parametrize("taps", [17, 33, 49, 65])
@pytest.mark.parametrize("shape", [(1, 2048, 2048), (1, 4096, 4096), (16, 512, 512), (256, 128, 128), (7, 3000, 500)])
def test_every_multiprocessor_has_blocks_and_they_do_not_begin_all_the_time(shape, taps):
    launch = banded_launch(problem(shape, (taps, taps)), same_taps=True, device=H200)
    assert launch.blocks >= 1.9 * 132
    slabs, begun = rows_of(launch) // 16, ceil_div(15 + taps, 16) - 1
    assert slabs >= begun


def test_a_small_image_is_cut_into_single_slabs():
    launch = banded_launch(problem((1, 256, 256)), same_taps=True, device=H200)
    assert (rows_of(launch), launch.blocks) == (16, 64)


@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 15, 9), (3, 100, 130), (2, 1001, 129), (5, 4000, 1)])
@pytest.mark.parametrize("processors", [1, 20, 132])
def test_blocks_cover_every_row_once(shape, processors):
    launch = banded_launch(problem(shape, (9, 5)), device=DeviceLimits(processors))
    count, height, width = shape
    assert rows_of(launch) % 16 == 0
    assert rows_of(launch) < height + 16
    columns = launch.defines["WARPS"] * launch.defines["WARP_COLUMNS"]
    assert launch.blocks == count * ceil_div(width, columns) * ceil_div(height, rows_of(launch))


def test_very_tall_images_are_planned_at_once():
    assert banded_launch(problem((1, 2**26, 4)), device=H200).blocks >= 132


def test_tuning_replaces_the_table():
    tuned = banded_launch(problem(), device=H200, tuning={"BLOCK_ROWS": 40, "WARPS": 2, "BLOCKS": 1})
    assert (rows_of(tuned), tuned.threads, tuned.defines["BLOCKS"]) == (40, 64, 1)
    assert "BLOCK_ROWS" not in tuned.defines


def test_taps_that_both_axes_share_are_kept_once():
    assert banded_launch(problem(), same_taps=True).defines["SAME_TAPS"] == 1
    assert banded_launch(problem(), same_taps=False).defines["SAME_TAPS"] == 0
    assert banded_launch(problem(taps=(33, 17)), same_taps=True).defines["SAME_TAPS"] == 0


@pytest.mark.parametrize("factor", [1.0, 1e-20, 1e20])
def test_taps_come_into_range_by_powers_of_two(factor):
    ((column, row),) = random_terms((9, 14))
    packed = banded_argument(column * factor, row, 0.25)
    for taps, brought in ((column * factor, packed["column"]), (row, packed["row"])):
        assert 8 <= np.abs(brought).max() < 16
        power = np.log2(brought[0] / np.float32(taps[0]))
        assert power == pytest.approx(round(power), abs=1e-5)
    assert packed["outside"] == 0.25
    assert 2.0 ** packed["reach"] >= np.abs(packed["row"].astype(float)).sum()


def test_what_fits():
    ((column, row),) = gaussian(4)

    def fits(column=column, row=row, image="float32", result="float32", **options):
        return fits_banded(problem(taps=(len(column), len(row)), **options), column, row, image, result)

    assert fits()
    assert fits(column=np.ones(2), row=np.ones(65))
    assert not fits(column=np.ones(1))
    assert not fits(row=np.ones(66))
    assert not fits(image="uint16")
    assert not fits(result="float64")
    assert not fits(column=np.zeros(33))
    assert not fits(column=np.full(33, np.nan))
    assert not fits(row=np.full(33, 1e308))
    assert not fits(column=column * 1e30)
    assert not fits(shape=(1, 4, 2**26))


@pytest.mark.parametrize("taps", MEASURED)
@pytest.mark.parametrize("shape", SHAPES)
def test_tensor_cores_are_taken_where_they_were_measured_to_win(taps, shape):
    gain = MEASURED[taps][SHAPES.index(shape)]
    taken = is_faster_banded(problem(shape, taps), same_taps=taps[0] == taps[1])
    right = gain > 0.98 if taken else gain < 1.06
    assert right == ((taps, shape) not in MISJUDGED)


def test_unlike_taps_that_fill_their_products_are_taken_over_few_results():
    for shape, taken in (((16, 512, 512), True), ((64, 512, 512), False)):
        assert is_faster_banded(problem(shape, (65, 65)), same_taps=False) is taken
    assert not is_faster_banded(problem((16, 512, 512), (65, 3)), same_taps=False)


def test_what_was_not_measured_is_left_to_the_other_kernel():
    """Tiny images, and taps that differ over large ones, which leave registers for few blocks."""
    assert not is_faster_banded(problem((1, 64, 64), (33, 33)), same_taps=True)
    assert not is_faster_banded(problem((64, 1024, 1024), (33, 33)), same_taps=False)
    assert not is_faster_banded(problem((100000, 16, 16), (65, 65)), same_taps=True)
    assert not is_faster_banded(problem((1, 4, 2**25 - 4), (33, 33)), same_taps=True)
    assert not is_faster_banded(problem((1, 46400, 46400), (65, 65)), same_taps=True)


def test_what_the_kernel_does_not_know_is_refused():
    with pytest.raises(ArgumentError, match="banded has no tunable WARP_COLUMN"):
        banded_launch(problem(), tuning={"WARP_COLUMN": 16})
