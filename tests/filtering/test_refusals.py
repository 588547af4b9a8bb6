"""What filters, banks, convolution and mixing of channels refuse, and how they say so."""

from typing import Any

import numpy as np
import pytest
from scipy import ndimage

import xcorr_app as xc
from tests.filtering.test_bank_device import (
    ASYMMETRIC,
    filtered,
    kernels,  # noqa: F401 - a fixture
)
from tests.filtering.test_device_choice import engine_on_device
from xcorr_app.errors import ArgumentError, DataTypeError, DeviceError, ShapeError, XcorrError
from xcorr_app.filtering import kernel_names
from xcorr_app.filtering.banks import gabor, gaussian_derivatives
from xcorr_app.filtering.convolve import filter_frames
from xcorr_app.filtering.taps import Filter
from xcorr_app.gpu.runtime.device import DeviceStatus

ONES, FLAT, WHOLE = np.ones((3, 3)), np.ones((6, 7)), np.ones((4, 4), np.uint8)
IMAGES, FILTERS = np.ones((1, 2, 5, 5)), np.ones((3, 2, 3, 3))
EYE = np.ones((3, 4, 4), np.uint8)
SMALL, BANK = np.ones((8, 8)), np.ones((1, 3, 3))
NAN, INF = np.nan, np.inf


def all_of(error: Any, message: str | None, *calls: Any) -> list[Any]:
    return [(call, error, message) for call in calls]


