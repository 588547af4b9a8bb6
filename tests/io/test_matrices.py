"""Reading operands of a correlation: TIFF, PNG and .npy, good and bad."""

import os

import numpy as np
import pytest

from tests.io.samples import noise, write_plain
from xcorr_app.errors import DamagedFileError, InputError, LimitError
from xcorr_app.io import Limits
from xcorr_app.io.matrices import scan_matrices


def save(path, values):
    np.save(path, values, allow_pickle=False)
    return path


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "uint32", "int64", "float32", "float64", ">i2", ">f4"])
@pytest.mark.parametrize("shape", [(5, 6), (3, 5, 6), (2, 3, 5, 6)])
def test_arrays_are_read_as_they_are(tmp_path, dtype, shape):
    values = noise(shape, np.dtype(dtype).newbyteorder("=")).astype(dtype)
    file = scan_matrices(save(tmp_path / "a.npy", values))
    assert (file.shape, file.channels, file.dtype) == (shape, 1, values.dtype.newbyteorder("="))
    found = file.read()
    assert found.dtype == file.dtype
    np.testing.assert_array_equal(found, values)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", ["tif", "npy"])
def test_values_that_are_not_finite_are_named(tmp_path, value, kind):
    data = noise((4, 5, 6), "float32")
    data[2, 1, :2] = value
    path = tmp_path / f"a.{kind}"
    if kind == "npy":
        save(path, data)
    else:
        write_plain(path, data)
    file = scan_matrices(path)
    with pytest.raises(InputError, match=rf"a.{kind}: image 2 holds 2 NaN or infinite values"):
        file.read()


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (np.zeros(7), "shape \\(7,\\)"),
        (np.float64(3), "shape \\(\\)"),
        (np.zeros((0, 5, 6)), "at least one element"),
        (np.zeros((2, 2, 2, 5, 6)), "matrices are"),
        (np.zeros((5, 6), bool), "holds bool"),
        (np.zeros((5, 6), complex), "holds complex128"),
        (np.zeros((5, 6), np.longdouble), "holds float128|holds longdouble"),
        (np.full((5, 6), "a"), "holds <U1"),
    ],
)
def test_arrays_that_cannot_be_correlated(tmp_path, values, words):
    with pytest.raises(InputError, match=words):
        scan_matrices(save(tmp_path / "a.npy", values))


@pytest.mark.parametrize("keep", [6, 9, 60, 127, 128, 150, -1])
def test_arrays_that_are_cut_short(tmp_path, keep):
    path = save(tmp_path / "a.npy", noise((5, 6)))
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(DamagedFileError, match=r"a\.npy: is no array that can be read"):
        scan_matrices(path)


def test_pickled_objects_are_not_loaded(tmp_path):
    np.save(tmp_path / "a.npy", np.array([{}, {}]), allow_pickle=True)
    with pytest.raises(InputError, match="Python objects"):
        scan_matrices(tmp_path / "a.npy")


def test_limits(tmp_path):
    path = save(tmp_path / "a.npy", noise((3, 5, 6)))
    assert scan_matrices(path, limits=Limits(max_pixels=30, max_pages=3)).shape == (3, 5, 6)
    with pytest.raises(LimitError, match="--max-pixels 30"):
        scan_matrices(path, limits=Limits(max_pixels=29))
    with pytest.raises(LimitError, match="3 or more planes"):
        scan_matrices(path, limits=Limits(max_pages=2))


def test_what_is_no_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name, words in (("nothing", "cannot be read"), ("pipe", "pipe"), (".", "folder")):
        with pytest.raises(InputError, match=words):
            scan_matrices(tmp_path / name)
