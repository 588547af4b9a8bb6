"""Stacks of more than three axes: letters, or the dimensions of an xarray."""

import dask.array as da
import numpy as np
import pytest
import xarray

import xcorr_app as xc
from tests.batch.movies import DRIFT, movie
from xcorr_app.errors import ShapeError

TYX = movie((39, 45), drift=DRIFT[:3])
TZCYX = np.stack(
    [np.stack([movie((39, 45), seed=5 * z + c, drift=DRIFT[:3]) for c in range(2)], 1) for z in range(2)], 1
)


@pytest.mark.parametrize("order", ["TZCYX", "XYTCZ", "CZYXT"])
def test_shifts_are_those_of_the_channel_averaged_over_depth(order):
    stack = TZCYX.transpose(["TZCYX".index(name) for name in order])
    found = xc.estimate_shifts(stack, max_shift=6, axes=order, channel=1)
    assert found == xc.estimate_shifts(TZCYX[:, :, 1].mean(axis=1), max_shift=6)
    assert found != xc.estimate_shifts(stack, max_shift=6, axes=order)


@pytest.mark.parametrize("order", ["TZCYX", "XYTCZ", "CZYXT"])
@pytest.mark.parametrize("kind", [np.asarray, da.from_array])
def test_all_planes_of_a_frame_move_alike(order, kind):
    shifts = [(0.5, 1), (-2, 0.25), (3, -1)]
    stack = TZCYX.transpose(["TZCYX".index(name) for name in order])
    if kind is da.from_array and order[-2:] != "YX":
        with pytest.raises(ShapeError, match="last axes"):
            xc.apply_shifts(kind(stack), shifts, axes=order)
        return
    moved = np.asarray(xc.apply_shifts(kind(stack), shifts, axes=order))
    back = moved.transpose([order.index(name) for name in "TZCYX"])
    assert moved.dtype == stack.dtype
    for z, c in np.ndindex(2, 2):
        assert np.array_equal(back[:, z, c], xc.apply_shifts(TZCYX[:, z, c], shifts))


def test_frames_are_along_depth_where_there_is_one_time():
    depth = TYX[None]
    assert xc.estimate_shifts(depth, max_shift=6, axes="TZYX") == xc.estimate_shifts(TYX, max_shift=6)
    assert np.array_equal(xc.apply_shifts(depth, [(0, 1)] * 3, axes="TZYX")[0], xc.apply_shifts(TYX, (0, 1)))


@pytest.mark.parametrize("chunks", [None, 1])
def test_dimensions_of_an_xarray_are_its_axes(chunks):
    given = xarray.DataArray(TZCYX.transpose(2, 0, 1, 3, 4), dims=("channel", "time", "z", "y", "x"))
    if chunks:
        given = given.chunk(time=chunks)
    assert xc.estimate_shifts(given, max_shift=6) == xc.estimate_shifts(TZCYX, max_shift=6, axes="TZCYX")
    moved = np.asarray(xc.apply_shifts(given, [(0, 1), (1, 0), (2, 2)]))
    assert np.array_equal(moved[1, :, 1], xc.apply_shifts(TZCYX[:, 1, 1], [(0, 1), (1, 0), (2, 2)]))
    last = xarray.DataArray(TYX.transpose(1, 2, 0), dims=("row", "column", "frame"))
    assert xc.estimate_shifts(last, max_shift=6) == xc.estimate_shifts(TYX, max_shift=6)
    unnamed = xarray.DataArray(TYX)
    assert xc.estimate_shifts(unnamed, max_shift=6) == xc.estimate_shifts(TYX, max_shift=6)
