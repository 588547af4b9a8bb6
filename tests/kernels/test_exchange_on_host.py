"""The published kernel of column and row reuse, its own source run on the host: any width and height, every option."""

from __future__ import annotations

import pytest

from tests.kernels.filter_definition import TYPES, assert_filtered, random_images, random_taps
from tests.kernels.test_filter_on_host import filtered
from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.stencil.exchange import PUBLISHED, ExchangeOptions
from xcorr_app.gpu.stencil.problem import BOUNDARIES


def exchanged(folder, images, taps, boundary="reflect", *, options=None, **how):
    tuning = None if options is None else options.tuning()
    return filtered(folder, images, taps, boundary, kernel="exchange", tuning=tuning, **how)


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("share", [False, True])
@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_columns_of_the_last_sub_block(host_builds, boundary, share, apart):
    """One to all 32 of them, after none, one or two whole sub-blocks."""
    taps, options = random_taps((3, 7)), ExchangeOptions(rows=4, share_last=share, edges_apart=apart)
    for width in (7, 8, 30, 32, 37, 38, 39, 64, 70, 71):
        images = random_images((2, 9, width), "float32")
        result = exchanged(host_builds, images, taps, boundary, options=options, outside=0.5)
        assert_filtered(result, images, taps, boundary, 0.5)


@pytest.mark.parametrize("width", [3, 5, 7])
def test_elements_indexed_by_the_lane(host_builds, width):
    images, taps = random_images((2, 9, 70), "float32"), random_taps((3, width))
    result = filtered(host_builds, images, taps, "mirror", kernel="exchange", tuning={"RUN_TIME_INDEX": 1})
    assert_filtered(result, images, taps, "mirror", 0)


@pytest.mark.parametrize("dtype", TYPES)
def test_every_type(host_builds, dtype):
    images, taps = random_images((2, 10, 77), dtype), random_taps((4, 7))
    result = exchanged(host_builds, images, taps, "constant", outside=17.3, double_sums=dtype == "uint16")
    assert_filtered(result, images, taps, "constant", 17.3)


def test_options_name_their_macros_and_refuse_what_makes_no_sense():
    assert ExchangeOptions().tuning() == PUBLISHED
    assert PUBLISHED["BLOCK_ROWS"] == 56
    assert set(PUBLISHED.values()) == {1, 4, 56}
    for wrong in ({"rows": 0}, {"rows": 2.5}, {"warps": 9}, {"warps": True}):
        with pytest.raises(ArgumentError, match="kernel 'exchange' takes 1 to"):
            ExchangeOptions(**wrong)
