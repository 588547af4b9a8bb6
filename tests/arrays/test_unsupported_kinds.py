"""Arrays of other libraries: the same numbers, on the same memory where that can be."""

import sys

import numpy as np
import pytest
import xarray

import xcorr_app as xc
from tests.batch.movies import movie
from xcorr_app.arrays.kinds import as_array
from xcorr_app.errors import DataTypeError, DeviceError, InputError, ShapeError

STACK = movie((41, 47))


class OnlyArray:
    """As PyTorch on the CPU: `__array__` alone, and no copy."""

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return self.values


class OnlyDlpack:
    def __init__(self, values, device=(1, 0)):
        self.values, self.device = values, device

    def __dlpack__(self, **how):
        return self.values.__dlpack__(**how)

    def __dlpack_device__(self):
        return self.device


@pytest.mark.parametrize("kind", [OnlyArray, OnlyDlpack, xarray.DataArray, lambda values: values])
def test_memory_is_shared(kind):
    assert np.shares_memory(as_array(kind(STACK)), STACK)
    assert np.array_equal(as_array(kind(STACK)), STACK)


def test_truth_values_are_read_as_bytes_on_the_same_memory():
    bright = STACK.mean() < STACK
    taken = as_array(bright)
    assert taken.dtype == np.uint8
    assert np.shares_memory(taken, bright)
    shifts = [(0, 0), (1, -1), (-2, 3), (3, 2)]
    moved = xc.apply_shifts(bright, shifts, interpolation="nearest")
    assert moved.dtype == bool
    assert np.array_equal(moved, xc.apply_shifts(bright.astype(np.uint8), shifts, interpolation=0) > 0)


@pytest.mark.parametrize("kind", [OnlyArray, OnlyDlpack, xarray.DataArray])
def test_every_function_takes_them(kind):
    images, image = STACK.astype(np.float32), STACK[1].astype(np.float32)
    taps, matrix = np.arange(6.0).reshape(2, 3), [[1.0, 0.5, 0, 0], [0, 0, 2, -1]]
    calls = (
        lambda of: xc.estimate_shifts(of(images), of(images[2]), max_shift=6).shifts,
        lambda of: xc.apply_shifts(of(images), (0.5, -1.25), interpolation="cubic"),
        lambda of: xc.convolve(of(images), taps),
        lambda of: xc.filter_taps(of(images), taps),
        lambda of: xc.filter_bank(of(image), taps[None]),
        lambda of: xc.unmix(of(images), matrix),
        lambda of: xc.cross_correlate(of(image), of(images), "one-to-many", 5),
        lambda of: xc.estimate_motion(of(images), "translation", of(images[2])).shifts,
        lambda of: xc.estimate_motion(images, "translation").apply(of(images)),
        lambda of: xc.find_shifts(of(image), of(images), "one-to-many", 5).shift,
        lambda of: xc.displacement_field(of(image), of(images[2])).displacement,
        lambda of: xc.correct_frames(of(images), dark=of(image), background="median"),
        lambda of: np.array(xc.assess(of(images), of(images)).correlation),
        lambda of: xc.phase_cross_correlation(of(images[0]), of(image))[0],
    )
    for call in calls:
        found = call(kind)
        assert type(found) is np.ndarray or (kind is xarray.DataArray and type(found) is kind)
        assert np.array_equal(found, call(np.asarray), equal_nan=True)


def test_lists_are_arrays():
    kernel = [[0, 1], [2, 3]]
    image = [[1.0, 2.0, 4.0], [0.5, 0, 3]]
    assert np.array_equal(xc.convolve(image, kernel), xc.convolve(np.array(image), kernel))
    with pytest.raises(ShapeError, match="rows cannot be made"):
        as_array([[1, 2], [3]], "rows")


class Grows:
    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("Can't call numpy() on Tensor that requires grad.")


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ("a.tif", InputError, r"a\.tif"),
        (b"a.tif", DataTypeError, "no array"),
        (None, DataTypeError, "not numbers"),
        ([object()], DataTypeError, "not numbers"),
        (Grows(), DataTypeError, "requires grad"),
        (OnlyDlpack(STACK, (10, 0)), DeviceError, "neither the CPU nor a CUDA GPU"),
        (OnlyDlpack(STACK, (2, 0)), DeviceError, "needs CuPy"),
    ],
)
def test_what_is_no_number_or_elsewhere_is_refused(monkeypatch, given, error, words):
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(error, match=words):
        as_array(given)


