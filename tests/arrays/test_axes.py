"""Stacks of more than three axes: letters, or the dimensions of an xarray; arrays that are computed block by block."""

import dask.array as da
import h5py
import numpy as np
import pytest
import xarray
import zarr

import xcorr_app as xc
from tests.batch.movies import DRIFT, movie
from xcorr_app.arrays.lazy import ChunksMergedWarning
from xcorr_app.errors import ArgumentError, ShapeError
from xcorr_app.registration.stack import stack_input

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


STACK = movie((37, 43), drift=[(0, 0), (1, -1), (-2, 3), (3, 2), (0, 1), (2, 2), (-1, 0)])
RNG = np.random.default_rng(11)


def lazy(array, chunks):
    return da.from_array(array, chunks=chunks)


def agree(result, whole):
    """A lazy result is what it says it is, and what the whole array gives."""
    assert isinstance(result, da.Array)
    assert (result.shape, result.dtype) == (whole.shape, whole.dtype)
    assert type(result._meta) is np.ndarray
    assert result._meta.dtype == whole.dtype
    computed = result.compute()
    assert computed.shape == whole.shape
    np.testing.assert_array_equal(computed, whole)


def nothing_is_computed(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("computed")

    monkeypatch.setattr(da.Array, "compute", refuse)


def test_moving_is_lazy_and_keeps_the_chunks_of_time():
    shifts = RNG.normal(0, 3, (7, 2))
    for kind in (np.uint16, np.float32, bool):
        stack = STACK.astype(kind) if kind is not bool else STACK > 1500
        moved = xc.apply_shifts(lazy(stack, (2, 37, 43)), shifts, interpolation="linear")
        assert moved.chunks[0] == (2, 2, 2, 1)
        agree(moved, xc.apply_shifts(stack, shifts))
    agree(xc.apply_shifts(lazy(STACK[0], -1), (1.5, -2)), xc.apply_shifts(STACK[0], (1.5, -2)))
    agree(xc.apply_shifts(lazy(STACK, (3, 37, 43)), (1.5, -2)), xc.apply_shifts(STACK, (1.5, -2)))


def test_arrays_stay_uncomputed(monkeypatch):
    nothing_is_computed(monkeypatch)
    frames = lazy(STACK, (2, 37, 43))
    xc.apply_shifts(frames, np.zeros((7, 2)))
    xc.convolve(frames, np.ones((3, 3)))
    xc.filter_bank(frames, np.ones((2, 3, 3)))
    xc.unmix(frames.rechunk((7, 37, 43)), np.ones((2, 7)))
    xc.cross_correlate(STACK[0], frames, "one-to-many", 4)


@pytest.mark.parametrize("mode", ["reflect", "constant", "nearest", "mirror"])
@pytest.mark.parametrize(("shape", "origin"), [((4, 7), (1, -2)), ((1, 5), 0), ((9, 1), 0)])
def test_blocks_overlap_where_the_taps_need_it(mode, shape, origin):
    taps = RNG.normal(size=shape)
    filtered = xc.convolve(lazy(STACK, (3, 13, 17)), taps, mode, origin=origin, dtype="float32")
    assert filtered.chunks[0] == (3, 3, 1)
    whole = xc.convolve(STACK, taps, mode, origin=origin, dtype="float32")
    np.testing.assert_allclose(filtered.compute(), whole, atol=2e-6 * np.abs(taps).sum() * STACK.max())
    assert (filtered.shape, filtered.dtype) == (whole.shape, whole.dtype)
    keys = {name.split("-")[0] for name in map(str, filtered.dask.layers)}
    assert any("overlap" in name for name in keys)


def test_banks_and_channels():
    bank = RNG.normal(size=(3, 5, 4))
    maps = xc.filter_bank(lazy(STACK, (2, 37, 43)), bank, stride=3)
    assert maps.chunks[0] == (2, 2, 2, 1)
    agree(maps, xc.filter_bank(STACK, bank, stride=3))
    deep = RNG.normal(size=(2, 7, 3, 3))
    with pytest.warns(ChunksMergedWarning):
        agree(xc.filter_bank(lazy(STACK, (2, 37, 43)), deep, mode="valid"), xc.filter_bank(STACK, deep, mode="valid"))
    matrix = RNG.normal(size=(2, 7))
    mixed = xc.unmix(lazy(STACK, (7, 10, 43)), matrix)
    assert mixed.chunks == ((2,), (10, 10, 10, 7), (43,))
    agree(mixed, xc.unmix(STACK, matrix))
    agree(xc.unmix(lazy(STACK.T, (-1, 9, 7)), matrix, channel_axis=-1), xc.unmix(STACK.T, matrix, channel_axis=-1))


@pytest.mark.parametrize("form", ["one-to-one", "one-to-many", "n-to-mn", "n-to-m"])
def test_planes_of_every_form(form):
    images = STACK[:6].astype(np.float32)
    left = {"one-to-one": images[0], "one-to-many": images[0], "n-to-mn": images[:3], "n-to-m": images[:3]}[form]
    right = {"one-to-one": images[1], "n-to-mn": images.reshape(3, 2, 37, 43)}.get(form, images)
    chunked = lazy(right, (*(2,) * (right.ndim - 2), 37, 43))
    for given in (left, lazy(left, (*(2,) * (left.ndim - 2), 37, 43))):
        planes = xc.cross_correlate(given, chunked, form, (4, 6))
        whole = xc.cross_correlate(left, right, form, (4, 6))
        assert (planes.shape, planes.dtype) == (whole.shape, whole.dtype)
        np.testing.assert_allclose(planes.compute(), whole, atol=1e-5)


def stored_in_zarr(folder):
    array = zarr.create_array(folder / "s.zarr", shape=STACK.shape, chunks=(3, 37, 43), dtype=STACK.dtype)
    array[:] = STACK
    return array


def stored_in_hdf5(folder):
    file = h5py.File(folder / "s.h5", "w")
    return file.create_dataset("stack", data=STACK, chunks=(2, 37, 43))


@pytest.mark.parametrize("kind", [stored_in_zarr, stored_in_hdf5, lambda _: lazy(STACK, (2, 37, 43))])
@pytest.mark.parametrize("reference", ["first", "template", "previous"])
def test_shifts_are_computed_block_by_block(tmp_path, kind, reference, monkeypatch):
    whole = xc.estimate_shifts(STACK, reference, max_shift=6)
    stack = kind(tmp_path)
    assert xc.estimate_shifts(stack, reference, max_shift=6) == whole
    monkeypatch.setattr(stack_input, "_KEPT", 0)
    assert xc.estimate_shifts(stack, reference, max_shift=6) == whole


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda frames: xc.apply_shifts(frames, np.zeros((6, 2))), ShapeError, r"expected \(7, 2\)"),
        (lambda frames: xc.apply_shifts(frames, (0, 0), interpolation="sextic"), ArgumentError, "'sextic' is unknown"),
        (lambda frames: xc.apply_shifts(frames, (0, 0), cval=-1), ArgumentError, "cval"),
        (lambda frames: xc.convolve(frames, np.ones((3, 3)), "symmetric"), ArgumentError, "mode 'symmetric'"),
        (lambda frames: xc.unmix(frames.rechunk((7, 37, 43)), np.ones((2, 3))), ShapeError, "columns"),
        (lambda frames: xc.cross_correlate(frames, frames, "one-to-many"), ShapeError, "needs 2 axes"),
    ],
)
def test_wrong_arguments_are_told_at_once(monkeypatch, call, error, message):
    nothing_is_computed(monkeypatch)
    with pytest.raises(error, match=message):
        call(lazy(STACK, (2, 37, 43)))
