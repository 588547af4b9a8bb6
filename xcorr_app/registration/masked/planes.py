"""Zero-mean normalised correlation of images of which only some pixels count, over a window of shifts.

At a shift only those pixels take part that count in both images; their number, sums and sums of squares are themselves
correlations with the masks, so that six products of spectra give the plane (Padfield 2012, doi
10.1109/TIP.2011.2181402). A plane element is NaN where too few pixels meet.
"""

from __future__ import annotations

import threading
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from xcorr_app.correlation.engines import choose_engine
from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.gpu.runtime.arrays import Array, array_namespace
from xcorr_app.registration.solver.whole_frames import centred

_VARIANCE = {4: 1e-4, 8: 1e-9}
"""Of an overlap, over that of the image, by the bytes of a number: below, it is rounding."""
_MIN_PIXELS = 4
"""Pixels that must meet."""
_CORRELATED = 24
"""Pixels around each within which an image may resemble itself."""


def standardised(images: Array, counts: Array) -> Array:
    """Images (n, h, w) in float32 of mean zero and variance one over the pixels that count; zero elsewhere."""
    values, _ = centred(images, counts)
    number = array_namespace(images).maximum(counts.sum(axis=(1, 2)), 1)
    deviation = ((values * values).sum(axis=(1, 2), dtype=np.float64) / number) ** 0.5
    values *= (1 / (deviation + (deviation == 0))).astype(np.float32)[:, None, None]
    return values


def correlated_pixels(image: Array, counts: Array) -> float:
    """How many pixels of an image (h, w), standardised, amount to one: the sum of squares of its autocorrelation.

    The variance of the correlation of n pixels of two unrelated images is that over n (Bartlett 1935).
    """
    reach = [min(_CORRELATED, size // 4) for size in image.shape]
    plane, _ = MaskedPlanes(image, counts, ShiftWindow.symmetric(*reach), 0.25).planes(image[None], counts[None])
    xp = array_namespace(image)
    return max(float(xp.where(xp.isnan(plane), 0.0, plane**2).sum(dtype=np.float64)), 1.0)


class MaskedPlanes:
    """Planes of frames against one image.

    Parameters
    ----------
    image, counts : ndarray, shape (h, w)
        The image, zero where not counted, and which of its pixels count; a mean near zero keeps rounding small.
    window : ShiftWindow
        Shifts to be added to a frame to land on the image.
    min_overlap : float
        Share, of the most pixels that meet at any shift of the window, that must meet at a shift.
    dtype : float32 or float64
        Precision. Frames whose overlaps hold too little variance for float32 are computed in float64 all the same.
    """

    def __init__(
        self, image: Array, counts: Array, window: ShiftWindow, min_overlap: float, dtype: DTypeLike = np.float32
    ) -> None:
        xp = array_namespace(image)
        self._arguments = image, counts, window, min_overlap
        self._min_overlap, self._dtype = min_overlap, np.dtype(dtype)
        shape = image.shape[0], image.shape[1]
        self._correlator = choose_engine("fft", xp).bind(shape, shape, window, xp)
        values, mask = image.astype(dtype), counts.astype(dtype)
        self.power = float((values * values).sum(dtype=np.float64)) / max(float(counts.sum()), 1.0)
        """Mean square of the pixels that count: none of an image of one value."""
        self._of_masks = self._correlator.left(xp.stack([mask, values, values * values])[:, None])
        self._known: tuple[Array, tuple[Array, Array, Array]] | None = None
        self._looked_up = threading.Lock()

    @cached_property
    def _exact(self) -> MaskedPlanes:
        return MaskedPlanes(*self._arguments, np.float64)

    def planes(self, frames: Array, counts: Array) -> tuple[Array, Array]:
        """Scores (n, ny, nx) of frames (n, h, w), NaN where too few pixels meet, and how many (n or 1, ny, nx) meet.

        Frames are like the image: zero where not counted.
        """
        xp = array_namespace(frames)
        values = frames.astype(self._dtype, copy=False)
        power = (values * values).sum(axis=(1, 2), dtype=np.float64) / xp.maximum(counts.sum(axis=(1, 2)), 1)
        number, sum_one, squares_one = self._sums_with_masks(counts)
        sum_other, product = self._sums(self._of_masks[:2], values)
        (squares_other,) = self._sums(self._of_masks[:1], values * values)
        meets = number >= xp.maximum(self._min_overlap * number.max(axis=(1, 2), keepdims=True), _MIN_PIXELS)
        safe = xp.maximum(number, 1.0)
        own, others = squares_one - sum_one**2 / safe, squares_other - sum_other**2 / safe
        least, power = _VARIANCE[self._dtype.itemsize], power.astype(self._dtype)[:, None, None]
        varies = (own > least * self.power * safe) & (others > least * power * safe)
        if self._dtype == np.float32 and bool((meets & ~varies).any()):
            return self._exact.planes(frames, counts)
        root = xp.sqrt(xp.where(varies, own * others, 1.0))
        scores = xp.clip(((product - sum_one * sum_other / safe) / root).astype(np.float64), -1.0, 1.0)
        return xp.where(meets & varies, scores, np.nan), number

    def _sums_with_masks(self, counts: Array) -> tuple[Array, Array, Array]:
        """How many pixels meet, and the sums and sums of squares of the image's; of one mask they are kept."""
        if not bool((counts[1:] == counts[:1]).all()):
            return self._of_counts(counts)
        with self._looked_up:  # one thread computes what the others wait for
            if self._known is None or not bool((self._known[0] == counts[0]).all()):
                self._known = counts[0].copy(), self._of_counts(counts[:1])
            return self._known[1]

    def _of_counts(self, counts: Array) -> tuple[Array, Array, Array]:
        number, one, squares = self._sums(self._of_masks, counts.astype(self._dtype))
        return array_namespace(counts).rint(number), one, squares

    def _sums(self, lefts: Any, rights: Array) -> Array:
        """Plain sums (images, n, ny, nx) of images and frames, where they are."""
        return self._correlator.sums(lefts, self._correlator.right(rights[None]))
