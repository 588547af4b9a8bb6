"""What frames share once they are moved onto each other, and where they are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, array_namespace, to_host
from xcorr_app.registration.quality import signal_fraction

_BLOCKS = 8
"""Blocks along each axis whose scatter tells what is chance."""
_GAIN_ROUNDS, _MIN_GAIN = 12, 1e-6


@dataclass(frozen=True)
class Canvas:
    """Where n frames (h, w) lie on the scene: what all of them show, in coordinates of the reference."""

    shape: tuple[int, int]
    shifts: NDArray[np.float64]

    @property
    def whole(self) -> NDArray[np.intp]:
        """(n, 2) whole pixels of the shifts."""
        return np.rint(self.shifts).astype(np.intp)

    @property
    def size(self) -> tuple[int, int]:
        """Rows and columns of the scene."""
        rows, columns = np.ptp(self.whole, axis=0) + self.shape
        return int(rows), int(columns)

    def part(self, t: int) -> tuple[slice, slice]:
        """Return the rows and columns of the scene that frame t shows."""
        y, x = self.whole[t] - self.whole.min(axis=0)
        return slice(int(y), int(y) + self.shape[0]), slice(int(x), int(x) + self.shape[1])

    def gathered(self, frames: Array) -> Array:
        """Sum of frames (n, h, w), each at its place."""
        total = array_namespace(frames).zeros(self.size, frames.dtype)
        for t in range(frames.shape[0]):
            total[self.part(t)] += frames[t]
        return total

    def shown(self, scene: Array) -> Array:
        """What frames (n, h, w) show of a scene."""
        return array_namespace(scene).stack([scene[self.part(t)] for t in range(len(self.shifts))])

    def counted(self, like: Array, weights: Array | float = 1.0) -> Array:
        """In how many frames a place is seen, each with its weight (n, 1, 1); one where in none."""
        xp = array_namespace(like)
        count = self.gathered(xp.broadcast_to(weights * xp.ones_like(like[:1]), like.shape))
        return xp.where(count > 0, count, 1)


@dataclass(frozen=True)
class Shares:
    """What frames show, in units of the variance that they share once aligned."""

    static: float
    """Variance that frames share as they are, beyond what they share once aligned."""
    chance: float
    """Standard error of that, from its scatter among blocks of the frame."""
    unexplained: float
    """Variance that is neither shared by the aligned frames nor white noise."""
    shared: float
    """The variance that they share, in units of `largest` squared."""
    largest: float
    """What frames differ from their mean by at most: its square may lie beyond what a float holds."""

    def times(self, other: Shares) -> float:
        """How much stronger the frames are than others in what they share; 1 where either share nothing."""
        if not (self.shared > 0 and other.shared > 0):
            return 1.0
        return self.shared / other.shared * (self.largest / other.largest) ** 2


def gains(products: NDArray[np.float64]) -> NDArray[np.float64]:
    """How bright the one scene is in each of n frames, in the mean 1, from their products (n, n) with each other.

    What a frame has with itself counts for nothing, since noise is part of it.
    """
    limits = np.finfo(np.float64)
    products = products / max(float(np.diag(products).mean()), limits.tiny)
    own = np.diag(products)
    others = products - np.diag(own)
    # That of frames without noise, from which few rounds are enough however much they differ.
    gain = np.sqrt(own)
    for _ in range(_GAIN_ROUNDS):
        total = float(gain @ gain)  # of one frame that outshines all others no digit is left without it
        gain = others @ gain / np.maximum(total - gain**2, max(float(limits.eps) * total, float(limits.tiny)))
        if not gain.mean() > 0:
            return np.ones(len(products))
        gain = np.maximum(gain / gain.mean(), _MIN_GAIN)
    return gain


def shares(frames: Array, shifts: NDArray[np.float64]) -> Shares:
    """Say what float frames (n, h, w) share when they are moved by whole pixels of their shifts (n, 2), or not moved.

    Products of different frames hold no noise: they are what is shared.
    """
    xp = array_namespace(frames)
    count = frames.shape[0]
    canvas = Canvas((int(frames.shape[1]), int(frames.shape[2])), shifts)
    frames = frames - frames.mean(axis=(1, 2), keepdims=True, dtype=np.float64).astype(frames.dtype)
    # Squares of values near the limit of their type would not fit it; what is said is relative.
    largest = xp.maximum(xp.maximum(frames.max(), -frames.min()), np.finfo(frames.dtype).tiny)
    frames /= largest
    middle = common_parts(canvas)
    aligned = xp.stack([frames[t][part] for t, part in enumerate(middle)])
    # A scene that bleaches is one scene.
    flat = aligned.reshape(count, -1)
    gain = xp.asarray(gains(to_host(flat @ flat.T).astype(np.float64)).astype(frames.dtype))[:, None, None]
    rest = canvas.shown(canvas.gathered(frames * gain) / canvas.counted(frames, gain * gain)) * gain
    xp.subtract(frames, rest, out=rest)
    shared = _shared(aligned).mean()
    static = _shared(rest)
    # Of what is left, not of the frames: columns of a pattern or scene are as white across as noise is.
    left = (signal_fraction(rest) * to_host((rest * rest).mean(axis=(1, 2)))).mean() * (count / (count - 1))
    shared, left, mean, scatter = (float(v) for v in (shared, left, static.mean(), static.std()))
    if not shared > 0:
        return Shares(0.0, np.inf, np.inf, 0.0, float(largest))
    return Shares(mean / shared, scatter / _BLOCKS / shared, left / shared, shared, float(largest))


def common_parts(canvas: Canvas) -> list[tuple[slice, slice]]:
    """Rows and columns of each frame that show what all of them show; of frames that share nothing their first."""
    whole = canvas.whole
    low, high = whole.max(axis=0), whole.min(axis=0) + canvas.shape
    high = np.maximum(high, low + 1)
    parts = []
    for shift in whole:
        (top, left), (bottom, right) = low - shift, high - shift
        parts.append((slice(int(top), int(bottom)), slice(int(left), int(right))))
    return parts


def _shared(frames: Array) -> Array:
    """Mean product of two different frames (n, h, w), for each block of the frame."""
    xp = array_namespace(frames)
    count, height, width = frames.shape
    blocks = min(_BLOCKS, height, width)
    rows, columns = height // blocks * blocks, width // blocks * blocks
    part = frames[:, :rows, :columns]
    if xp is np:
        # One by one, which keeps both sums in the cache.
        total, squares = np.zeros_like(part[0]), np.zeros_like(part[0])
        for frame in part:
            total += frame
            squares += frame * frame
    else:
        total, squares = part.sum(axis=0), (part * part).sum(axis=0)
    products = (total * total - squares) / (count * (count - 1))
    return xp.asarray(products).reshape(blocks, rows // blocks, blocks, columns // blocks).mean(axis=(1, 3))
