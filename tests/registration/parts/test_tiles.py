"""Tiles of a frame that move otherwise are found, and lose their vote."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.ndimage import map_coordinates

from tests.registration.scenes import drifting, noise
from xcorr_app import estimate_shifts
from xcorr_app.gpu.runtime.arrays import to_host
from xcorr_app.registration.parts import masks
from xcorr_app.registration.parts.tiles import Grid, agreement, look

DRIFT = np.array([(0, 0), (1.5, -2.25), (3.25, 1), (-4.5, 4), (2, 5.75), (-1, -3.5)])
OTHER = np.array([(0, 0), (-5, 3.5), (6.5, -4), (5, 7), (-7.25, 2), (4, 6)])
SHAPE = (205, 223)


def with_a_part_that_moves_otherwise(deviation, box=(slice(60, 160), slice(70, 175))):
    """A drifting scene with a rectangle of a quarter of it that drifts by itself."""
    stack = drifting(DRIFT, SHAPE, width=0.06)
    other = drifting(OTHER, SHAPE, width=0.06, seed=8)
    for t, (dy, dx) in enumerate(np.rint(OTHER).astype(int)):
        part = slice(box[0].start + dy, box[0].stop + dy), slice(box[1].start + dx, box[1].stop + dx)
        stack[t][part] = other[t][part]
    return stack + noise(stack, deviation)


@pytest.mark.parametrize("shape", [(64, 64), (205, 223), (512, 512), (2048, 300)])
def test_tiles_are_even_and_fit_the_image(shape):
    grid = Grid(shape)
    assert grid.size % 2 == 0
    for pixels, tiles in zip(shape, grid.count, strict=True):
        assert tiles == pixels // grid.size >= 4


def test_small_images_have_no_tiles():
    assert Grid((40, 300)).count == (0, 0)
    seen = look(np.zeros((1, 40, 300)), np.zeros((2, 40, 300)), np.zeros((2, 2)))
    assert seen.tiles.shape == (2, 0, 0)
    assert np.isnan(seen.alike).all()
    assert (seen.edges == 0).all()


@pytest.mark.parametrize("deviation", [0.02, 0.5, 2.0])
def test_a_scene_that_moves_as_one_agrees_everywhere(xp, deviation):
    clean = drifting(DRIFT, SHAPE, width=0.06)
    stack = xp.asarray(1000 + 50 * (clean + noise(clean, deviation)))
    tiles = agreement(stack[:1], stack[1:], -DRIFT[1:])
    assert tiles.dtype == np.float32
    assert tiles.shape == (5, *Grid(SHAPE).count)
    assert np.mean(tiles == 1) > 0.8
    assert np.mean(tiles == 0) < 0.01


@pytest.mark.parametrize("deviation", [0.02, 0.5, 1.0])
def test_the_part_that_moves_otherwise_differs_and_the_rest_agrees(xp, deviation):
    stack = xp.asarray(with_a_part_that_moves_otherwise(deviation).astype(np.float32))
    tiles = agreement(stack[:1], stack[1:], -DRIFT[1:])
    size = Grid(SHAPE).size
    middle, rim = (slice(None), slice(90 // size, 140 // size), slice(100 // size, 150 // size)), np.s_[:, 1:2]
    assert np.mean(tiles[middle] == 0) > 0.9
    assert np.mean(tiles[rim] == 1) > 0.9
    assert masks.two_motions(tiles)


def test_a_part_displaced_by_little_differs():
    stack = drifting([(0, 0)], SHAPE, width=0.06)
    moved = drifting([(0.4, -0.3)], SHAPE, width=0.06)
    frame = stack.copy()
    frame[:, 60:160, 70:175] = moved[:, 60:160, 70:175]
    frame, stack = frame + noise(frame, 0.05, 3), stack + noise(stack, 0.05, 4)
    tiles = agreement(stack, frame, np.zeros((1, 2)))
    size = Grid(SHAPE).size
    assert np.mean(tiles[0, 90 // size : 140 // size, 100 // size : 150 // size] == 0) > 0.9
    assert np.mean(tiles[0, :3] == 1) > 0.9


def test_light_that_changes_is_no_motion():
    clean = drifting([(0, 0), (2, 1)], SHAPE, width=0.06)
    light = np.linspace(0.7, 1.3, SHAPE[1])
    stack = 500 + 20 * clean * np.stack([np.ones_like(light), light])[:, None]
    tiles = agreement(stack[:1], stack[1:], np.array([(-2.0, -1.0)]))
    assert np.mean(tiles == 0) < 0.05


def test_frames_without_a_shift_and_parts_not_covered_cannot_tell():
    stack = drifting([(0, 0), (2, 1), (20, 0)], SHAPE, width=0.06)
    tiles = agreement(stack[:1], stack[1:], np.array([(np.nan, np.nan), (-20.0, 0.0)]))
    assert np.isnan(tiles[0]).all()
    assert np.isnan(tiles[1, -1]).all()
    assert (tiles[1, :-4] == 1).mean() > 0.9


@pytest.mark.share(2)
@pytest.mark.parametrize(("deviation", "limit"), [(0.05, 0.012), (0.5, 0.04)])
def test_a_moving_part_does_not_bend_the_shifts(xp, deviation, limit, monkeypatch):
    stack = xp.asarray(with_a_part_that_moves_otherwise(deviation).astype(np.float32))
    result = estimate_shifts(stack, "first", 16, verify="all")
    error = np.sqrt(np.mean((result.shifts + DRIFT)[1:] ** 2))
    assert error < limit
    assert result.trusted.all()
    assert result.tiles.shape == (6, *Grid(SHAPE).count)
    assert np.isfinite(result.tiles).any(axis=(1, 2)).all()
    assert any("moves otherwise" in note for note in result.notes)
    monkeypatch.setattr(masks, "two_motions", lambda tiles: False)
    whole = estimate_shifts(stack, "first", 16, contrast="none")
    assert np.sqrt(np.mean((whole.shifts + DRIFT)[1:] ** 2)) > 2 * error


def test_a_scene_that_moves_as_one_is_measured_as_a_whole(monkeypatch):
    clean = drifting(DRIFT, SHAPE, width=0.06)
    stack = clean + noise(clean, 0.5)
    result = estimate_shifts(stack, "first", 16)
    assert result.notes == ()
    monkeypatch.setattr("xcorr_app.registration.measuring.measurement.masks.two_motions", lambda tiles: False)
    np.testing.assert_array_equal(result.shifts, estimate_shifts(stack, "first", 16).shifts)


def test_tiles_left_out_are_those_that_differ_here_or_in_most_frames():
    tiles = np.ones((4, 5, 6), dtype=np.float32)
    tiles[:3, 2, 2] = 0  # in most frames
    tiles[1, 0, 0] = 0
    tiles[3, 4, 5] = np.nan
    out = masks.left_out(tiles)
    expected = tiles == 0
    expected[3, 2, 2] = True
    np.testing.assert_array_equal(out, expected)
    tiles[0, :4] = 0  # 24 of 30: what the scene is, is not known
    assert not masks.left_out(tiles)[0].any()
    assert masks.contested(tiles, np.zeros(4, dtype=bool))[0]


def test_windows_of_frame_and_reference_lie_on_the_same_scene(xp):
    shape = (96, 104)
    out = np.zeros((1, *Grid(shape).count), dtype=bool)
    out[0, 3, 4] = True
    like = xp.zeros((1, *shape), dtype=np.float32)
    reference, frame = masks.windows(out, shape, np.array([(5.0, -7.0)]), like, noisy=False)
    reference, frame = to_host(reference)[0], to_host(frame)[0]
    size = Grid(shape).size
    assert reference[3 * size + 2 : 4 * size - 2, 4 * size + 2 : 5 * size - 2].max() < 0.01
    assert reference[: 2 * size].min() == 1
    # Pixel x of the frame lies at x + shift on the reference.
    np.testing.assert_allclose(frame[:-5, 7:], reference[5:, :-7], atol=1e-6)


def test_windowed_images_have_weighted_mean_zero(xp, rng):
    images = xp.asarray(rng.normal(50, 3, (2, 40, 30)).astype(np.float32))
    weights = xp.asarray(rng.uniform(0, 1, (2, 40, 30)).astype(np.float32))
    windowed = to_host(masks.windowed(images, weights))
    assert np.abs(windowed.sum(axis=(1, 2))).max() < 0.05
    np.testing.assert_allclose(np.diff(windowed / to_host(weights)), np.diff(to_host(images)), rtol=2e-3, atol=2e-3)


def test_a_part_is_left_out_only_where_that_is_surer():
    whole, taken = np.full((4, 2), 0.1), np.array([False, True, True, True])
    assert masks.surer(whole, whole / 2, taken)
    assert not masks.surer(whole, whole * 0.99, taken)
    assert not masks.surer(whole, whole / 2, np.zeros(4, dtype=bool))


def test_tiles_of_all_frames_do_not_depend_on_the_size_of_chunks(monkeypatch):
    """Where a part moves otherwise, all are looked at; of the two flat frames each is read with a sound one."""
    stack = np.repeat(with_a_part_that_moves_otherwise(0.05), 2, axis=0)[:9]
    stack[[3, 6]] = 3
    found = []
    for frames in (2, 60):
        monkeypatch.setattr("xcorr_app.registration.stack.passes._PIXELS_PER_CHUNK", frames * SHAPE[0] * SHAPE[1])
        found.append(estimate_shifts(stack, "previous", 24, contrast="none").tiles)
    np.testing.assert_array_equal(*found)
    assert np.isfinite(found[0]).any(axis=(1, 2)).sum() >= 5


@pytest.mark.share(2)
@pytest.mark.parametrize("reference", ["first", "previous"])
def test_tiles_do_not_depend_on_the_size_of_chunks(monkeypatch, reference):
    drift = np.cumsum(np.random.default_rng(3).uniform(-2, 2, (60, 2)), axis=0)
    stack = drifting(drift, (128, 140), width=0.06)
    stack[7] = 3  # flat: of two frames that are read together one is usable
    found = []
    for frames in (1, 2, 60):
        monkeypatch.setattr("xcorr_app.registration.stack.passes._PIXELS_PER_CHUNK", frames * 128 * 140)
        found.append(estimate_shifts(stack, reference, 24, contrast="none").tiles)
    assert np.isfinite(found[0]).any(axis=(1, 2)).sum() > 1
    for tiles in found[:-1]:
        np.testing.assert_array_equal(tiles, found[-1])


def test_particles_that_are_lost_leave_the_scene_the_same(xp):
    """One frame in eight of the scene is left, in every tile; another scene has as much in common in half of them."""
    same, other = (drifting([(0, 0)], SHAPE, width=0.06, seed=seed) for seed in (1, 8))
    frames = np.concatenate([np.sqrt(0.06) * same + np.sqrt(0.94) * other, other])
    alike = look(xp.asarray(same), xp.asarray(frames), np.zeros((2, 2))).alike
    assert alike[0] > 0.85
    assert alike[1] < 0.3


def test_a_part_that_deforms_differs_however_much_tiles_scatter(xp):
    """Displacements rise smoothly to three pixels in the middle: most tiles are displaced against each other."""
    stack = drifting([(0, 0)], SHAPE, width=0.06)
    y, x = np.mgrid[: SHAPE[0], : SHAPE[1]]
    bend = 3 * np.exp(-((y - 100) ** 2 + (x - 110) ** 2) / (2 * 40**2))
    frame = map_coordinates(stack[0], [y, x + bend], order=3, mode="nearest")[None]
    tiles = agreement(xp.asarray(stack), xp.asarray(frame), np.zeros((1, 2)))
    size = Grid(SHAPE).size
    assert (tiles[0, 90 // size : 110 // size, 100 // size : 120 // size] == 0).all()
    assert np.nanmean(tiles[0, :2]) > 0.8
