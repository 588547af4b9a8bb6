"""Tiles that move otherwise lose their vote: frames and references are measured without them.

A part is left out of the frame and of the reference alike, at the place where the shift says that the one shows the
other: what is compared is one windowed image, moved, with itself, and its window bends nothing. Where that shift is
off, the window pulls at what is found: frames are measured once more with windows at what was found so.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xcorr_app.correlation.standardize import working_dtype
from xcorr_app.gpu.runtime.arrays import Array, array_namespace
from xcorr_app.registration.parts.tile_agreement import DIFFERS
from xcorr_app.registration.parts.tiles import Grid

_SOME = 0.12
"""Share of the tiles that can tell and differ from which a frame shows two motions."""
_MIN_SHARE = 0.03
"""Share of them from which something differs, if only a few things that come and go in noise."""
_MAX_SHARE = 0.6
"""Share beyond which it is not known which of them is the scene's, or whether it is motion at all."""
_MIN_TELLING = 0.3
"""Share of the tiles that can tell, below which what they say is that of a few bright things."""
_MAX_SIGMA_RATIO = 0.95
"""Standard error without a part over that with it, below which the part is better left out."""


@dataclass(frozen=True)
class Parts:
    """What is left out of each frame, (T, rows, columns) of tiles, at shifts (T, 2) already known."""

    out: NDArray[np.bool_]
    shifts: NDArray[np.float64]
    of_images: bool = False
    """They are left out of the references alone, and frames are as they are."""

    def leave_out(self, images: Array, frames: Array, numbers: NDArray[np.intp], *, noisy: bool) -> tuple[Array, Array]:
        """Images (1 or n, h, w) and frames (n, h, w), whose numbers (n,) are given, without those parts."""
        shifts = np.nan_to_num(self.shifts[numbers])
        of_image, of_frames = windows(self.out[numbers], frames.shape[1:], shifts, frames, noisy=noisy)
        return windowed(images, of_image), frames if self.of_images else windowed(frames, of_frames)


def shares(tiles: NDArray[np.float32]) -> NDArray[np.float64]:
    """(T,) share of the tiles that can tell (T, rows, columns) that differ; NaN where none can."""
    told = np.isfinite(tiles).sum(axis=(1, 2))
    return np.asarray((tiles == DIFFERS).sum(axis=(1, 2)) / np.where(told > 0, told, np.nan))


def some_differ(tiles: NDArray[np.float32]) -> bool:
    """Whether, of the frames that were looked at, at least half show parts that differ, however small."""
    share = shares(tiles)
    looked_at = np.isfinite(share)
    return bool(looked_at.any() and 2 * (share[looked_at] >= _MIN_SHARE).sum() >= looked_at.sum())


def most_tell(tiles: NDArray[np.float32]) -> bool:
    """Whether, of the frames that were looked at, a fair share of the tiles can tell: not a few bright things alone."""
    told = np.isfinite(tiles).mean(axis=(1, 2)) if tiles.size else np.zeros(0)
    return not (told > 0).any() or float(np.median(told[told > 0])) >= _MIN_TELLING


def two_motions(tiles: NDArray[np.float32]) -> bool:
    """Whether, of the frames that were looked at, at least half show a part that moves otherwise, and not too large."""
    share = shares(tiles)
    looked_at = np.isfinite(share)
    few = (share >= _SOME) & (share <= _MAX_SHARE)
    return bool(looked_at.any() and 2 * few.sum() >= looked_at.sum())


def left_out(tiles: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Which tiles (T, rows, columns) of each frame are not to be measured.

    Those that differ, in this frame or, since the reference shows something else there, in most frames.
    """
    differs: NDArray[np.bool_] = tiles == DIFFERS
    mostly = 2 * differs.sum(axis=0) > np.isfinite(tiles).sum(axis=0)
    few = shares(np.where(differs | mostly, DIFFERS, tiles)) <= _MAX_SHARE
    out: NDArray[np.bool_] = np.asarray(differs | (mostly & few[:, None, None]))
    out[~(shares(tiles) <= _MAX_SHARE)] = False
    return out


def surer(
    whole: NDArray[np.float64], without: NDArray[np.float64], taken: NDArray[np.bool_], share: float = _MAX_SIGMA_RATIO
) -> bool:
    """Whether standard errors (T, 2) of frames (T,) measured without a part are below that share of those with it.

    What only changes its look, or was taken for a difference by chance, is better kept.
    """
    error = [sigma[taken].max(axis=1) for sigma in (whole, without)]
    known = ~np.isnan(error[0] + error[1])
    if not known.any():
        return bool(taken.any())
    return bool(np.median(error[1][known]) < share * np.median(error[0][known]))


def max_differ(tiles: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Which frames (T,) differ in most of their tiles."""
    return np.asarray(shares(tiles) > _MAX_SHARE)


def outliers(tiles: NDArray[np.float32], partial: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which frames are not to be trusted (T,): what moves otherwise is most of them, or was not left out."""
    return np.asarray(max_differ(tiles) | (~partial & is_outlier_by(shares(tiles))))


def is_outlier_by(share: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether so many tiles (T,) differ that a shift of the whole frame does not stand."""
    return np.asarray(share >= _SOME)


def windows(
    out: NDArray[np.bool_], shape: tuple[int, int], shifts: NDArray[np.float64], like: Array, *, noisy: bool
) -> tuple[Array, Array]:
    """Weights (n, h, w) of the references and of the frames, zero on the tiles left out (n, rows, columns).

    They rise to one between the side of a tile and its middle, in half that where images are `noisy`: there more of
    the picture counts for more than smooth sides. Those of the frames lie where `shifts` (n, 2) say that the frames
    show the same.
    """
    steepness = 4 if noisy else 2
    xp = array_namespace(like)
    size = Grid(shape).size
    dtype = working_dtype(like)
    kept = xp.asarray((~out).astype(dtype))

    def along(axis: int, offset: NDArray[np.float64]) -> Array:
        """Weights (n, pixels, tiles) of linear interpolation between the middles of tiles."""
        count = out.shape[1 + axis]
        place = (np.arange(shape[axis]) + offset[:, None] + 0.5) / size - 0.5
        place = np.clip(place, 0, count - 1)
        near = 1 - np.abs(place[:, :, None] - np.arange(count))
        return xp.asarray(np.maximum(near, 0).astype(dtype))

    pair = []
    for offset in (np.zeros_like(shifts), shifts):
        smooth = along(0, offset[:, 0]) @ kept @ along(1, offset[:, 1]).transpose(0, 2, 1)
        pair.append(xp.clip(steepness * (smooth - 0.5), 0, 1))
    return pair[0], pair[1]


def windowed(images: Array, weights: Array) -> Array:
    """Images (1 or n, h, w) times weights (n, h, w), less their weighted means before."""
    xp = array_namespace(images)
    values = images.astype(weights.dtype, copy=False)
    total = xp.maximum(weights.sum(axis=(1, 2), dtype=np.float64), 1.0)
    mean = (values * weights).sum(axis=(1, 2), dtype=np.float64) / total
    return (values - mean[:, None, None].astype(values.dtype)) * weights


def note(partial: NDArray[np.bool_], tiles: NDArray[np.float32]) -> str:
    """Say of how many frames (T,) a part was left out, and how large it was."""
    share = float(np.nanmedian(shares(tiles[partial])))
    return (
        f"In {int(partial.sum())} of {partial.size} frames a part of the picture (typically {100 * share:.0f} % of it) "
        "moves otherwise than the rest: it was left out of the measurement."
    )
