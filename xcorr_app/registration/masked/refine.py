"""Between whole pixels, where only some pixels count: scores around a peak, all of the same pixels.

The scores of a plane are of other pixels at every shift: near a mask's edge that bends the peak. Here the nine scores
around a peak are of those pixels of the image that meet pixels that count at all nine shifts. What their fit leaves is
found by a Gauss-Newton step: the frame, moved by the fit, is explained by the image, its slopes and an offset.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from xcorr_app.correlation.subpixel import refine
from xcorr_app.gpu.runtime.arrays import Array, array_namespace, to_host
from xcorr_app.registration.standard_error.uncertainty import AT_EDGES

_FEWEST = 64
"""Pixels below which nothing is refined."""
_TILES, _SIDES = 64, (8, 32)
"""Tiles that pixels are divided into, about, and the least and largest of their sides in pixels: larger than what
neighbouring pixels share, if they can be."""
_LARGEST_STEP = 0.5
"""Pixels that the fit is off by at most."""
_TAPS = np.arange(-3.0, 5.0)
"""Pixels beside a place that its interpolation takes."""
_LEFT_BY_STEP = 0.25
"""Share of a step that may be left, by the interpolation between pixels: standard errors contain it."""


class Refined(NamedTuple):
    """One frame's shift between whole pixels."""

    shift: NDArray[np.float64]
    score: float
    sigma: NDArray[np.float64]
    """(2,) standard errors in pixels: of least squares in the slopes of the image, residuals being as alike as here."""


