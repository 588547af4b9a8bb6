"""Errors of neighbouring tiles that are alike: how much less sure shifts are than by tiles that know nothing of others.

Air that shimmers, a flow, tissue that gives way, or lines of a scan that tremble displace parts of a picture that are
larger than a tile of :mod:`xcorr_app.registration.standard_error.uncertainty`. What tiles have in common does not
average out, and the sum of their scatter says too little.

Definition. The contribution of tile k to the error of the shift is u_k = H^-1 t_k, with its slope t_k and the sum H of
what all tiles bend, of G D less what noise adds to it. Its weight w_k, along either axis, is the share of that sum that
is its own; the shift found takes sum u to zero, so that u is seen less w times the true sum: P u, P = 1 - w 1^T. Let
tiles k and l be displaced by C rho_kl in common, rho of one of `_patterns`: discs of several sizes, or bands of rows or
columns. With R_kl = rho_kl for k != l, 0 for k = l, the sum

    Q = sum over frames and pairs of R_kl u_k u_l

is, of independent tiles, what P makes of it (the diagonal of P^T R P, times u_k^2), and

    z = (Q - that) / sqrt(2 sum over pairs of (R_kl sum over frames of u_k u_l)^2)

a standard normal deviate, whatever the noise of each tile is, and although the noise of the reference is the same in
all frames (spatial autocorrelation: Moran 1950, doi 10.2307/2332142). The pattern of the largest z is taken, of both
axes together or one alone. C follows from Q less what independent tiles make of it, which is free of bias for a pattern
that is the true one (the variance components of Henderson 1953, doi 10.2307/3001853); and

    C (sum over pairs w_k w_l rho_kl - sum over tiles of the same of P w w^T rho P^T)

is the variance of the shift beyond the scatter of independent tiles. Of it counts the part 1 - c / z^2 that chance does
not explain, c being the mean square of the largest z of tiles that have nothing in common (James and Stein 1961). Where
frames were found to turn or to bend, the linear motion is fitted to u as well, P is the projection that this leaves,
and the sums of w_k w_l are those of the fitted shift of the middle.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from xcorr_app.correlation.standardize import standardize, working_dtype
from xcorr_app.gpu.runtime.arrays import Array, to_host
from xcorr_app.registration.standard_error.reference_slopes import ReferenceSlopes, Tiles
from xcorr_app.registration.standard_error.uncertainty import frame_sums, unshared

_FEWEST = 12
"""Tiles that all frames have in common, below which nothing is said."""
_BY_CHANCE = 2.6
"""Mean square of the largest of these deviates where tiles have nothing in common: of fourteen, half of them alike."""
_DISCS = 0.6, 1.0, 1.5, 2.0, 3.0
"""Standard deviations of the Gaussian by which displacements are alike, in tiles; wider ones are a motion of all."""
_BANDS = 0.3, 1.0
"""The same of bands, across."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Contributions:
    """What tiles of n frames contribute to the errors of their shifts."""

    errors: Floats
    """(n, 2, tiles) in pixels, along rows and columns, zero in all."""
    weights: Floats
    """(2, tiles), one in all."""
    places: Floats
    """(tiles, 2) of their middles from that of the picture, in tiles."""

    @cached_property
    def patterns(self) -> list[Floats]:
        """Correlations (tiles, tiles) that displacements may have; those of tiles with themselves are left out."""
        down, across = ((self.places[:, None, axis] - self.places[None, :, axis]) ** 2 for axis in (0, 1))
        squares = [(down + across, size) for size in _DISCS] + [
            (each, size) for each in (down, across) for size in _BANDS
        ]
        return [np.exp(-distance / (2 * size**2)) - np.eye(len(down)) for distance, size in squares]


