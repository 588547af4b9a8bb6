"""The kernels that match patches and smooth frames, their own source run on the host, against the CPU's answer."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import ndimage

from tests.kernels.in_the_place_of_cupy import run_on_host
from tests.registration.patches.test_motion_patches import bent
from xcorr_app.gpu.field import patches, run
from xcorr_app.registration.motion.smoothed_frames import finite, gaussian_taps, sizes_of, smoothed
from xcorr_app.registration.patches.device_patches import DevicePatches
from xcorr_app.registration.patches.patch_fit import PatchFit, PatchOptions
from xcorr_app.registration.patches.patch_match import PatchSearch
from xcorr_app.registration.patches.patch_references import References
from xcorr_app.registration.warping.device_warp import spline_coefficients


@pytest.fixture
def device(monkeypatch, host_builds):
    run_on_host(monkeypatch, host_builds, run, patches)


@pytest.mark.parametrize(
    ("shape", "patch", "overlap", "deviation", "snr"),
    [
        ((150, 131), 64, 0.5, 6.0, 5),
        ((150, 131), 64, 0.0, 6.0, 0.5),
        ((90, 97), 24, 0.3, 4.0, 2),
        ((70, 81), 33, 0.5, 7.0, 1),
    ],
)
@pytest.mark.parametrize("own", [False, True])
def test_patches_are_those_of_the_cpu(device, shape, patch, overlap, deviation, snr, own):
    frames, _ = bent(4, snr, amplitude=3.0, count=4, shape=shape)
    frames[2, :50, :60] = 0.5  # in which nothing is seen
    fit = PatchFit(shape, References(frames[0]), PatchOptions(patch, overlap, deviation), np)
    sizes = sizes_of(frames, fit._shared.sigma, fit._half)
    shifts = np.array([[0, 0], [1.3, -0.8], [0.2, 2.9], [-7.0, 4.0]])
    windows = [fit.prepared(frames[t % 2], fit._shared).windows for t in range(4)] if own else [fit._shared.windows] * 4
    searches = [
        PatchSearch(*each, fit._shared.sigma, moved) for *each, moved in zip(windows, sizes[-1], shifts, strict=True)
    ]
    expected = fit._matcher.matched(searches)
    there = DevicePatches(fit._matcher, fit._levels, np)
    given = there._searched(windows if own else windows[:1])
    limits = there._limits(fit._shared.sigma)
    records, trusted, fields = patches.match_patches(sizes[-1], given, there._grid, limits, 8, shifts)
    assert 0.2 < trusted.mean() < 1
    trust = np.stack([match.trusted for match in expected])
    assert (trusted.astype(bool) != trust).mean() < 0.01
    agree = trust & trusted.astype(bool)
    shift = np.stack([match.shift for match in expected])
    np.testing.assert_allclose(fit._half * records[:, :, :2][agree], shift[agree], atol=2e-4)
    np.testing.assert_allclose(records[:, :, 2][agree], np.stack([match.score for match in expected])[agree], atol=1e-5)
    significance = np.stack([match.significance for match in expected])
    np.testing.assert_allclose(records[:, :, 3][agree], significance[agree], rtol=1e-3)
    start = np.stack([fit._matcher.field_through(*each) for each in zip(expected, shifts, strict=True)])
    if (trusted == trust).all():
        np.testing.assert_allclose(fields, start.transpose(0, 2, 1), atol=2e-3)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "float32", "float64"])
@pytest.mark.parametrize(("shape", "sigma"), [((45, 130), 0.7), ((33, 64), 1.0), ((70, 41), 1.5), ((128, 65), 2.0)])
def test_frames_are_smoothed_and_halved(device, dtype, shape, sigma):
    rng = np.random.default_rng(1)
    frames = (rng.random((3, *shape)) * 100 + 20).astype(dtype)
    if frames.dtype.kind == "f":
        frames[1, 4, 5], frames[1, 9, 9] = np.nan, np.inf
    means = np.array([np.where(np.isfinite(f), f, 0).sum(dtype=float) / np.isfinite(f).sum() for f in frames])
    full, half = run.smooth_frames(frames, means, gaussian_taps(sigma), half=True)
    expected = np.stack([smoothed(finite(frame), sigma) for frame in frames])
    np.testing.assert_allclose(full, expected, atol=2e-4)
    even = expected[:, : shape[0] // 2 * 2, : shape[1] // 2 * 2]
    pairs = even.reshape(3, shape[0] // 2, 2, shape[1] // 2, 2)
    np.testing.assert_allclose(half, pairs.mean(axis=(2, 4)), atol=2e-4)


@pytest.mark.parametrize("shape", [(45, 130), (5, 70), (40, 1), (13, 12)])
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_coefficients_are_those_of_the_splines(device, dtype, shape):
    frames = (np.random.default_rng(3).random((2, *shape)) * 100).astype(dtype)
    expected = frames.astype(np.float64)
    for axis in (1, 2):
        expected = ndimage.spline_filter1d(expected, order=3, axis=axis, mode="mirror")
    np.testing.assert_allclose(spline_coefficients(frames), expected, atol=2e-4)
