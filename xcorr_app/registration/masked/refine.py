"""Between whole pixels, where only some pixels count: scores around a peak, all of the same pixels.

The scores of a plane are of other pixels at every shift: near a mask's edge that bends the peak. Here the nine scores
around a peak are of those pixels of the image that meet pixels that count at all nine shifts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from xcorr_app.correlation.subpixel import refine
from xcorr_app.gpu.runtime.arrays import Array, array_namespace, to_host

_FEWEST = 64


class Refined(NamedTuple):
    """One frame's shift between whole pixels."""

    shift: NDArray[np.float64]
    score: float
    sigma: NDArray[np.float64]
    """(2,) standard errors in pixels: of least squares in the slopes of the image, residuals being as alike as here."""


class Refinement:
    """Refines whole shifts of frames against an image (h, w), standardised, of which some pixels count."""

    def __init__(self, image: Array, counts: Array, method: str) -> None:
        xp = array_namespace(image)
        self._image, self._counts, self._method = image, counts, method
        self._slopes = [xp.zeros_like(image), xp.zeros_like(image)]
        self._slopes[0][1:-1] = (image[2:] - image[:-2]) / 2
        self._slopes[1][:, 1:-1] = (image[:, 2:] - image[:, :-2]) / 2

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
        sigma = self._sigma(place, frame[nine[4]], weight, number)
        return Refined(np.array(peak) + to_host(offset)[0], float(to_host(height)[0]), sigma)

    def _sigma(self, place: tuple[slice, slice], frame: Array, weight: Array, number: float) -> NDArray[np.float64]:
        """Standard errors from what is left of a frame when shifts, a gain and an offset of the image are taken out."""
        images = [slope[place] * weight for slope in self._slopes]
        images += [self._image[place] * weight, weight]
        normal = np.array(
            [[_dot(one, other) for other in images[: i + 1]] + [0.0] * (3 - i) for i, one in enumerate(images)]
        )
        normal += np.tril(normal, -1).T
        if not np.isfinite(normal).all() or np.linalg.matrix_rank(normal, tol=1e-10 * float(np.abs(normal).max())) < 2:
            return np.full(2, np.nan)
        inverse = np.linalg.pinv(normal, rcond=1e-12, hermitian=True)
        numbers = inverse @ [_dot(one, frame) for one in images]
        residual = frame * weight
        for value, one in zip(numbers.tolist(), images, strict=True):
            residual -= np.float32(value) * one
        left = _dot(residual, residual)
        beside = _dot(residual[1:], residual[:-1]) + _dot(residual[:, 1:], residual[:, :-1])
        alike = max(1.0, 1.0 + 2 * beside / max(left, 1e-300))
        variance = left / max(number - 4, 1.0)
        found: NDArray[np.float64] = np.sqrt(np.maximum(np.diag(inverse)[:2] * variance * alike, 0.0))
        return found / abs(numbers[2]) if numbers[2] != 0 else np.full(2, np.nan)


def _meeting(size: int, shift: int) -> slice:
    """Lines of the image that meet lines of the frame at a shift, one more and one less."""
    return slice(max(shift + 1, 0), min(size + shift - 1, size))


def _dot(one: Array, other: Array) -> float:
    """Sum of products (h, w), row by row in their precision and over rows in float64."""
    if array_namespace(one) is np:
        return float((one[:, None, :] @ other[:, :, None]).sum(dtype=np.float64))
    return float((one * other).sum(dtype=np.float64))