OF_FILTERS = [
    *all_of(ShapeError, "not empty", *(lambda s=s: xc.convolve(np.ones(s), ONES) for s in [(0, 5), (5, 0), (0, 4, 4)])),
    *all_of(ShapeError, "not empty", lambda: xc.convolve(np.ones(5), ONES), lambda: xc.convolve(np.ones(()), ONES)),
    *all_of(
        DataTypeError,
        "convert them to one of uint8",
        *(lambda t=t: xc.convolve(np.ones((4, 4), t), ONES) for t in ("float16", "complex64")),
    ),
    *all_of(
        DataTypeError,
        None,
        lambda: xc.convolve(b"image", ONES),
        lambda: xc.convolve(np.ma.masked_array(np.ones((4, 4))), ONES),
    ),
    (lambda: xc.convolve(FLAT, ONES, "symmetric"), ArgumentError, "mode 'symmetric' is unknown"),
    (lambda: xc.convolve(FLAT, ONES, dtype="uint8"), ArgumentError, "dtype 'uint8' is unknown"),
    *all_of(
        ArgumentError,
        "origin must be 0",
        *(lambda o=o: xc.convolve(FLAT, ONES, "valid", origin=o) for o in (1, (0, -1))),
    ),
    *all_of(
        ShapeError, "at least", *(lambda s=s: xc.convolve(FLAT, np.ones(s), "valid") for s in [(7, 1), (1, 8), (9, 9)])
    ),
    *all_of(
        ArgumentError,
        "cval must be finite",
        *(lambda v=v: xc.convolve(WHOLE, ONES, "constant", cval=v) for v in (NAN, INF)),
    ),
    *all_of(
        XcorrError,
        "out must be float64 of shape",
        *(lambda o=o: filter_frames(FLAT, ONES, out=o) for o in (np.empty((6, 6)), np.empty((6, 7), np.float32))),
    ),
    (lambda: filter_frames(FLAT, ONES, out=FLAT), ArgumentError, "overlap"),
    # Taps, and the terms of a filter.
    *all_of(
        ArgumentError,
        "moves the centre off",
        *(lambda o=o: xc.convolve(FLAT, np.ones((4, 4)), origin=o) for o in (-3, (-3, 0))),
        *(lambda o=o: xc.filter_taps(FLAT, np.ones((4, 4)), origin=o) for o in (2, (0, 2))),
    ),
    *all_of(
        ArgumentError,
        "whole number",
        *(lambda o=o: xc.convolve(FLAT, np.ones((9, 9)), origin=o) for o in (0.5, "a", (1,), (0, 0, 0))),
    ),
    *all_of(
        ShapeError,
        "matrix",
        *(lambda t=t: xc.convolve(FLAT, t) for t in ([1.0, 2.0], 3.0, np.ones((0, 3)), np.ones((2, 2, 2)))),
    ),
    *all_of(DataTypeError, "real numbers", *(lambda t=t: xc.convolve(FLAT, t) for t in ([[1j]], [["a"]], [[None]]))),
    *all_of(ArgumentError, "finite", *(lambda v=v: xc.convolve(FLAT, [[1.0, v]]) for v in (NAN, INF))),
    *all_of(
        ArgumentError, "at least one term", lambda: Filter("", ()), lambda: Filter("", ((np.ones(0), np.ones(2)),))
    ),
    (
        lambda: Filter("", ((np.ones(3), np.ones(2)), (np.ones(3), np.ones(3)))),
        ArgumentError,
        "of one length",
    ),
    (lambda: Filter("", ((np.ones((3, 1)), np.ones(2)),)), ArgumentError, "one-dimensional"),
    (lambda: Filter("", ((np.ones(3), np.array([NAN])),)), ArgumentError, "finite"),
    # Named filters and banks.
    *all_of(
        ArgumentError,
        r"0\.1 to 250",
        *(
            lambda s=s, make=make: make(s)
            for s in (0, -1, 251, NAN, (1,), (1, 2, 3), (1, 0), "2")
            for make in (
                xc.filters.gaussian,
                xc.filters.log,
                lambda s: xc.filters.dog(1, s),
                lambda s: xc.filters.unsharp(s, 1),
            )
        ),
    ),
    *all_of(
        ArgumentError,
        "size of a box",
        *(lambda s=s: xc.filters.box(s) for s in (0, -3, 2.5, True, (3,), (1, 2, 3), "3")),
    ),
    *all_of(ArgumentError, "axis of a Sobel", *(lambda a=a: xc.filters.sobel(a) for a in ("z", 2, -1, None))),
    *all_of(ArgumentError, "amount", *(lambda a=a: xc.filters.unsharp(1, a) for a in (NAN, INF))),
    *all_of(
        ArgumentError,
        None,
        lambda: gabor([], 4),
        lambda: gabor([0.6], 4),
        lambda: gabor([0.1], 0),
        lambda: gabor([0.1], 4, bandwidth=0),
        lambda: gaussian_derivatives([]),
        lambda: gaussian_derivatives([0.4]),
    ),
    # Banks of filters, and convolution as networks ask for it.
    (lambda: xc.filter_bank(SMALL, np.ones((2, 3, 3, 3))), ShapeError, r"takes \(..., 3, H, W\)"),
    (lambda: xc.filter_bank(np.ones((2, 8, 8)), np.ones((2, 3, 3, 3))), ShapeError, "takes"),
    (lambda: xc.filter_bank(np.ones(8), np.ones((2, 3, 3))), ShapeError, r"takes \(..., H, W\)"),
    (lambda: xc.filter_bank(np.ones((0, 8)), np.ones((2, 3, 3))), ShapeError, "takes"),
    (lambda: xc.filter_bank(SMALL, ONES), ShapeError, "bank has shape"),
    (lambda: xc.filter_bank(SMALL, np.ones((1, 9, 3)), mode="valid"), ShapeError, "do not fit"),
    (lambda: xc.filter_bank(SMALL, np.full((1, 3, 3), NAN)), ArgumentError, "not finite"),
    (lambda: xc.filter_bank(SMALL, [["x"]]), ArgumentError, "array of numbers"),
    (lambda: xc.filter_bank(SMALL, BANK, mode="edge"), ArgumentError, "take one of reflect"),  # type: ignore[arg-type]
    (lambda: xc.filter_bank(SMALL, BANK, cval=NAN), ArgumentError, "finite"),
    *all_of(
        DataTypeError,
        "NumPy or CuPy array",
        *(lambda i=i: xc.filter_bank(i, np.ones((1, 1, 1))) for i in ([[1]], np.ones((4, 4), complex))),
    ),
    (
        lambda: xc.filter_bank(IMAGES, FILTERS, method="winograd"),
        ArgumentError,
        "im2win-basic, implicit",
    ),
    *all_of(ArgumentError, "stride", *(lambda s=s: xc.filter_bank(SMALL, BANK, stride=s) for s in (0, 1.5, True))),
    # Channels and stains.
    (lambda: xc.unmix(EYE, np.eye(2)), ShapeError, "2 columns, stack has 3 channels along axis -3"),
    (lambda: xc.unmix(EYE, np.eye(3)[0]), ShapeError, "matrix has shape"),
    (lambda: xc.unmix(EYE, [[1, 2], [3]]), ArgumentError, "all of one length"),
    (lambda: xc.unmix(EYE, [[1, 2, NAN]]), ArgumentError, "not finite"),
    (lambda: xc.unmix(EYE, [[1, 2, 1e39]]), ArgumentError, "too large"),
    (lambda: xc.unmix(WHOLE, np.eye(3)), ShapeError, "no axis -3"),
    (lambda: xc.unmix(EYE[:, :0], np.eye(3)), ShapeError, "no pixel"),
    (lambda: xc.unmix(EYE, np.eye(3), white=4095), ArgumentError, "with from_log"),
    (lambda: xc.unmix(EYE, np.eye(3), white=0, from_log=True), ArgumentError, "above 0"),
    (lambda: xc.unmix(EYE, np.eye(3), dtype="uint8"), ArgumentError, "dtype='uint8' is unknown"),
    (lambda: xc.unmix(np.ones((1, 2, 2), complex), [[1]]), DataTypeError, "complex"),
    (lambda: xc.unmix([[[1]]], [[1]]), DataTypeError, "int64"),
    (lambda: xc.stain_matrix("pas"), ArgumentError, "use one of he, hdab, hed"),
]
WITHOUT_A_GPU = [
    (
        lambda: xc.filter_bank(SMALL, BANK, method="im2win"),
        DeviceError,
        r"'im2win' runs on a GPU \(no driver\); 'auto' gives the same on the CPU",
    ),
    (lambda: xc.convolve(SMALL, ONES, kernel="exchange"), DeviceError, "'exchange' runs on a GPU"),
    (lambda: xc.convolve(SMALL, ONES, kernel="exchange_3"), ArgumentError, "auto, reuse, exchange"),  # type: ignore[arg-type]
    (lambda: xc.convolve(SMALL, ONES, kernel="reuse"), DeviceError, "'reuse' runs on a GPU"),
]
FRAMES = np.random.default_rng(1).random((2, 9, 40)).astype(np.float32)
OF_A_DEVICE = [
    (lambda: filtered(FRAMES, ASYMMETRIC, "edge"), ArgumentError, "mode 'edge' is unknown"),
    (lambda: filtered(FRAMES.astype("uint32"), ASYMMETRIC), DataTypeError, "images of uint32 cannot be filtered"),
    (lambda: filtered(FRAMES[:0], ASYMMETRIC), ShapeError, "not empty"),
    (lambda: filtered(FRAMES, [[1j]]), DataTypeError, "taps must be real"),
    (lambda: filtered(FRAMES, [1.0]), ShapeError, "taps must be a matrix"),
    (lambda: filtered(FRAMES, ASYMMETRIC, out=np.empty((9, 40), "f4")), ShapeError, "out must be float32"),
    (lambda: filtered(FRAMES, ASYMMETRIC, out=FRAMES), ArgumentError, "overlap"),
    (lambda: engine_on_device(np.eye(5), "separable"), ArgumentError, "rank 1 or 2"),
    (lambda: engine_on_device(np.ones((64, 2)), "reuse"), ArgumentError, "up to 63 x 63 taps"),
    (lambda: xc.filter_bank(SMALL, np.ones((1, 9, 3)), mode="valid"), ShapeError, "do not fit"),
    (lambda: xc.filter_bank(SMALL, BANK, mode="edge"), ArgumentError, "take one of reflect"),  # type: ignore[arg-type]
    (lambda: xc.filter_bank(SMALL, BANK, method="im2win"), ArgumentError, "sums in float32, images of float64"),
]


@pytest.mark.parametrize(("call", "error", "message"), OF_FILTERS)
def test_what_is_refused(call: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize(("call", "error", "message"), WITHOUT_A_GPU)
def test_what_needs_a_gpu_is_refused_without_one(
    monkeypatch: pytest.MonkeyPatch, call: Any, error: Any, message: str
) -> None:
    monkeypatch.setattr(kernel_names, "cuda_status", lambda: DeviceStatus(available=False, reason="no driver"))
    with pytest.raises(error, match=message):
        call()


@pytest.mark.usefixtures("stand_in", "kernels")
@pytest.mark.parametrize(("call", "error", "message"), OF_A_DEVICE)
def test_what_is_refused_of_arrays_of_a_device(call: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        call()


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


@pytest.mark.gpu
def test_taps_in_device_memory_are_refused() -> None:
    cupy = pytest.importorskip("cupy")
    for images in (np.ones((4, 4)), cupy.ones((4, 4))):
        with pytest.raises(DataTypeError, match=r"taps\.get\(\)"):
            xc.convolve(images, cupy.ones((3, 3)))