def test_masked_pixels_do_not_count():
    dirty, missing = STACK.copy(), np.zeros(STACK.shape, bool)
    for t in range(len(STACK)):
        missing[t, 5 + 6 * t : 17 + 6 * t, 20 - 3 * t : 33 - 3 * t] = True
    dirty[missing] = 60000
    given = xc.estimate_shifts(np.ma.masked_array(dirty, missing), max_shift=6)
    assert given == xc.estimate_shifts(dirty, mask=~missing, max_shift=6)
    np.testing.assert_allclose(given.shifts, xc.estimate_shifts(STACK, max_shift=6).shifts, atol=0.05)
    unmasked = xc.estimate_shifts(np.ma.masked_array(STACK), max_shift=6)
    assert unmasked == xc.estimate_shifts(STACK, max_shift=6)
    turned = xc.estimate_motion(np.ma.masked_array(dirty, missing), "translation")
    np.testing.assert_allclose(turned.shifts, given.shifts, atol=0.05)


def test_labels_of_an_xarray_are_kept():
    labels = {"time": [0.0, 0.5, 1.0, 1.5], "y": np.arange(41) * 0.1, "x": np.arange(47) * 0.1, "run": 7}
    given = xarray.DataArray(STACK, dims=("time", "y", "x"), coords=labels, name="cells", attrs={"objective": "40x"})
    moved = xc.apply_shifts(given, xc.estimate_shifts(given, max_shift=6))
    assert moved.identical(given.copy(data=xc.apply_shifts(STACK, xc.estimate_shifts(STACK, max_shift=6))))
    smooth = xc.convolve(given, np.ones((3, 1)), mode="valid")
    assert (smooth.name, set(smooth.coords), smooth.shape) == ("cells", {"time", "x", "run"}, (4, 39, 47))
    lazy = xc.apply_shifts(given.chunk({"time": 2}), (0, 1))
    assert hasattr(lazy.data, "chunks")
    assert lazy.compute().identical(xc.apply_shifts(given, (0, 1)))


def test_labels_of_channels_that_were_mixed_are_lost():
    labels = {"c": ["red", "green"], "x": np.arange(47)}
    given = xarray.DataArray(STACK[:2].astype(np.float32), dims=("c", "y", "x"), coords=labels)
    assert set(xc.unmix(given, [[0, 1], [1, 0]]).coords) == {"x"}
    last = given.transpose("y", "x", "c")
    assert set(xc.unmix(last, [[0, 1], [1, 0]], channel_axis=-1).coords) == {"x"}
    assert set(xc.filter_bank(given, np.ones((2, 2, 3, 3))).coords) == {"x"}


def test_a_variable_of_an_xarray_has_no_labels():
    variable = xarray.Variable(("time", "y", "x"), STACK)
    assert np.array_equal(xc.convolve(variable, np.ones((3, 3))), xc.convolve(STACK, np.ones((3, 3))))


def test_paths_are_read(tmp_path):
    xc.write_stack(tmp_path / "a.tif", STACK)
    path, metadata = tmp_path / "a.tif", xc.StackMetadata("CTYX", (2, *STACK.shape), STACK.dtype, "ome")
    found = xc.estimate_shifts(path, max_shift=6)
    assert found == xc.estimate_shifts(xc.read_stack(path), max_shift=6) == xc.estimate_shifts(STACK, max_shift=6)
    assert found.shifts.any()
    assert np.array_equal(xc.apply_shifts(str(path), found), xc.apply_shifts(STACK, found))
    assert np.array_equal(xc.convolve(path, np.ones((3, 3))), xc.convolve(STACK, np.ones((3, 3))))
    assert np.array_equal(as_array(xc.read_stack(path)), STACK)
    xc.write_stack(tmp_path / "b.ome.tif", np.stack([STACK[::-1], STACK]), metadata)
    assert xc.estimate_shifts(tmp_path / "b.ome.tif", max_shift=6, channel=1) == found
