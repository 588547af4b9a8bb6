"""By how much the light on each place of the scene differs between two frames: a smooth gain and a smooth offset.

A frame moved by its shift shows ``exp(q(x)) g(x) + o(x)``, g being the reference, q and o polynomials. Tile by
tile, the gain is what frame and reference share over what the reference shows, both about their means; q follows from
the gains by least squares (Gauss-Newton), each tile with the weight of what it shows, and o from the means of the
tiles. White noise adds to what the reference shows with itself: it is taken off, as much as
:func:`xcorr_app.registration.quality.signal_fraction` finds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xcorr_app.correlation.standardize import working_dtype
from xcorr_app.gpu.runtime.arrays import Array, array_namespace, is_device_array, to_host
from xcorr_app.registration.columns import Columns
from xcorr_app.registration.parts.tile_agreement import CORRELATED, NOISY, SIGMA
from xcorr_app.registration.parts.tile_bins import MIN_CLEAN, binned, moved
from xcorr_app.registration.parts.tiles import Grid
from xcorr_app.registration.quality import signal_fraction
from xcorr_app.registration.stack.prefilter import Prefilter

_DEGREE = 3
_ROUNDS = 6
_MAX_LOGARITHM = 2.5
"""Of the gain; no light is trusted that differs by more."""
_MIN_COVER = 0.3
"""Share of a tile that a frame covers."""
_RIDGE, _TINY = 1e-9, 1e-30
_MIN_GAIN = 1e-3
_BETWEEN = 0.02
"""Share of what a tile shows by which shifts between whole pixels change it."""
_EXPECTED = (0.0, 0.4, 0.2, 0.1)
"""Size of the coefficients of the logarithm of the gain by their degree: what noise leaves open is taken for less."""

TERMS = tuple((i, j) for i in range(_DEGREE + 1) for j in range(_DEGREE + 1 - i))
"""Degrees along rows and columns of the Legendre polynomials that fields are sums of; the first is constant."""


def basis(places: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """Legendre polynomials (..., degree + 1) at places (...) in pixels along an axis of so many."""
    polynomials = np.polynomial.legendre.legvander(2 * (places + 0.5) / size - 1, _DEGREE)
    return np.asarray(polynomials, dtype=np.float64)


def fields(
    coefficients: NDArray[np.float64], shape: tuple[int, int], shifts: NDArray[np.float64], like: Array
) -> Array:
    """Sums of polynomials (n, terms) on the pixels of frames (n, h, w), which lie on the reference at shifts (n, 2)."""
    xp, dtype = array_namespace(like), working_dtype(like)
    square = np.zeros((len(coefficients), _DEGREE + 1, _DEGREE + 1))
    for k, (i, j) in enumerate(TERMS):
        square[:, i, j] = coefficients[:, k]
    rows, columns = (basis(np.arange(size) + shifts[:, axis, None], size) for axis, size in enumerate(shape))
    return xp.asarray((rows @ square).astype(dtype)) @ xp.asarray(columns.transpose(0, 2, 1).astype(dtype))


@dataclass(frozen=True)
class Light(Columns):
    """What was found of n frames."""

    gain: NDArray[np.float64]
    """(n, terms) logarithm of the gain."""
    offset: NDArray[np.float64]
    """(n, terms)"""
    constant: NDArray[np.float64]
    """(n,) squares of what a constant gain leaves of the tiles, in units of what noise alone would; less what frames
    and reference have in common, as in the next."""
    uneven: NDArray[np.float64]
    """(n,) squares of what the gain leaves."""
    tiles: NDArray[np.intp]
    """(n,) tiles that were looked at."""


class ReferenceLight:
    """A reference (h, w) that frames are compared with, less the polynomial of the light on what it shows."""

    def __init__(self, image: Array) -> None:
        self._grid = grid = Grid((int(image.shape[0]), int(image.shape[1])))
        images = image[None].astype(working_dtype(image))
        level = images.mean(dtype=np.float64).astype(images.dtype)
        # Squares of values of any unit must fit their type.
        self._unit = max(float(abs(images - level).max()), float(np.finfo(images.dtype).tiny))
        images = (images - level) / self._unit
        cover = [
            _Cover.of(np.zeros(1, np.intp), n, grid.count[axis], grid.size // 2) for axis, n in enumerate(grid.shape)
        ]
        means = _means(binned(images), cover)
        self.offset = _fitted(means, np.ones_like(means), _terms(cover, grid.shape))[0]
        """(terms,) of that polynomial."""
        images = images - fields(self.offset[None], grid.shape, np.zeros((1, 2)), images)
        self.offset *= self._unit
        self.offset[0] += float(level)
        variance = to_host((images * images).mean(axis=(1, 2), dtype=np.float64))
        clean = np.maximum(signal_fraction(images), MIN_CLEAN)
        self.noise = float(1 / clean[0] - 1)
        """Variance of its noise over that of the scene."""
        self._variance = (1 - clean) * variance / 4
        self._is_noisy = self.noise / 4 > NOISY
        self._bins = self._smoothed(binned(images))

    @property
    def on_device(self) -> bool:
        """Whether its pixels, and those of frames that are compared with it, are on a device."""
        return is_device_array(self._bins)

    def _smoothed(self, bins: Array) -> Array:
        return Prefilter("gaussian", (SIGMA,))(bins) if self._is_noisy else bins

    def compared(self, frames: Array, shifts: NDArray[np.float64]) -> Light:
        """Fit the light of frames (n, h, w) with shifts (n, 2) onto the reference."""
        grid, size = self._grid, self._grid.size // 2
        whole = np.rint(shifts).astype(np.intp)
        frames = frames.astype(working_dtype(frames))
        level = frames.mean(axis=(1, 2), keepdims=True, dtype=np.float64).astype(frames.dtype)
        frames = (frames - level) / self._unit
        variance = to_host((frames * frames).mean(axis=(1, 2), dtype=np.float64))
        # (2, n): of bins of frames and of the reference.
        noise = np.stack(np.broadcast_arrays((1 - signal_fraction(frames)) * variance / 4, self._variance))
        correlated = 1 / size**2
        if self._is_noisy:
            noise, correlated = noise / (2 * CORRELATED), correlated * CORRELATED
        f, g = self._smoothed(binned(moved(frames, whole))), self._bins
        cover = [_Cover.of(whole[:, axis], n, grid.count[axis], size) for axis, n in enumerate(grid.shape)]
        terms = _terms(cover, grid.shape)
        weight = _counts(cover) / size**2
        weight = np.where(weight > _MIN_COVER, weight, 0.0)
        mean_f, mean_g = _means(f, cover), _means(g, cover)
        shared = _means(f * g, cover) - mean_f * mean_g
        of_f, of_g = noise[..., None]
        own = np.maximum(_means(g * g, cover) - mean_g**2 - of_g, 0.0)
        gain = _gain(shared, own, weight, terms)
        rho = _value(gain, terms)
        expected = correlated * ((of_f + rho**2 * of_g) * own + of_f * of_g)
        expected += (_BETWEEN * rho * np.maximum(own, own.mean(axis=1, keepdims=True))) ** 2
        left = _left(shared, own, weight, terms, weight / (expected + _TINY))
        offset = _fitted(mean_f - rho * mean_g, weight, terms) * self._unit
        offset[:, 0] += to_host(level)[:, 0, 0]
        return Light(gain, offset, *left, (weight > 0).sum(axis=1))


def _fitted(
    values: NDArray[np.float64], weight: NDArray[np.float64], terms: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Coefficients (n, terms) of the polynomials nearest to the values of tiles (n, tiles)."""
    normal = terms.transpose(0, 2, 1) @ (weight[..., None] * terms)
    normal += _RIDGE * np.trace(normal, axis1=1, axis2=2)[:, None, None] * np.eye(normal.shape[1])
    fitted: NDArray[np.float64] = np.linalg.solve(normal, np.einsum("nk,nki->ni", weight * values, terms)[..., None])[
        ..., 0
    ]
    return fitted


