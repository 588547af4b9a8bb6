"""Between whole pixels, where only some pixels count: scores around a peak, all of the same pixels.

The scores of a plane are of other pixels at every shift: near a mask's edge that bends the peak. Here the nine scores
around a peak are of those pixels of the image that overlap pixels that count at all nine shifts.
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


def refined(
    image: Array, image_counts: Array, frame: Array, frame_counts: Array, peak: tuple[int, int], method: str
) -> Refined:
    """Refine a whole shift, to be added to `frame` to land on `image`; both (h, w) without their means, float64."""
    xp = array_namespace(image)
    nothing = Refined(np.array(peak, np.float64), np.nan, np.full(2, np.nan))
    rows, columns = (_overlap(size, shift) for size, shift in zip(image.shape, peak, strict=True))
    if rows.stop - rows.start < 3 or columns.stop - columns.start < 3:
        return nothing
    there = [slice(part.start - shift, part.stop - shift) for part, shift in zip((rows, columns), peak, strict=True)]
    counts = image_counts[rows, columns]
    moved = []
    for dy in (-1, 0, 1):
        for dx in (-1, 0, 1):
            # A larger shift looks at earlier pixels of the frame.
            at = (slice(there[0].start - dy, there[0].stop - dy), slice(there[1].start - dx, there[1].stop - dx))
            moved.append(frame[at])
            counts = counts & frame_counts[at]
    number = float(counts.sum())
    if number < _FEWEST:
        return nothing
    weight = counts.astype(np.float64)
    own = _centred(image[rows, columns], weight, number)
    others = [_centred(values, weight, number) for values in moved]
    power = (own * own).sum()
    scores = [(own * other).sum() / xp.sqrt(xp.maximum(power * (other * other).sum(), 1e-300)) for other in others]
    near = to_host(xp.stack(scores)).reshape(1, 3, 3)
    offset, height = refine(near, method, 1)
    sigma = _sigma(image[rows, columns], others[4], weight, number)
    return Refined(np.array(peak) + to_host(offset)[0], float(to_host(height)[0]), sigma)


def _overlap(size: int, shift: int) -> slice:
    """Lines of the image that overlap lines of the frame at a shift, one more and one less."""
    return slice(max(shift + 1, 0), min(size + shift - 1, size))


def _centred(values: Array, weight: Array, number: float) -> Array:
    return (values - float((values * weight).sum()) / number) * weight


def _sigma(image: Array, frame: Array, weight: Array, number: float) -> NDArray[np.float64]:
    """Standard errors from what is left of the frame when shifts, a gain and an offset of the image are taken out."""
    xp = array_namespace(image)
    slopes = [xp.zeros_like(image), xp.zeros_like(image)]
    slopes[0][1:-1] = (image[2:] - image[:-2]) / 2
    slopes[1][:, 1:-1] = (image[:, 2:] - image[:, :-2]) / 2
    parts = xp.stack([*slopes, image, xp.ones_like(image)]).reshape(4, -1) * weight.reshape(-1)
    normal = to_host(parts @ parts.T)
    values = frame.reshape(-1)
    if not np.isfinite(normal).all() or np.linalg.matrix_rank(normal, tol=1e-10 * float(np.abs(normal).max())) < 2:
        return np.full(2, np.nan)
    inverse = np.linalg.pinv(normal, rcond=1e-12, hermitian=True)
    numbers = inverse @ to_host(parts @ values)
    gain = float(numbers[2])
    residual = ((values - xp.asarray(numbers) @ parts) * weight.reshape(-1)).reshape(image.shape)
    variance = float((residual * residual).sum()) / max(number - 4, 1.0)
    beside = float((residual[1:] * residual[:-1]).sum()) + float((residual[:, 1:] * residual[:, :-1]).sum())
    alike = max(1.0, 1.0 + 2 * beside / max(float((residual * residual).sum()), 1e-300))
    found: NDArray[np.float64] = np.sqrt(np.maximum(np.diag(inverse)[:2] * variance * alike, 0.0))
    return found / abs(gain) if gain != 0 else np.full(2, np.nan)
