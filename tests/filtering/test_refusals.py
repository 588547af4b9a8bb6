"""What `convolve` refuses, and how it says so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import ndimage

import xcorr_app as xc
from xcorr_app.errors import ArgumentError, DataTypeError, ShapeError, XcorrError
from xcorr_app.filtering.convolve import filter_frames

IMAGE = np.ones((6, 7))


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0, 4, 4), (5,), ()])
def test_images_without_pixels_or_axes(shape: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match="not empty"):
        xc.convolve(np.ones(shape), np.ones((3, 3)))


@pytest.mark.parametrize("dtype", ["float16", "complex64"])
def test_types_of_pixels_that_are_not_supported(dtype: str) -> None:
    with pytest.raises(DataTypeError, match="convert them to one of uint8"):
        xc.convolve(np.ones((4, 4), dtype), np.ones((3, 3)))


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint32", "int64", "uint64"])
def test_other_integers_are_filtered_as_scipy_does(dtype: str) -> None:
    images = np.random.default_rng(0).integers(0, 9, (2, 12, 13)).astype(dtype)
    found = xc.convolve(images, [[0, 1, 0], [1, 2, 1], [0, 1, 0]])
    expected = np.stack([ndimage.convolve(image, np.array([[0, 1, 0], [1, 2, 1], [0, 1, 0]])) for image in images])
    assert found.dtype == images.dtype
    np.testing.assert_array_equal(found, expected)
    assert xc.convolve(images, [[0.5]], dtype="float32").dtype == np.float32
    limits = np.iinfo(dtype)
    far = np.full((4, 4), min(limits.max, 2**53), dtype)
    largest = {"int64": 2**63 - 1024, "uint64": 2**64 - 2048}.get(dtype, limits.max)  # that float64 has
    np.testing.assert_array_equal(xc.convolve(far, [[2**11]]), np.full((4, 4), largest, dtype))
    if limits.max > 2**53:
        with pytest.raises(DataTypeError, match="beyond 2"):
            xc.convolve(np.full((4, 4), limits.max, dtype), [[1]])


@pytest.mark.parametrize("images", [b"image", np.ma.masked_array(np.ones((4, 4)))])
def test_containers_that_are_not_supported(images: Any) -> None:
    with pytest.raises(DataTypeError):
        xc.convolve(images, np.ones((3, 3)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "symmetric"}, "mode 'symmetric' is unknown"),
        ({"engine": "cuda"}, "engine 'cuda' is unknown"),
        ({"dtype": "uint8"}, "dtype 'uint8' is unknown"),
        ({"mode": "valid", "origin": 1}, "origin must be 0"),
        ({"mode": "valid", "origin": (0, -1)}, "origin must be 0"),
    ],
)
def test_options_that_are_unknown_or_contradict(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        xc.convolve(IMAGE, np.ones((3, 3)), **options)


@pytest.mark.parametrize("shape", [(7, 1), (1, 8), (9, 9)])
def test_valid_with_taps_larger_than_the_images(shape: tuple[int, int]) -> None:
    with pytest.raises(ShapeError, match="at least"):
        xc.convolve(IMAGE, np.ones(shape), "valid")


@pytest.mark.parametrize("cval", [np.nan, np.inf])
def test_cval_must_be_finite_for_integers(cval: float) -> None:
    with pytest.raises(ArgumentError, match="cval must be finite"):
        xc.convolve(np.ones((4, 4), np.uint8), np.ones((3, 3)), "constant", cval=cval)


def test_taps_of_full_rank_are_not_separable() -> None:
    with pytest.raises(ArgumentError, match="rank 1 or 2"):
        xc.convolve(IMAGE, np.eye(5), engine="separable")


@pytest.mark.parametrize("out", [np.empty((6, 6)), np.empty((6, 7), np.float32)])
def test_an_unfit_array_for_the_result(out: Any) -> None:
    with pytest.raises(XcorrError, match="out must be float64 of shape"):
        filter_frames(IMAGE, np.ones((3, 3)), out=out)


def test_a_result_on_top_of_the_images() -> None:
    images = np.ones((6, 7))
    with pytest.raises(ArgumentError, match="overlap"):
        filter_frames(images, np.ones((3, 3)), out=images)


@pytest.mark.gpu
def test_taps_in_device_memory_are_refused() -> None:
    cupy = pytest.importorskip("cupy")
    for images in (np.ones((4, 4)), cupy.ones((4, 4))):
        with pytest.raises(DataTypeError, match=r"taps\.get\(\)"):
            xc.convolve(images, cupy.ones((3, 3)))