class Refinement:
    """Refines whole shifts of frames against an image (h, w), standardised, of which some pixels count."""

    def __init__(self, image: Array, counts: Array, method: str) -> None:
        self._image, self._counts, self._method = image, counts, method
        self._slopes, self._inner = _slopes(image), _inner(counts)

    def of(self, frame: Array, frame_counts: Array, peak: tuple[int, int]) -> Refined:
        """Refine a whole shift, to be added to a frame (h, w), standardised, to land on the image."""
        nothing = Refined(np.array(peak, np.float64), np.nan, np.full(2, np.nan))
        place = rows, columns = _meeting(self._image.shape[0], peak[0]), _meeting(self._image.shape[1], peak[1])
        if rows.stop - rows.start < 3 or columns.stop - columns.start < 3:
            return nothing
        there = [slice(part.start - by, part.stop - by) for part, by in zip(place, peak, strict=True)]
        # A larger shift looks at earlier pixels of the frame.
        nine = [
            tuple(slice(part.start - by, part.stop - by) for part, by in zip(there, (dy, dx), strict=True))
            for dy in (-1, 0, 1)
            for dx in (-1, 0, 1)
        ]
        counts = self._counts[place].copy()
        for at in nine:
            counts &= frame_counts[at]
        number = float(counts.sum())
        if number < _FEWEST:
            return nothing
        image, weight = self._image[place], counts.astype(np.float32)
        own = (image - np.float32(_dot(image, weight) / number)) * weight
        power, squares = _dot(own, own), frame * frame
        scores = []
        for at in nine:
            variance = _dot(squares[at], weight) - _dot(frame[at], weight) ** 2 / number
            scores.append(_dot(own, frame[at]) / np.sqrt(max(power * variance, 1e-300)))
        offset, height = refine(np.array(scores).reshape(1, 3, 3), self._method, 1)
        shift, score = np.array(peak) + to_host(offset)[0], float(to_host(height)[0])
        if self._method == "gaussian" and (found := self._step(frame, frame_counts, shift)) is not None:
            step, sigma = found
            if np.abs(step).max() < _LARGEST_STEP:
                # Of a step no longer than its error little is known, and the fit has less of the noise.
                step *= step**2 / (step**2 + sigma**2)
                return Refined(shift + step, score, np.hypot(sigma, _LEFT_BY_STEP * np.abs(step)))
        _, sigma = self._explained(place, frame[nine[4]], counts)
        return Refined(shift, score, sigma)

    def _step(
        self, frame: Array, frame_counts: Array, shift: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        """By how much a shift is off, and its standard errors; None where too few pixels meet."""
        whole = np.floor(-shift).astype(int)
        taps = [_taps(float(part)) for part in -shift - whole]
        # Rows and columns of the image that meet pixels of the frame with all that their interpolation takes.
        place, there = [], []
        for by, size in zip(whole.tolist(), frame.shape, strict=True):
            first = by + int(_TAPS[0])
            begin, end = max(0, -first), min(size, size - first - _TAPS.size + 1)
            if end - begin < 3:
                return None
            place.append(slice(begin, end))
            there.append(slice(begin + first, end + first + _TAPS.size - 1))
        values, counts = frame[there[0], there[1]], frame_counts[there[0], there[1]]
        for axis, weights in enumerate(taps):
            values, counts = _along(values, counts, weights, axis)
        counts = counts & self._counts[place[0], place[1]]
        if float(counts.sum()) < _FEWEST:
            return None
        step, sigma = self._explained((place[0], place[1]), values, counts)
        return None if np.isnan(step).any() else (step, sigma)

    def _explained(
        self, place: tuple[slice, slice], frame: Array, counts: Array
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """By how much a frame is off the image, and the standard errors of that.

        What a gain and an offset of the image leave of the frame is explained by the slopes of the image. How much of
        these is the scene's, and no noise, is told by the slopes of the frame. Standard errors are of what is left, and
        of what enters and leaves at the edges of what counts, which nothing left shows.
        """
        unknown = np.full(2, np.nan), np.full(2, np.nan)
        image = self._image[place]
        weight = (_inner(counts) & self._inner[place]).astype(np.float32)
        number = _dot(weight, weight)
        if number < _FEWEST:
            return unknown
        of_image = [slope[place] * weight for slope in self._slopes]
        of_frame = [slope * weight for slope in _slopes(frame)]
        one = (image - np.float32(_dot(image, weight) / number)) * weight
        other = (frame - np.float32(_dot(frame, weight) / number)) * weight
        gain = _dot(one, other) / max(_dot(one, one), 1e-300)
        shared = np.array([[_dot(a, b) for b in of_frame] for a in of_image])
        shared = (shared + shared.T) / 2
        if gain <= 0 or not (np.linalg.eigvalsh(shared) > 0).all():
            return unknown
        residual = other - np.float32(gain) * one
        step = np.linalg.solve(shared, [_dot(slope, residual) for slope in of_image])
        for part, slope in zip(step.tolist(), of_frame, strict=True):
            residual = residual - np.float32(part) * slope
        sums = np.stack([_over_tiles(slope * residual, number) for slope in of_image])
        tiles = int((_over_tiles(weight, number) > 0).sum())
        inverse = np.linalg.inv(shared) * np.sqrt(tiles / max(tiles - 3, 1))
        variance = ((inverse @ sums) ** 2).sum(axis=1)
        return step, np.sqrt(variance + AT_EDGES**2 / number)


def _over_tiles(values: Array, number: float) -> NDArray[np.float64]:
    """Sums of values (h, w), a `number` of which count, over tiles, whose scatter is the error of the whole."""
    xp, side = array_namespace(values), int(np.clip(np.sqrt(number / _TILES), *_SIDES))
    rim = [(0, -size % side) for size in values.shape]
    padded = xp.pad(values, rim)
    blocks: Array = padded.reshape(padded.shape[0] // side, side, -1, side).sum(axis=(1, 3), dtype=np.float64)
    sums: NDArray[np.float64] = to_host(blocks).ravel()
    return sums


def _slopes(image: Array) -> tuple[Array, Array]:
    """Slopes of an image (h, w) down and across, zero on its rim: of 3 x 3 pixels, as those of the fit to a plane."""
    xp = array_namespace(image)
    down, across = xp.zeros_like(image), xp.zeros_like(image)
    rows, columns = image[:, :-2] + image[:, 1:-1] + image[:, 2:], image[:-2] + image[1:-1] + image[2:]
    down[1:-1, 1:-1] = (rows[2:] - rows[:-2]) / 6
    across[1:-1, 1:-1] = (columns[:, 2:] - columns[:, :-2]) / 6
    return down, across


def _inner(counts: Array) -> Array:
    """Which pixels (h, w) count with all around them."""
    inner = array_namespace(counts).zeros_like(counts)
    rows = counts[:-2] & counts[1:-1] & counts[2:]
    inner[1:-1, 1:-1] = rows[:, :-2] & rows[:, 1:-1] & rows[:, 2:]
    return inner


def _taps(fraction: float) -> list[float]:
    """Weights of pixels for a place between them: of polynomials, which have no error where a scene is smooth."""
    others = [np.delete(_TAPS, i) for i in range(_TAPS.size)]
    return [float(np.prod((fraction - rest) / (tap - rest))) for tap, rest in zip(_TAPS, others, strict=True)]


def _along(values: Array, counts: Array, taps: list[float], axis: int) -> tuple[Array, Array]:
    """Interpolated values along an axis, and which of them are of pixels that all count."""
    length = values.shape[axis] - len(taps) + 1
    parts = [(slice(None),) * axis + (slice(first, first + length),) for first in range(len(taps))]
    counted = counts[parts[0]]
    for part in parts[1:]:
        counted = counted & counts[part]
    return sum(values[part] * np.float32(tap) for part, tap in zip(parts, taps, strict=True)), counted


def _meeting(size: int, shift: int) -> slice:
    """Lines of the image that meet lines of the frame at a shift, one more and one less."""
    return slice(max(shift + 1, 0), min(size + shift - 1, size))


def _dot(one: Array, other: Array) -> float:
    """Sum of products (h, w), row by row in their precision and over rows in float64."""
    if array_namespace(one) is np:
        return float((one[:, None, :] @ other[:, :, None]).sum(dtype=np.float64))
    return float((one * other).sum(dtype=np.float64))
