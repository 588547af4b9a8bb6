"""Which of two shifts of a frame more of its tiles prefer.

The frame is moved by both, and every tile of the reference is fitted by either, with a gain and a plane of its own:
neither uneven light, even if that moves, nor a few bright things count for more than what is beside them. Of each tile
the two sums of squares left are compared (the F test); noise counts alike in both.
"""

import math

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, to_host
from xcorr_app.registration.moving.apply import shift_frames
from xcorr_app.registration.stack.prefilter import Prefilter

MIN_VOTES = 3
"""Tiles that prefer a shift, for it to be preferred."""
_SIGMA = 1.0
"""Pixels of the Gaussian that both images are smoothed by: of what is left, interpolation keeps the variance."""
_REACH = 4 * math.pi * _SIGMA**2
"""Pixels that the noise of one reaches then."""
_TILES, _MIN_TILE_SIDE = 10, 14
"""Tiles along the shorter axis, and the fewest pixels along the side of one."""
_RIM = 4
"""Pixels at the rim of a moved frame that interpolation made up."""
_DEVIATIONS = 3.0
"""Of the logarithm of the ratio of two sums of squares, by which a tile prefers one shift."""
_MIN_LEFT = 0.01
"""Of what a tile shows, below which what is left is none: interpolation leaves as much."""

Image = NDArray[np.float32]


def smoothed(images: Array) -> Image:
    """Images (n, h, w) as they are compared, on the host."""
    return np.asarray(Prefilter("gaussian", (_SIGMA,))(to_host(images).astype(np.float32)))


def moved_by(frame: Image, shifts: NDArray[np.float64]) -> Image:
    """A smoothed frame (h, w) moved by each of the shifts (n, 2)."""
    return np.asarray(
        shift_frames(np.stack([frame] * len(shifts)), shifts, order="lanczos", mode="nearest", workers=1)[0]
    )


def votes(image: Image, moved: Image, both: NDArray[np.float64]) -> tuple[int, int]:
    """How many tiles of a smoothed image (h, w) are fitted far better by the first, or the second, of two shifts.

    A frame was `moved` (2, h, w) by `both` (2, 2).
    """
    parts = []
    for axis, pixels in enumerate(image.shape):
        low = max(0, math.ceil(both[:, axis].max()) + _RIM)
        high = pixels + min(0, math.floor(both[:, axis].min()) - _RIM)
        size = max(_MIN_TILE_SIDE, (high - low) // _TILES)
        count = (high - low) // size
        if count < 1:
            return 0, 0
        parts.append((slice(low, low + count * size), count, size))
    (rows, ny, h), (columns, nx, w) = parts
    tiles = [
        each[rows, columns].reshape(ny, h, nx, w).transpose(0, 2, 1, 3).reshape(ny * nx, h * w).astype(np.float64)
        for each in (image, *moved)
    ]
    plane = np.linalg.qr(np.stack([np.ones(h * w), *np.mgrid[:h, :w].reshape(2, -1)], axis=1))[0]
    g, f, other = (each - each @ plane @ plane.T for each in tiles)
    power = (g * g).sum(axis=1)
    left = [power - (g * each).sum(axis=1) ** 2 / np.maximum((each * each).sum(axis=1), 1e-300) for each in (f, other)]
    # The last of images of one value.
    least_left = np.maximum(_MIN_LEFT * power + 1e-12 * float(power.max()), 1e-300)
    ratio = np.log((left[1] + least_left) / (left[0] + least_left))
    least = _DEVIATIONS * math.sqrt(4 * _REACH / (h * w))
    return int((ratio > least).sum()), int((ratio < -least).sum())