def contributions_of(
    pairs: Iterable[tuple[Array, Array, Floats]],
    kernel: NDArray[np.float64] | None,
    shape: tuple[int, int],
    shifts: Floats,
) -> Contributions | None:
    """Of the tiles that frames of a shape with shifts (n, 2) have in common; None where these are few, or say nothing.

    The frames are the second of each of the pairs, (m, h, w), compared with the first, (1 or m, h, w), at shifts (m, 2)
    that are the third; the kernel weights frequencies.
    """
    grid, found = Tiles.of(shape, every_row=True), list[tuple[Floats, Floats]]()
    inside = grid.inside(np.rint(shifts).astype(np.intp), shape).all(axis=0)
    if inside.sum() < _FEWEST:
        return None
    reference: Array = None
    before: Array = None
    for image, frame, at in pairs:
        # On the host: seldom, of a few frames, and the same wherever frames are.
        images, frames = (standardize(to_host(each), working_dtype(each)).values for each in (image, frame))
        reference = ReferenceSlopes(images, kernel, every_row=True) if image is not before else reference
        before, peak = image, np.rint(at).astype(np.intp)
        sums = frame_sums(frames, reference, peak)
        slopes, bends, gains, _ = unshared(sums, reference, np.broadcast_to(inside, sums.shape[1:]), at - peak)
        with np.errstate(divide="ignore", invalid="ignore"):
            errors = (slopes / gains[:, None, None])[:, :, inside.ravel()]
            found.append((errors, bends[..., inside.ravel()]))
    errors = np.concatenate([each[0] for each in found])
    bends = np.concatenate([each[1] for each in found], axis=1).mean(axis=1).reshape(2, 2, -1)
    total = bends.sum(axis=2)
    if not (np.isfinite(errors).all() and total[0, 0] > 0 and np.linalg.det(total) > 0):
        return None
    of_all = np.linalg.inv(total)
    (row, column), size = np.nonzero(inside), np.array(grid.shape)
    corner = np.stack([np.array(grid.first_rows)[row], grid.left + size[1] * column], axis=1)
    weights = np.einsum("ij,jik->ik", of_all, bends)
    return Contributions(of_all @ errors, weights, corner / size + 0.5 - np.array(shape) / (2 * size))


def excess_variance(found: Contributions, *, linear: bool = False) -> Floats:
    """Variance (2,) of shifts, in square pixels, beyond the scatter of tiles, less what chance does.

    With `linear`, shifts are those of the middle of frames that turn, grow or shear as well.
    """
    fitted = np.hstack([np.ones((len(found.places), 1)), found.places])[:, : 3 if linear else 1]
    common = [
        _CommonErrors(errors, weights, fitted)
        for errors, weights in zip(found.errors.transpose(1, 0, 2), found.weights, strict=True)
    ]
    deviations = np.array([[of_axis.deviate(rho) for of_axis in common] for rho in found.patterns])
    # Air displaces along rows as along columns, a scanner along one alone.
    likely = np.maximum(deviations, deviations.sum(axis=1, keepdims=True) / np.sqrt(2))
    return np.array(
        [
            max(of_axis.variance(found.patterns[best]), 0.0)
            * (1 - _BY_CHANCE / max(likely[best, axis] ** 2, _BY_CHANCE))
            for axis, (of_axis, best) in enumerate(zip(common, likely.argmax(axis=0), strict=True))
        ]
    )


class _CommonErrors:
    """What errors (n, tiles) of tiles of such weights have in common.

    Functions of the place that were `fitted` (tiles, 1 or 3) are seen no more; the first of them is the shift. Of these
    few, what is seen is tiles less a product of two narrow matrices.
    """

    def __init__(self, errors: Floats, weights: Floats, fitted: Floats) -> None:
        self._weights, self._weighted = weights, weights[:, None] * fitted
        self._solved = np.linalg.pinv(fitted.T @ self._weighted) @ fitted.T
        errors = errors - (errors @ self._solved.T) @ self._weighted.T
        self._products = errors.T @ errors / len(errors)
        explained = (self._weighted * self._solved.T).sum(axis=1)
        self._own = np.diag(self._products) / np.maximum(1 - 2 * explained, 0.5)

    def deviate(self, pairs: Floats) -> float:
        """Of the normal distribution, for what tiles have in common by a pattern."""
        shared = pairs * self._products
        chance = float(np.sqrt(2 * (shared**2).sum()))
        return float(shared.sum() - self._through(pairs) @ self._own) / chance if chance > 0 else 0.0

    def variance(self, pairs: Floats) -> float:
        """Return what it adds to that of the shift."""
        of_shift, common = self._solved[0], (pairs + np.eye(len(pairs))) * np.outer(self._weights, self._weights)
        fitted = self._weighted @ (self._solved @ common)
        spread = common - fitted - fitted.T + (fitted @ self._solved.T) @ self._weighted.T
        scatter, through = np.diag(spread), self._through(pairs)
        of_one = float((pairs * spread).sum() - through @ scatter)
        beyond = float((pairs * self._products).sum() - through @ self._own)
        more = float(of_shift @ common @ of_shift - scatter @ of_shift**2)
        return beyond / of_one * more if of_one > 0 else 0.0

    def _through(self, pairs: Floats) -> Floats:
        """What independent tiles have in common by a pattern, since the sum of them is not seen."""
        of_pairs = self._weighted.T @ pairs
        return np.asarray((self._solved * (of_pairs @ self._weighted @ self._solved - 2 * of_pairs)).sum(axis=0))
