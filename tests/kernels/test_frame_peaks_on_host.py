"""The kernel that says all of a frame by its peak, on the host, against the array operations that define it."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels.host_device import guarded
from tests.kernels.in_the_place_of_cupy import run_on_host
from xcorr_app.correlation.subpixel import FLAT, MIN_LOGARITHM, refine
from xcorr_app.gpu.peaks import frame_peaks, noise_sums, tile_scatter
from xcorr_app.gpu.peaks.frame_peaks import OfReferences, Rules
from xcorr_app.registration.quality import clean_fraction
from xcorr_app.registration.standard_error.reference_slopes import ReferenceSlopes
from xcorr_app.registration.standard_error.uncertainty import AT_EDGES, FEWEST_TILES, peak_shapes

SHAPE, WINDOW = (97, 83), (-20, -25, 41, 51)
ERROR = 1e-3
PEAKS = np.array([(0, 0), (-7, 13), (9, -2), (19, 0), (3, -25), (5, 5), (-1, 2), (2, 2), (4, -6), (-3, -3)])


def records_of(rng):
    """Peaks of every kind, the row of one marked as open."""
    y, x = np.mgrid[-2:3, -2:3]
    around = np.stack(
        [0.9 * np.exp(-((y - dy) ** 2) / 5 - (x - dx) ** 2 / 7) for dy, dx in rng.uniform(-0.4, 0.4, (len(PEAKS), 2))]
    )
    around[2] -= 0.7  # values without a logarithm
    around[3, 4:] = np.nan  # beyond the window
    around[5] = np.nan
    records = np.concatenate([PEAKS - WINDOW[:2], np.zeros((len(PEAKS), 2)), around.reshape(-1, 25)], axis=1)
    records[:, 2] = around[:, 2, 2]
    records[:, 3] = rng.uniform(0.1, 0.5, len(PEAKS))
    records[:3, 3] = -np.inf, records[1, 2] - ERROR, 0.05
    records[7, 3] = records[7, 2] / 1.1
    records[6, 0] = -1 - records[6, 0]
    return records


@pytest.mark.parametrize("fit", ["gaussian", "quadratic", "parabolic", "none"])
@pytest.mark.parametrize("dtype", ["float32", "uint16"])
@pytest.mark.parametrize("each", [False, True])
def test_what_is_said_of_frames(host_builds, monkeypatch, rng, fit, dtype, each):
    count = len(PEAKS)
    frames = 1000 + 90 * rng.normal(size=(count, *SHAPE)).cumsum(axis=1) / 5
    frames = (np.rint(frames) if dtype == "uint16" else frames - 1000).astype(dtype)
    frames[9] = frames[9, 0, 0] if dtype == "uint16" else 0.5
    images = rng.normal(size=(count if each else 1, *SHAPE)).astype(np.float32)
    slopes = ReferenceSlopes(images, None, rng.uniform(0.3, 0.9, len(images)))
    records = records_of(rng)
    exact = frames.astype(np.float64)
    power = (exact * exact).sum(axis=(1, 2))
    tables = np.full((count, 2, 3, 2), np.nan)
    tables[:, -1, -1] = np.stack([exact.sum(axis=(1, 2)), power], axis=1)

    run_on_host(monkeypatch, host_builds, frame_peaks, tile_scatter, noise_sums)
    places, near = frame_peaks.peak_places(guarded(records), WINDOW[:2])
    np.testing.assert_array_equal(places, PEAKS)
    around = records[:, 4:].reshape(-1, 5, 5)
    np.testing.assert_array_equal(near, around[:, 1:4, 1:4])
    near[:] += rng.uniform(0, 0.01, near.shape)  # over one overlap they are others
    rules = Rules(1e-6, 1.1, ERROR, 2, 1e3, 1e-12, 1e12, MIN_LOGARITHM, FLAT, AT_EDGES, FEWEST_TILES)
    of_references = (guarded(np.asarray(part)) for part in (slopes.factors, slopes.sums, slopes.noise))
    written, finished = frame_peaks.frame_peaks(
        (guarded(records), places, near, guarded(tables)),
        frame_peaks.frame_noise(guarded(frames), 8),
        guarded(frames),
        guarded(frames),
        OfReferences(*of_references, slopes.tiles.grid),
        WINDOW,
        8,
        fit,
        rules,
    )
    found = finished()
    np.testing.assert_array_equal(written, found.columns)

    assert found.flat is None if dtype == "float32" else np.flatnonzero(found.flat).tolist() == [9]
    valid = np.isfinite(records[:, 2])
    offset, height = refine(near, fit, 100)
    np.testing.assert_array_equal(found.peak, PEAKS)
    np.testing.assert_array_equal(found.around, around)
    np.testing.assert_allclose(found.shift, np.where(valid[:, None], PEAKS + offset, np.nan), atol=1e-9)
    np.testing.assert_allclose(found.score, np.where(valid, np.clip(height, -1, 1), np.nan), atol=1e-12)
    rival = records[:, 3]
    ratio = np.where(valid, np.where(rival > 0, records[:, 2] / rival, np.inf), np.nan)
    np.testing.assert_allclose(found.ratio, ratio)
    # At the window's edge, a rival within the error, one at the ratio from which it counts, a mark, a flat frame.
    np.testing.assert_array_equal(np.flatnonzero(found.is_open), [1, 3, 4, 6, 7, 9])
    expected = clean_fraction(exact, exact.var(axis=(1, 2)))
    np.testing.assert_allclose(found.clean[:9], expected[:9], rtol=1e-6)

    shapes = peak_shapes(
        slopes, frames, PEAKS, np.where(valid[:, None], PEAKS + offset, np.nan), around[:, 1:4, 1:4], around
    )
    np.testing.assert_allclose(found.hessian, shapes.hessian, atol=1e-12)
    np.testing.assert_allclose(found.quartic, shapes.quartic, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(found.height, shapes.height)
    expected = shapes.scatter / slopes.widening()[:, None, None]
    usable = valid & np.isfinite(expected).all(axis=(1, 2))
    assert usable.sum() >= 7
    scale = np.abs(expected[usable]).max()
    np.testing.assert_allclose(found.scatter[usable], expected[usable], rtol=2e-3, atol=2e-4 * scale)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint16"])
def test_sums_tell_what_is_flat(rng, dtype):
    limits = np.iinfo(dtype)
    images = rng.integers(limits.min, limits.max, (40, 37, 51), endpoint=True).astype(dtype)
    for k in range(20):  # of every level, half of them but for one pixel that is one more or less
        images[k] = rng.integers(limits.min + 1, limits.max)
        images[k, k, k] = int(images[k, -1, -1]) + (k % 4 == 1) - (k % 4 == 3)
    images[20], images[21] = limits.min, limits.max
    exact = images.astype(np.float64)
    found = frame_peaks.flat_by_sums(exact.sum(axis=(1, 2)), (exact * exact).sum(axis=(1, 2)), 37 * 51, images.dtype)
    np.testing.assert_array_equal(found, (images == images[:, :1, :1]).all(axis=(1, 2)))
    assert found.sum() == 12
