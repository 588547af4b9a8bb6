"""The linear part of a motion, fitted to the slopes of tiles: what was put in, and nothing by chance."""

from __future__ import annotations

import numpy as np
import pytest

from xcorr_app.registration.parts.linear_motion import edge_offsets

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
