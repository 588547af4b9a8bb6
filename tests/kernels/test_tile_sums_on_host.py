"""The kernels that tell which tiles agree, on the host, against their definitions in double precision."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels.host_device import guarded, guards_are_whole, run_kernel
from tests.kernels.in_the_place_of_cupy import run_on_host
from tests.registration.scenes import drifting, noise
from xcorr_app.gpu.peaks import row_sums, tile_sums, tile_verdict
from xcorr_app.gpu.peaks.row_sums import row_sums_launch
from xcorr_app.registration.parts import tiles
from xcorr_app.registration.parts.linear_motion import edge_offsets
from xcorr_app.registration.parts.tile_agreement import DIFFERS, LIMITS, judged
from xcorr_app.registration.parts.tile_bins import covered_by, sums_over_tiles


def images_of(rng, count, shape, dtype):
    images = 1000 + 90 * rng.normal(size=(count, *shape))
    return (np.rint(images) if dtype != "float32" else images - 1000).astype(dtype)


@pytest.mark.parametrize(("shape", "period"), [((41, 67), 4), ((9, 301), 4), ((6, 4), 1), ((3, 700), 8)])
@pytest.mark.parametrize("dtype", ["float32", "uint16"])
def test_sums_of_rows(host_builds, rng, shape, period, dtype):
    images = images_of(rng, 3, shape, dtype)
    rows = images[:, ::period].astype(np.float64)
    sums = guarded(np.full((3, rows.shape[1], 2), np.nan))
    run_kernel(host_builds, row_sums_launch(3 * rows.shape[1], dtype), (guarded(images), sums), (*shape, period))
    assert guards_are_whole(sums)
    expected = np.stack([rows.sum(axis=2), (rows * rows).sum(axis=2)], axis=2)
    np.testing.assert_allclose(sums, expected, rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize("deviation", [0.02, 0.3])
@pytest.mark.parametrize("dtype", ["float32", "uint16"])
@pytest.mark.parametrize("each", [False, True])
def test_tiles_agree_as_array_operations_say(host_builds, monkeypatch, deviation, dtype, each):
    """Kernels and what is made of their sums say the same of a scene of which a part shows something else."""
    drift = np.array([(0, 0), (1.5, -2.25), (3.25, 1), (-4.5, 4)])
    stack = drifting(drift, (101, 123), width=0.06)
    stack[1:, 20:70, 30:80] = stack[0, 45:95, 5:55]
    stack = 1000 + 50 * (stack + noise(stack, deviation))
    stack = (np.rint(stack) if dtype == "uint16" else stack).astype(dtype)
    images = stack[:1].repeat(3, axis=0) if each else stack[:1]
    shifts = -drift[1:]
    shifts[1] = np.nan
    expected = tiles.look(images, stack[1:], shifts)
    run_on_host(monkeypatch, host_builds, tile_sums, tile_verdict, row_sums)
    monkeypatch.setattr(tiles, "is_device_array", lambda _: True)
    found = tiles.look(images, stack[1:], shifts)
    np.testing.assert_array_equal(found.tiles, expected.tiles)
    assert (found.tiles == DIFFERS).any()
    np.testing.assert_allclose(found.alike, expected.alike)
    np.testing.assert_allclose(found.edges, expected.edges, rtol=1e-5)


@pytest.mark.parametrize(("count", "tiles_of"), [(3, (5, 9)), (2, (17, 23))])
@pytest.mark.parametrize("correlated", [1.0, 14.1])
def test_verdicts_by_sums(host_builds, monkeypatch, rng, count, tiles_of, correlated):
    """Of scenes that turn by little, of which some tiles differ; with tiles that no frame covers."""
    size, shape = 8, (8 * tiles_of[0] + 3, 8 * tiles_of[1] + 5)
    grid = (4 * tiles_of[0] + 1, 4 * tiles_of[1] + 2)
    y, x = np.mgrid[: grid[0], : grid[1]]
    waves = np.sin(y / 2.1 + 0.4 * np.sin(x / 3)), np.cos(x / 2.3 + 0.3 * np.sin(y / 5))
    g = np.repeat((waves[0] + waves[1])[None], count, axis=0)
    turn = np.array([0.0, 0.03, -0.02])[:count, None, None]
    middle_y, middle_x = grid[0] / 2, grid[1] / 2
    slope_y, slope_x = np.gradient(g[0])
    f = g + turn * ((x - middle_x) * slope_y - (y - middle_y) * slope_x) + 0.01 * rng.normal(size=g.shape)
    f[0, :9, :14] = rng.normal(size=(9, 14))
    whole = np.array([(0, 0), (5, -9), (-3, 2)])[:count]
    sums = sums_over_tiles(f, g, rng.uniform(-0.1, 0.1, (count, 2)), size // 2, tiles_of)
    level, known = np.full(count, 1e-4), np.arange(count) != 2
    covered = covered_by(shape, size, tiles_of, whole)
    expected = judged(sums, covered, (size // 2) ** 2, level, correlated, known)
    edges = edge_offsets(sums, covered & known[:, None, None], size, shape)
    assert (expected[0] == DIFFERS).any()
    assert edges.max() > 0.02
    run_on_host(monkeypatch, host_builds, tile_verdict)
    smoothed = correlated > 1
    limits = LIMITS._replace(correlated=correlated)
    levels = np.full((count, 3), np.nan)
    levels[:, 2] = level * (2 * correlated if smoothed else 1.0) / 2
    offsets = np.where(known[:, None], np.zeros((count, 2)), np.nan)
    both = guarded(levels), guarded(levels[:1])
    arrays = guarded(sums), guarded(whole.astype(np.int32)), guarded(offsets)
    found = tile_verdict.started_verdict(*arrays, both, shape, size, limits, smoothed=smoothed)()
    np.testing.assert_array_equal(found.tiles, expected[0])
    np.testing.assert_allclose(found.alike, expected[1])
    np.testing.assert_allclose(found.edges, edges, rtol=1e-6)
    np.testing.assert_allclose(found.noise, levels[:, 2])
