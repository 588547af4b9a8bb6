"""Errors that neighbouring tiles share: none where tiles are independent, the true variance where they are not."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import ndimage

import xcorr_app as xc
from xcorr_app.registration.standard_error.correlated_tiles import Contributions, excess_variance

Floats = NDArray[np.float64]
ROWS, COLUMNS, FRAMES = 9, 11, 12


def _contributions(rng: np.random.Generator, displaced: Floats, noise: Floats, weights: Floats) -> Contributions:
    """Of tiles displaced by (frames + 1, 2, tiles), the reference's last, each with noise of its own."""
    seen = (
        displaced[:-1]
        - displaced[-1]
        + noise * (rng.normal(size=displaced[:-1].shape) - rng.normal(size=displaced[-1].shape))
    )
    errors = weights * seen
    errors -= weights * errors.sum(axis=2, keepdims=True)
    row, column = np.mgrid[:ROWS, :COLUMNS]
    return Contributions(errors, weights, np.stack([row.ravel(), column.ravel()], axis=1).astype(float))


def _weights(rng: np.random.Generator) -> Floats:
    weights = rng.gamma(1.5, size=(2, ROWS * COLUMNS))
    return weights / weights.sum(axis=1, keepdims=True)


def _air(rng: np.random.Generator, size: float) -> Floats:
    """Displacements (FRAMES + 1, 2, tiles) with deviation one, alike over a Gaussian of this deviation, in tiles."""
    noise = rng.normal(size=(FRAMES + 1, 2, 40, 40))
    smooth = ndimage.gaussian_filter(noise, (0, 0, size / np.sqrt(2), size / np.sqrt(2)), mode="wrap")
    return (smooth / smooth.std())[..., :ROWS, :COLUMNS].reshape(FRAMES + 1, 2, -1)


def test_independent_tiles_share_next_to_nothing() -> None:
    """Uneven noise, and a reference whose noise is in every frame, are no correlation: what chance adds is small."""
    rng, tiles = np.random.default_rng(11), (FRAMES + 1, 2, ROWS * COLUMNS)
    series = [_contributions(rng, np.zeros(tiles), rng.gamma(1.0, size=tiles[2]), _weights(rng)) for _ in range(40)]
    added = [excess_variance(found) / (found.errors**2).sum(axis=2).mean(axis=0) for found in series]
    assert np.median(added) == 0
    assert np.mean(added) < 0.2


@pytest.mark.share(3)
@pytest.mark.parametrize("size", [0.8, 1.3, 2.0])
def test_variance_of_alike_displacements(size: float) -> None:
    """Of many series the excess is, in the mean, the variance of the weighted mean displacement."""
    rng = np.random.default_rng(12)
    found, true = [], []
    for _ in range(40):
        weights, displaced = _weights(rng), _air(rng, size)
        excess = excess_variance(_contributions(rng, displaced, np.full(ROWS * COLUMNS, 1.0), weights))
        shifts = (weights * (displaced[:-1] - displaced[-1])).sum(axis=2)
        # Tiles one by one account for their own displacements.
        true.append((shifts**2).mean(axis=0) - 2 * (weights**2).sum(axis=1))
        found.append(excess)
    assert np.mean(found) == pytest.approx(np.mean(true), rel=0.35)


def _seen_through_air(seed: int, amplitude: float) -> tuple[NDArray[np.uint16], Floats]:
    """Frames displaced by a field alike over 20 px, and their true shifts."""
    rng = np.random.default_rng(seed)
    scene = ndimage.spline_filter(
        ndimage.gaussian_filter(rng.normal(size=(170, 180)), 1.8, mode="wrap"), mode="grid-wrap"
    )
    scene /= scene.std()
    y, x = np.mgrid[:128, :141].astype(float)
    places, frames = rng.uniform(-5, 5, (9, 2)), []
    places[0] = 0
    for py, px in places:
        air = ndimage.gaussian_filter(rng.normal(size=(2, 128, 141)), (0, 8, 8), mode="wrap")
        air *= amplitude / air.std()
        at = [y - py + air[0] + 20, x - px + air[1] + 20]
        frames.append(
            ndimage.map_coordinates(scene, at, mode="grid-wrap", prefilter=False) + rng.normal(0, 0.1, y.shape)
        )
    return (1000 + 200 * np.array(frames)).round().astype(np.uint16), -places


def _found_through_air(
    seeds: range, amplitude: float, some: list[list[int]]
) -> tuple[list[xc.ShiftResult], Floats, Floats]:
    """Results of some of the frames, their errors, and these over standard errors."""
    parts = [
        (xc.estimate_shifts(frames[few], verify="all"), shifts[few])
        for frames, shifts in (_seen_through_air(seed, amplitude) for seed in seeds)
        for few in some
    ]
    errors = np.concatenate([(result.shifts - shifts)[1:] for result, shifts in parts])
    return [part[0] for part in parts], errors, np.abs(errors / np.concatenate([part[0].sigma[1:] for part in parts]))


@pytest.mark.parametrize(
    ("some", "most"), [([list(range(9))], 0.85), ([[0, t] for t in range(1, 6)], 0.8)], ids=["series", "pairs"]
)
def test_standard_errors_through_air(some: list[list[int]], most: float) -> None:
    """Errors of frames seen through air are of the size that is told; without air nothing is added."""
    _, _, deviates = _found_through_air(range(6), 0.4, some)
    assert 0.5 < (deviates < 1).mean() < 0.9
    assert (deviates < 2).mean() > most
    assert xc.estimate_shifts(_seen_through_air(7, 0.0)[0], verify="none").sigma.max() < 0.01


def test_parts_that_air_displaces_are_no_second_motion() -> None:
    """Without those that air displaces most, frames would be where the others lie by chance, and too sure of it."""
    results, errors, deviates = _found_through_air(range(20, 25), 0.7, [list(range(9))])
    for result in results:
        assert result.trusted.all()
        assert not any("a part of the picture" in note for note in result.notes)
        assert np.abs(result.shifts - result.fft_shifts)[1:].max() < 0.01
    assert np.sqrt(np.mean(np.square(errors))) < 0.205
    assert (deviates < 1).mean() > 0.55
    assert (deviates < 2).mean() > 0.85


def test_a_scene_that_grows_a_little_has_a_sure_middle() -> None:
    """Its tiles are off alike, by what growing moves them: the shift is that of the middle, which it does not bend."""
    rng = np.random.default_rng(4)
    still = ndimage.gaussian_filter(rng.normal(size=(150, 150)), 2)
    frames = []
    for i in range(10):
        size = 1 + 0.0004 * i
        offset = 74.5 * (1 - 1 / size)
        frames.append(ndimage.affine_transform(still / still.std(), np.eye(2) / size, [offset] * 2, mode="reflect"))
    found = xc.estimate_shifts(np.array(frames) + rng.normal(size=(10, 150, 150)) / 5)
    assert np.median(found.sigma[1:]) < 0.015
    assert np.sqrt(np.mean((found.shifts[1:] / found.sigma[1:]) ** 2)) < 1.5
