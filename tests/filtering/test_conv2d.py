"""Batched convolution against its definition, a float64 einsum over windows; strides, layouts, methods."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import xcorr_app as xc
from tests.filtering.test_filter_bank import by_definition, noise
from xcorr_app.errors import ArgumentError, DeviceError, ShapeError
from xcorr_app.filtering import kernel_names
from xcorr_app.filtering.boundary import MODES
from xcorr_app.gpu.runtime.device import DeviceStatus


def convolution(images, filters, stride):
    windows = sliding_window_view(images.astype(np.float64), filters.shape[2:], axis=(2, 3))
    return np.einsum("irmnuv,jruv->ijmn", windows[:, :, ::stride, ::stride], filters)


@pytest.mark.parametrize("stride", [1, 2, 3, 7])
@pytest.mark.parametrize("dtype", ["uint16", "float32", "float64"])
@pytest.mark.parametrize("size", [(1, 1), (3, 5), (11, 12)])
def test_strides_and_layouts(rng, stride, dtype, size):
    images, filters = noise(rng, (2, 3, 17, 19), dtype), rng.normal(size=(5, 3, *size))
    expected = convolution(images, filters, stride)
    found = xc.conv2d(images, filters, stride)
    assert found.shape == expected.shape
    assert found.dtype == (np.float64 if dtype == "float64" else np.float32)
    atol = (1e-12 if dtype == "float64" else 1e-6) * np.abs(expected).max()
    np.testing.assert_allclose(found, expected, rtol=0, atol=atol)
    last = xc.conv2d(np.ascontiguousarray(images.transpose(0, 2, 3, 1)), filters, stride, "NHWC")
    np.testing.assert_array_equal(last, found.transpose(0, 2, 3, 1))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("stride", [2, 5, 40])
def test_strided_banks_take_every_nth_output(rng, mode, stride):
    images, bank = noise(rng, (2, 3, 19, 23), "float64"), rng.normal(size=(4, 3, 4, 7))
    expected = by_definition(images, bank, mode, 7)[..., ::stride, ::stride]
    np.testing.assert_allclose(xc.filter_bank(images, bank, mode=mode, cval=7, stride=stride), expected, atol=1e-9)


@pytest.mark.parametrize(
    ("options", "pads"),
    [
        ({"padding": 1}, ((1, 1), (1, 1))),
        ({"padding": (2, 0)}, ((2, 2), (0, 0))),
        ({"padding": "same"}, ((1, 1), (1, 2))),
        ({"padding": "same", "dilation": (2, 3)}, ((2, 2), (4, 5))),
        ({"dilation": 2, "stride": (2, 3)}, ((0, 0), (0, 0))),
        ({"stride": (2, 4), "groups": 2}, ((0, 0), (0, 0))),
        ({"groups": 4, "padding": "valid", "bias": [1, -2, 3, 0]}, ((0, 0), (0, 0))),
    ],
)
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_the_options_of_networks(rng, options, pads, layout):
    images, groups = rng.normal(size=(2, 4, 17, 19)), options.get("groups", 1)
    filters, bias = rng.normal(size=(4, 4 // groups, 3, 4)), np.array(options.get("bias", [0] * 4))
    (down, across), (dy, dx) = (np.broadcast_to(options.get(name, 1), 2) for name in ("stride", "dilation"))
    wide = np.pad(images, ((0, 0), (0, 0), *pads))
    windows = sliding_window_view(wide, (2 * dy + 1, 3 * dx + 1), axis=(2, 3))[:, :, ::down, ::across, ::dy, ::dx]
    split = windows.reshape(2, groups, -1, *windows.shape[2:])
    expected = np.einsum("igrmnuv,gjruv->igjmn", split, filters.reshape(groups, -1, *filters.shape[1:]))
    expected = expected.reshape(2, 4, *windows.shape[2:4]) + bias[:, None, None]
    given = images if layout == "NCHW" else images.transpose(0, 2, 3, 1)
    found = xc.conv2d(given, filters, layout=layout, **options)
    np.testing.assert_allclose(found if layout == "NCHW" else found.transpose(0, 3, 1, 2), expected, atol=1e-12)


def test_what_is_refused():
    images, filters = np.ones((1, 2, 5, 5)), np.ones((3, 2, 3, 3))
    with pytest.raises(ArgumentError, match="NCHW, NHWC"):
        xc.conv2d(images, filters, layout="CHWN")
    with pytest.raises(ShapeError, match="four axes"):
        xc.conv2d(images[0], filters)
    with pytest.raises(ShapeError, match="do not fit filters of 1"):
        xc.conv2d(images, filters[:, :1])
    with pytest.raises(ShapeError, match="do not fit"):
        xc.conv2d(images, np.ones((3, 2, 6, 3)))
    for stride in (0, 1.5, True):
        with pytest.raises(ArgumentError, match="whole number of 1 or more"):
            xc.conv2d(images, filters, stride)
    for wrong in ({"padding": "full"}, {"padding": -1}, {"dilation": 0}, {"groups": 2}, {"bias": [1]}):
        with pytest.raises(ArgumentError, match=next(iter(wrong))):
            xc.conv2d(images, filters, **wrong)
    with pytest.raises(ArgumentError, match="im2win-basic, implicit, implicit-basic, shallow"):
        xc.filter_bank(images, filters, method="winograd")


def test_a_method_by_name_without_a_gpu_says_what_to_do(monkeypatch):
    monkeypatch.setattr(kernel_names, "cuda_status", lambda: DeviceStatus(available=False, reason="no driver"))
    with pytest.raises(DeviceError, match=r"'im2win' runs on a GPU \(no driver\); 'auto' gives the same on the CPU"):
        xc.filter_bank(np.ones((5, 5)), np.ones((3, 3, 3)), method="im2win")
    with pytest.raises(DeviceError, match="'exchange' runs on a GPU"):
        xc.convolve(np.ones((5, 5)), np.ones((3, 3)), kernel="exchange")
    with pytest.raises(ArgumentError, match="engine 'opencv' leaves the choice"):
        xc.convolve(np.ones((5, 5)), np.ones((3, 3)), kernel="exchange", engine="opencv")
    with pytest.raises(ArgumentError, match="auto, reuse, exchange"):
        xc.convolve(np.ones((5, 5)), np.ones((3, 3)), kernel="exchange_3")  # type: ignore[arg-type]
