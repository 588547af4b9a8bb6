"""Launch parameters of separable taps on tensor cores: pure, without a device."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels.separable_definition import gaussian, random_terms
from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.runtime.launch import ceil_div
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.gpu.stencil.banded import banded_argument, banded_launch, fits_banded
from xcorr_app.gpu.stencil.separable import SeparableProblem

H200 = DeviceLimits(132, 232448)


def problem(shape=(1, 512, 512), taps=(33, 33), **options):
    count, *image_shape = shape
    return SeparableProblem(tuple(image_shape), taps, count, **options)


def rows_of(launch):
    return launch.extra[-1]


@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 15, 9), (3, 100, 130), (2, 1001, 129), (5, 4000, 1)])
@pytest.mark.parametrize("processors", [1, 20, 132])
def test_blocks_cover_every_row_once(shape, processors):
    launch = banded_launch(problem(shape, (9, 5)), device=DeviceLimits(processors))
    count, height, width = shape
    assert rows_of(launch) % 16 == 0
    assert rows_of(launch) < height + 16
    columns = launch.defines["WARPS"] * launch.defines["WARP_COLUMNS"]
    assert launch.blocks == count * ceil_div(width, columns) * ceil_div(height, rows_of(launch))


def test_tuning_replaces_the_table():
    tuned = banded_launch(problem(), device=H200, tuning={"BLOCK_ROWS": 40, "WARPS": 2, "BLOCKS": 1})
    assert (rows_of(tuned), tuned.threads, tuned.defines["BLOCKS"]) == (40, 64, 1)
    assert "BLOCK_ROWS" not in tuned.defines


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


def test_what_the_kernel_does_not_know_is_refused():
    with pytest.raises(ArgumentError, match="banded has no tunable WARP_COLUMN"):
        banded_launch(problem(), tuning={"WARP_COLUMN": 16})
