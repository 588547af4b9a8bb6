"""Which tiles move otherwise, and the offset at an edge that a linear motion has."""

import numpy as np
import pytest

from tests.registration.scenes import drifting, noise
from xcorr_app import estimate_shifts
from xcorr_app.registration.parts import masks
from xcorr_app.registration.parts.tile_agreement import edge_offsets
from xcorr_app.registration.parts.tiles import Grid, look

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


@pytest.mark.parametrize("deviation", [0.02, 0.5, 2.0])
def test_a_scene_that_moves_as_one_agrees_everywhere(xp, deviation):
    stack = xp.asarray(1000 + 50 * drifting(DRIFT, SHAPE, width=0.06, noisy=deviation))
    tiles = look(stack[:1], stack[1:], -DRIFT[1:]).tiles
    assert tiles.dtype == np.float32
    assert tiles.shape == (5, *Grid(SHAPE).count)
    assert np.mean(tiles == 1) > 0.8
    assert np.mean(tiles == 0) < 0.01


@pytest.mark.parametrize("deviation", [0.02, 0.5, 1.0])
def test_the_part_that_moves_otherwise_differs_and_the_rest_agrees(xp, deviation):
    stack = xp.asarray(with_a_part_that_moves_otherwise(deviation).astype(np.float32))
    tiles = look(stack[:1], stack[1:], -DRIFT[1:]).tiles
    size = Grid(SHAPE).size
    middle, rim = (slice(None), slice(90 // size, 140 // size), slice(100 // size, 150 // size)), np.s_[:, 1:2]
    assert np.mean(tiles[middle] == 0) > 0.9
    assert np.mean(tiles[rim] == 1) > 0.9
    assert masks.two_motions(tiles)


def test_light_that_changes_is_no_motion():
    light = np.linspace(0.7, 1.3, SHAPE[1])
    stack = 500 + 20 * drifting([(0, 0), (2, 1)], SHAPE, width=0.06) * np.stack([np.ones_like(light), light])[:, None]
    assert np.mean(look(stack[:1], stack[1:], np.array([(-2.0, -1.0)])).tiles == 0) < 0.05


def test_frames_without_a_shift_and_parts_not_covered_cannot_tell():
    stack = drifting([(0, 0), (2, 1), (20, 0)], SHAPE, width=0.06)
    tiles = look(stack[:1], stack[1:], np.array([(np.nan, np.nan), (-20.0, 0.0)])).tiles
    assert np.isnan(tiles[0]).all()
    assert np.isnan(tiles[1, -1]).all()
    assert (tiles[1, :-4] == 1).mean() > 0.9


@pytest.mark.share(2)
@pytest.mark.parametrize(("deviation", "limit"), [(0.05, 0.003), (0.5, 0.015)])
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


SIZE = 16


def sums_of(rng, count, tiles, linear, *, noise, slope=0.0):
    """Sums over tiles of frames that move by `linear` (2, 2) about the centre, and the shape of their image.

    `slope` is what the scene rises by on its way along x, as bright beams do; each tile has a level of its own.
    """
    rows, columns = tiles
    shape = rows * SIZE, columns * SIZE
    y, x = ((np.arange(n) + 0.5) * SIZE - pixels / 2 for n, pixels in zip(tiles, shape, strict=True))
    places = np.stack(np.meshgrid(y, x, indexing="ij"), axis=-1)
    displacement = places @ np.asarray(linear).T
    bins = (SIZE // 2) ** 2
    gy, gx = rng.normal(size=(2, count, rows, columns, bins))
    gx = gx + slope
    rest = gy * displacement[..., :1] + gx * displacement[..., 1:] + rng.normal(0, noise, gy.shape)
    rest = rest + rng.normal(0, 5, (count, rows, columns, 1))
    sums = np.full((13, count, rows, columns), np.nan)
    for index, values in {
        2: rest,
        6: gy * gy,
        7: gy * gx,
        8: gx * gx,
        9: gy * rest,
        10: gx * rest,
        11: gy,
        12: gx,
    }.items():
        sums[index] = values.sum(axis=-1)
    return sums, np.ones((count, rows, columns), dtype=bool), shape


@pytest.mark.parametrize("slope", [0.0, 3.0])
@pytest.mark.parametrize(
    "linear", [((0.02, 0), (0, 0)), ((0, 0), (0, -0.03)), ((0, 0.02), (-0.02, 0)), ((0, 0.04), (0, 0))]
)
def test_the_offset_of_an_edge_is_that_of_the_motion(rng, linear, slope):
    sums, covered, shape = sums_of(rng, 3, (7, 5), linear, noise=0.1, slope=slope)
    expected = np.hypot(*(np.array(linear) * np.array(shape) / 2)).max()
    np.testing.assert_allclose(edge_offsets(sums, covered, SIZE, shape), expected, rtol=0.03)


@pytest.mark.parametrize(("tiles", "most"), [((3, 4), 0.05), ((4, 4), 0.02), ((8, 8), 0.002)])
def test_chance_bends_nothing(rng, tiles, most):
    """Few tiles know little of their own scatter."""
    sums, covered, shape = sums_of(rng, 600, tiles, np.zeros((2, 2)), noise=1.0)
    assert (edge_offsets(sums, covered, SIZE, shape) > 0).mean() <= most
