"""The one solver: Gauss-Newton on the zero-mean normalised correlation, over the pixels that count.

Images are looked at through the motions found so far; what they do not share with their references, whatever their gain
and offset, is explained by small changes of the references, whose slopes stay the same (Baker and Matthews 2004, doi
10.1023/B:VISI.0000011205.11775.fd; Pan, Li and Tong 2013, doi 10.1007/s11340-013-9717-6). n motions at once, of whole
frames or of windows; those that are settled take no part in further steps. Pixels are looked at where they are, on the
host or a device; the few equations of each motion are solved on the host.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, array_namespace, to_host
from xcorr_app.registration.solver.basis import Basis, corner_moves, slopes_of
from xcorr_app.registration.warping.matrices import Matrix

Floats = NDArray[np.float64]
Numbers = NDArray[np.intp]

_CONDITION = 1e-7
"""Smallest eigenvalue of a normal matrix over the largest: below, some motion changes nothing."""
_MIN_SCORE = 0.02
"""Correlation that steps are made longer by at most: of less, nothing is known of how noisy slopes are."""
FEWEST = 64
"""Pixels that are worth comparing."""
FARTHEST = 1.0
"""Pixels from a peak, where refining starts, beyond which another place was found."""
_TILES, _SIDES = 64, (8, 32)
"""Tiles that an image is divided into, about, and the least and largest of their sides in pixels: larger than what
neighbouring pixels share."""


class View(Protocol):
    """Images and what they are compared with: n items of one shape."""

    reference: Array
    """(n or 1, h, w) of float32."""
    changes: Array
    """(n or 1, k, h w) of the references by the numbers of a basis, places counted in half sides."""

    def weight(self, motions: Matrix, items: Numbers) -> Array:
        """Weights (m, h, w) of 0 and 1, float32, of some of the items: of the pixels that count in both."""
        ...

    def warped(self, motions: Matrix, items: Numbers) -> Array:
        """Some of the items (m, h, w) as they are seen through motions (m, 3, 3)."""
        ...


class Residuals(NamedTuple):
    """What images and their references do not share, of n items."""

    residual: Array
    """(n, h, w), in the units of the references; zero where not compared."""
    score: Floats
    """(n,) zero-mean normalised correlation."""
    gain: Floats
    """(n,) by which images are multiplied."""
    pixels: Floats


class Fits(NamedTuple):
    """n refined motions and how well they hold."""

    motion: Matrix
    """(n, 3, 3)"""
    score: Floats
    """(n,) zero-mean normalised correlation; NaN where too little is seen."""
    converged: NDArray[np.bool_]
    definite: NDArray[np.bool_]
    """(n,) whether every number of the motion changes the image."""
    pixels: Floats
    """(n,) that were compared."""
    covariance: Floats
    """(n, k, k) of the numbers, pixels and radians, for residuals that are independent."""


def dots(one: Array, other: Array) -> Floats:
    """Sums of products (n,) of images (n, h, w), those of one or of the other may be the same for all."""
    if array_namespace(one) is np:
        products = one.reshape(len(one), 1, -1) @ other.reshape(len(other), -1, 1)
        return np.asarray(products[:, 0, 0], np.float64)
    return np.asarray(to_host((one * other).sum(axis=(1, 2), dtype=np.float64)))


def compared(reference: Array, warped: Array, weight: Array, *, attenuated: bool = False) -> Residuals:
    """Compare images (n, h, w) with references (n or 1, h, w) by their weights.

    The gain is that of their deviations, or `attenuated` by the noise of the references as their slopes are by it: then
    steps are as long as they should be, whatever the noise, and far from the solution they are too long.
    """
    xp = array_namespace(warped)
    pixels = to_host(weight.sum(axis=(1, 2), dtype=np.float64))

    def centred(image: Array) -> Array:
        mean = (dots(weight, image) / np.maximum(pixels, 1)).astype(np.float32)
        found = image - xp.asarray(mean)[:, None, None]
        found *= weight
        return found

    one, other = centred(warped), centred(reference)
    both, own, power = dots(one, other), dots(one, one), dots(other, other)
    score = np.where((own > 0) & (power > 0), both / np.sqrt(np.maximum(own * power, 1e-300)), np.nan)
    gain = np.sqrt(np.where(own > 0, power, 0.0) / np.maximum(own, 1e-300))
    if attenuated:
        gain = gain / np.maximum(score, _MIN_SCORE)
    one *= xp.asarray(np.nan_to_num(gain, nan=1.0).astype(np.float32))[:, None, None]
    one -= other
    return Residuals(one, score, gain, pixels)


@dataclass
class Solver:
    """Motions of a basis for the items of a view."""

    view: View
    basis: Basis
    converged: float
    """Pixels that a corner moves in a step after which a motion is settled."""
    farthest: float = np.inf
    """Pixels from the start beyond which another place was found."""
    fewest: float = FEWEST
    """Pixels that must be compared."""

    def __post_init__(self) -> None:
        shape = self.view.reference.shape[1:]
        self._shape = int(shape[0]), int(shape[1])
        self._scale = np.where(np.arange(len(self.basis.numbers)) < 2, 1.0, 2.0 / max(shape))

    def fitted(self, start: Matrix, steps: NDArray[np.intp] | int) -> Fits:
        """Refine motions (n, 3, 3) in up to so many steps, a number or (n,)."""
        count, motion = len(start), start.copy()
        steps = np.broadcast_to(steps, count)
        weight = self.view.weight(motion, np.arange(count))
        normal = self._normal(weight)
        pixels = to_host(weight.sum(axis=(1, 2), dtype=np.float64))
        comparable = (pixels >= self.fewest) & np.isfinite(start).all(axis=(1, 2))
        eigenvalues = np.linalg.eigvalsh(np.where(np.isfinite(normal).all(axis=(1, 2), keepdims=True), normal, 0.0))
        definite = comparable & (eigenvalues[:, 0] > _CONDITION * eigenvalues[:, -1])
        inverse = np.linalg.inv(np.where(definite[:, None, None], normal, np.eye(len(self._scale))))
        score, power, converged = np.full(count, np.nan), np.full(count, np.nan), np.zeros(count, dtype=bool)
        going, step = comparable.copy(), 0
        while going.any():
            items = self._looked_at(going)
            found = compared(
                rows_of(self.view.reference, items), self.view.warped(motion[items], items), rows_of(weight, items)
            )
            right = to_host(rows_of(self.view.changes, items) @ found.residual.reshape(len(items), -1, 1))[:, :, 0]
            left = dots(found.residual, found.residual)
            live = going[items]
            rows, right = items[live], right[live]
            score[rows], power[rows] = found.score[live], left[live]
            going[rows] = definite[rows] & (steps[rows] > step) & (score[rows] > 0)  # not turned inside out
            change = (inverse[rows] @ right[:, :, None])[:, :, 0] * self._scale
            after = motion[rows] @ np.linalg.inv(self.basis.step(change))
            near = np.abs(after - start[rows])[:, :2, 2].max(axis=1, initial=0) < self.farthest
            moves = going[rows] & near
            still = moves & (corner_moves(after - motion[rows], self._shape) < self.converged)
            motion[rows[moves]] = after[moves]
            converged[rows], going[rows] = still, moves & ~still
            step += 1
        variance = power / np.maximum(pixels - len(self._scale) - 2, 1)
        covariance = inverse * np.outer(self._scale, self._scale) * variance[:, None, None]
        covariance[~definite] = np.nan
        return Fits(motion, score, converged, definite, np.where(comparable, pixels, 0.0), covariance)

    def _looked_at(self, going: NDArray[np.bool_]) -> Numbers:
        """Items that are looked at; of frames on a device all are, so that what comes of one depends on no other."""
        together = len(self.view.reference) == 1 and array_namespace(self.view.reference) is not np
        return np.arange(going.size) if together else np.flatnonzero(going)

    def scatter(self, motion: Matrix, items: Numbers, tiles: int = _TILES) -> Floats:
        """Covariances (n, k, k) of motions of some items, for residuals that neighbours share and that differ.

        Slopes of image and reference have the scene in common, and no noise: their products take the place of the
        squares of the reference's. Sums over tiles show how much the sum of all scatters (White 1980, doi
        10.2307/1912934, with tiles as clusters).
        """
        warped, weight = self.view.warped(motion, items), self.view.weight(motion, items)
        reference = rows_of(self.view.reference, items)
        found = compared(reference, warped, weight)
        changes = rows_of(self.view.changes, items), self.basis.changes(slopes_of(warped))
        own, other = (_weighted(each, weight) for each in changes)
        shared = to_host(own @ other.transpose(0, 2, 1)).astype(np.float64) * found.gain[:, None, None]
        shared = (shared + shared.transpose(0, 2, 1)) / 2
        bad = ~(np.linalg.eigvalsh(np.nan_to_num(shared))[:, 0] > 0)
        inverse = np.linalg.inv(np.where(bad[:, None, None], np.eye(len(self._scale)), shared))
        sums = _over_tiles(own.reshape(*own.shape[:2], *self._shape) * found.residual[:, None], tiles)
        seen_tiles = (_over_tiles(weight[:, None], tiles) > 0).sum(axis=2)[:, :, None]
        few = seen_tiles / np.maximum(seen_tiles - len(self._scale) - 1, 1)
        covariance: Floats = inverse @ (sums @ sums.transpose(0, 2, 1)) @ inverse * few
        covariance *= np.outer(self._scale, self._scale)
        covariance[bad] = np.inf
        return covariance

    def _normal(self, weight: Array) -> Floats:
        """Normal matrices (n, k, k)."""
        flat = weight.reshape(len(weight), 1, -1)
        products = to_host((self.view.changes * flat) @ self.view.changes.transpose(0, 2, 1)).astype(np.float64)
        sums = to_host(self.view.changes @ flat.transpose(0, 2, 1)).astype(np.float64)
        pixels = to_host(flat.sum(axis=2, keepdims=True, dtype=np.float64))
        return np.asarray(products - sums @ sums.transpose(0, 2, 1) / np.maximum(pixels, 1))


def rows_of(images: Array, items: Numbers) -> Array:
    """Those of some items, of images (n, ...) or the same for all."""
    if len(images) == 1 or len(images) == len(items):
        return images
    return images[array_namespace(images).asarray(items)]


def _weighted(changes: Array, weight: Array) -> Array:
    """Changes less their means over the pixels that count."""
    flat = weight.reshape(len(weight), 1, -1)
    pixels = array_namespace(weight).maximum(flat.sum(axis=2, keepdims=True), 1)
    means = (changes @ flat.transpose(0, 2, 1)) / pixels
    return (changes - means) * flat


def _over_tiles(values: Array, tiles: int) -> Floats:
    """Sums (n, k, tiles) of images (n, k, h, w) over about so many tiles."""
    xp, shape = array_namespace(values), values.shape
    side = int(np.clip(np.sqrt(shape[2] * shape[3] / tiles), *_SIDES))
    padded = xp.pad(values, [(0, 0), (0, 0), *((0, -size % side) for size in shape[2:])])
    blocks = padded.reshape(*shape[:2], padded.shape[2] // side, side, -1, side).sum(axis=(3, 5), dtype=np.float64)
    return np.asarray(to_host(blocks.reshape(*shape[:2], -1)))