def _gain(
    shared: NDArray[np.float64], own: NDArray[np.float64], weight: NDArray[np.float64], terms: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Coefficients (n, terms) of the logarithm of the gain from what tiles (n, tiles) share and show."""
    total = (own * weight).sum(axis=1)
    gain = np.zeros((len(shared), len(TERMS)))
    ratio = (shared * weight).sum(axis=1) / np.maximum(total, _TINY)
    # Where nothing is shared there is no gain.
    shown = (total > 0) & (ratio > _MIN_GAIN) & (ratio < 1 / _MIN_GAIN)
    gain[:, 0] = level = np.log(np.where(shown, ratio, 1.0))
    unit = np.where(shown, total, 1.0)[:, None]
    shared, own = (np.where(shown[:, None], values / unit, 0.0) for values in (shared, own))
    prior = np.array([0.0, *(1 / _EXPECTED[i + j] ** 2 for i, j in TERMS[1:])])
    for _ in range(_ROUNDS):
        rho = _value(gain, terms)
        residual = shared - rho * own
        normal = terms.transpose(0, 2, 1) @ ((rho**2 * own * weight)[..., None] * terms)
        # Variance of a tile of unit weight.
        scatter = (residual**2 * weight).sum(axis=1)
        normal += (scatter[:, None] * prior + _RIDGE)[:, :, None] * np.eye(prior.size)
        right = np.einsum("nk,nki->ni", rho * residual * weight, terms) - scatter[:, None] * prior * gain
        gain = gain + np.clip(np.linalg.solve(normal, right[..., None])[..., 0], -1, 1)
        gain[:, 0] = np.clip(gain[:, 0], level - _MAX_LOGARITHM, level + _MAX_LOGARITHM)
    return gain


def _left(
    shared: NDArray[np.float64],
    own: NDArray[np.float64],
    weight: NDArray[np.float64],
    terms: NDArray[np.float64],
    counts: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Squares (n,) of what a constant gain leaves, and an uneven one; each as it `counts`.

    What the reference shows in a tile is known no better than its noise and fractions of pixels allow, and that is
    wrong against all frames alike: it is taken for their mean, the reference among them.
    """

    def flat(values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Constant gain (n, 1) over what tiles show."""
        shown = np.maximum((values * weight).sum(axis=1, keepdims=True), _TINY)
        return np.asarray((shared * weight).sum(axis=1, keepdims=True) / shown)

    level = flat(own)
    level = np.where(abs(level) > _MIN_GAIN, level, np.inf)
    beside = np.where(np.isfinite(level), shared / level - own, 0.0)
    common = np.maximum(own + (beside * weight).sum(axis=0) / (1 + weight.sum(axis=0)), 0.0)
    gain = _gain(shared, common, weight, terms)
    left = (shared - rho * common for rho in (flat(common), _value(gain, terms)))
    constant, uneven = ((values**2 * counts).sum(axis=1) for values in left)
    return constant, uneven


def _value(gain: NDArray[np.float64], terms: NDArray[np.float64]) -> NDArray[np.float64]:
    """Gain (n, tiles), its logarithm bounded."""
    uneven = np.einsum("nki,ni->nk", terms[..., 1:], gain[:, 1:])
    return np.asarray(np.exp(gain[:, :1] + np.clip(uneven, -_MAX_LOGARITHM, _MAX_LOGARITHM)))


@dataclass(frozen=True)
class _Cover:
    """What of the tiles along an axis n moved frames cover, in bins."""

    weights: NDArray[np.float64]
    """(n, tiles, bins) share of a bin that is covered, of those of the tile."""
    middle: NDArray[np.float64]
    """(n, tiles) of what is covered."""

    @classmethod
    def of(cls, whole: NDArray[np.intp], pixels: int, tiles: int, size: int) -> _Cover:
        """Of frames of so many pixels, moved by whole pixels (n,), on tiles of `size` bins."""
        places = np.arange(2 * tiles * size) - whole[:, None]
        share = ((places >= 0) & (places < pixels)).reshape(len(whole), -1, 2).mean(axis=2)
        weights = np.repeat(np.eye(tiles), size, axis=1) * share[:, None]
        count = weights.sum(axis=2)
        middle = (weights @ np.arange(tiles * size)) / np.where(count > 0, count, 1.0)
        return cls(weights, middle)


def _counts(cover: list[_Cover]) -> NDArray[np.float64]:
    """(n, tiles) bins of each tile that are covered."""
    rows, columns = (along.weights.sum(axis=2) for along in cover)
    return np.asarray((rows[:, :, None] * columns[:, None]).reshape(len(rows), -1))


def _means(bins: Array, cover: list[_Cover]) -> NDArray[np.float64]:
    """Means (n, tiles) of bins (1 or n, h, w) over what is covered of each tile."""
    xp = array_namespace(bins)
    rows, columns = (xp.asarray(along.weights.astype(bins.dtype)) for along in cover)
    sums = to_host(rows @ (bins[:, : rows.shape[2], : columns.shape[2]] @ columns.transpose(0, 2, 1)))
    return np.asarray(sums.reshape(len(rows), -1) / np.maximum(_counts(cover), 1.0))


def _terms(cover: list[_Cover], shape: tuple[int, int]) -> NDArray[np.float64]:
    """Polynomials (n, tiles, terms) in the middle of what is covered of each tile."""
    rows, columns = (basis(2 * along.middle + 0.5, n) for along, n in zip(cover, shape, strict=True))
    terms = np.stack([rows[:, :, None, i] * columns[:, None, :, j] for i, j in TERMS], axis=-1)
    return terms.reshape(len(rows), -1, len(TERMS))
