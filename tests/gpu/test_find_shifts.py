"""Shifts without planes on a device: those of the CPU, by whichever kernel, and what half precision leaves open."""

import numpy as np
import pytest

from tests.correlation import plain
from tests.correlation.test_find_shifts import texture
from xcorr_app import find_shifts
from xcorr_app.correlation import pair_peaks
from xcorr_app.correlation.forms import FORMS

pytestmark = pytest.mark.gpu


def moved(rng, form, shape, dtype):
    """Lefts and rights that show one scene, displaced by a few pixels, with noise."""
    scene = texture(rng, (shape[0] + 20, shape[1] + 20)) * 20 + 100

    def cut(shape):
        images = []
        for _ in range(int(np.prod(shape[:-2], dtype=int))):
            y, x = rng.integers(6, 14, 2)
            images.append(scene[y : y + shape[-2], x : x + shape[-1]] + rng.normal(size=shape[-2:]))
        return np.clip(np.array(images).reshape(shape), 0, 255).astype(dtype)

    return plain.operands(form, shape, (shape[0] - 2, shape[1] - 1), cut)


def assert_same(cupy, left, right, form, max_shift, rival=3e-3, **how):
    """`rival` is how far its share of the peak may be off: fp16 tells it to 1e-3 of what the sum could be.

    A phase correlation depends on how far images are padded, and devices transform other lengths fast than the CPU.
    """
    phase = how.get("normalization") == "phase"
    found = find_shifts(cupy.asarray(left), cupy.asarray(right), form, max_shift, **how)
    for name in ("engine", "kernel_options"):
        how.pop(name, None)
    expected = find_shifts(left.astype(np.float64), right.astype(np.float64), form, max_shift, **how)
    np.testing.assert_array_equal(found.peak, expected.peak)
    np.testing.assert_allclose(found.shift, expected.shift, atol=0.05 if phase else 2e-3)
    np.testing.assert_allclose(found.score, expected.score, rtol=0.1 if phase else 2e-5)
    np.testing.assert_allclose(1 / found.ratio, 1 / expected.ratio, atol=0.1 if phase else rival)
    np.testing.assert_array_equal(found.on_edge, expected.on_edge)


@pytest.mark.parametrize("dtype", ["float32", "uint16", "uint8", "float64", "float16", "int32"])
@pytest.mark.parametrize("normalization", ["zncc", "none"])
@pytest.mark.parametrize("form", FORMS)
def test_every_form_and_type(cupy, rng, form, normalization, dtype):
    left, right = moved(rng, form, (57, 63), dtype)
    if normalization == "none" and np.dtype(dtype).kind == "f":
        left, right = (
            left - left.mean(dtype=np.float64).astype(dtype),
            right - right.mean(dtype=np.float64).astype(dtype),
        )
    assert_same(cupy, left, right, form, (9, 10), normalization=normalization)


@pytest.mark.parametrize("engine", ["auto", "direct", "tensor", "fft"])
@pytest.mark.parametrize("shape", [(33, 47), (200, 171)])
@pytest.mark.parametrize("normalization", ["zncc", "none", "phase"])
def test_every_engine(cupy, rng, engine, shape, normalization):
    if normalization == "phase" and engine in ("direct", "tensor"):
        pytest.skip("phase correlation has one engine")
    left, right = moved(rng, "n-to-m", shape, "float32")
    left, right = left[:, :-2, :-1] - 100, right - 100
    assert_same(cupy, left, right, "n-to-m", 9, engine=engine, normalization=normalization)


def test_noise_that_fp16_does_not_decide(cupy, rng):
    left, right = rng.normal(size=(600, 40, 44)).astype("f4"), rng.normal(size=(600, 1, 40, 44)).astype("f4")
    for normalization in ("none", "zncc"):
        assert_same(cupy, left, right, "n-to-mn", 12, normalization=normalization, engine="tensor", rival=2e-2)


def test_parts_change_nothing(cupy, rng, monkeypatch):
    left, right = moved(rng, "n-to-m", (57, 63), "uint16")
    whole = find_shifts(cupy.asarray(left), cupy.asarray(right), "n-to-m", 8)
    monkeypatch.setattr(pair_peaks, "_ELEMENTS_COPIED", 57 * 63)
    parts = find_shifts(cupy.asarray(left), cupy.asarray(right), "n-to-m", 8)
    np.testing.assert_array_equal(parts.peak, whole.peak)
    np.testing.assert_allclose(parts.shift, whole.shift, atol=1e-4)


def test_where_no_shift_counts(cupy, rng):
    flat, other = cupy.ones((9, 9), "float32"), cupy.asarray(rng.normal(size=(9, 9)), "float32")
    assert np.isnan(find_shifts(flat, other).score)
    outside = find_shifts(flat, -flat, max_shift=12, normalization="none")
    assert abs(outside.peak).tolist() == [8, 8]
    assert outside.score == pytest.approx(-1)
