"""Frequencies of a canvas on which frames lie, and the classes in which power is counted."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, array_namespace, fft_namespace, to_host

_RINGS = 24
"""Of frequencies up to 0.6 cycles per pixel; one more for the lowest, where light is, and"""
_LIGHT = 0.0125
"""cycles per pixel up to which it reaches."""
_LINES = 2.5
"""Frequencies beside an axis that lines which do not reach from rim to rim have their power in."""


@dataclass(frozen=True)
class Frequencies:
    """Half planes of spectra of real images (h, w) on a canvas with room for a motion.

    Rings of frequencies are classes of their own; the axes, where rows and columns have all of their power, and
    those next to them, are apart.
    """

    shape: tuple[int, int]
    room: int
    """Pixels on each side."""
    like: Array
    """An array of the kind and type that images have."""

    @cached_property
    def size(self) -> tuple[int, int]:
        """Rows and columns of the canvas, at which an FFT is quick."""
        fft = fft_namespace(self.like)
        rows, columns = (int(fft.next_fast_len(side + 2 * self.room)) for side in self.shape)
        return rows, columns

    @cached_property
    def _cycles(self) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
        return np.fft.fftfreq(self.size[0])[:, None], np.fft.rfftfreq(self.size[1])[None]

    @cached_property
    def _k(self) -> tuple[Array, Array]:
        """Radians per pixel along rows and columns, (rows, 1) and (1, columns / 2 + 1)."""
        xp, dtype = array_namespace(self.like), self.like.dtype
        y, x = (xp.asarray((2 * np.pi * each).astype(dtype)) for each in self._cycles)
        return y, x

    @cached_property
    def slopes(self) -> tuple[Array, Array]:
        """The same for every frequency."""
        y, x = self._k
        return y + 0 * x, x + 0 * y

    @cached_property
    def _of_class(self) -> tuple[Array, Array]:
        """Class of each frequency, and how many those of a class are in the whole plane."""
        y, x = self._cycles
        radius = np.hypot(y, x)
        ring = np.where(radius < _LIGHT, _RINGS, np.minimum(radius * 40, _RINGS - 1).astype(np.intp))
        near_y, near_x = (abs(each) < _LINES / size for each, size in zip((y, x), self.size, strict=True))
        axis = np.select(np.broadcast_arrays(x == 0, y == 0, near_x, near_y), [1, 2, 3, 4], 0)
        number = np.unique(ring + (_RINGS + 1) * axis, return_inverse=True)[1].reshape(ring.shape)
        xp = array_namespace(self.like)
        numbers = xp.asarray(number)
        return numbers, xp.bincount(numbers.ravel(), self.halves.ravel())

    @cached_property
    def halves(self) -> Array:
        """How often each frequency is in the whole plane: twice, but for the ends of a row."""
        y, x = self._cycles
        ends = np.where((x == 0) | (x == 0.5), 1.0, 2.0) * np.ones_like(y)
        return array_namespace(self.like).asarray(ends.astype(self.like.dtype))

    def mean(self, power: Array) -> Array:
        """Give each frequency the mean of a power over its class."""
        xp = array_namespace(power)
        numbers, count = self._of_class
        sums = xp.bincount(numbers.ravel(), (power * self.halves).ravel())
        return (sums / count).astype(self.like.dtype)[numbers]

    def spectra(self, images: Array) -> Array:
        """Of images (n, h, w) or (h, w), with nothing around them."""
        xp, fft = array_namespace(images), fft_namespace(images)
        around = [(self.room, size - self.room - side) for size, side in zip(self.size, self.shape, strict=True)]
        return fft.rfft2(xp.pad(images, [(0, 0)] * (images.ndim - 2) + around))

    def images(self, spectra: Array) -> Array:
        """The part of a canvas that frames show."""
        whole = fft_namespace(spectra).irfft2(spectra, self.size)
        return whole[..., self.room : self.room + self.shape[0], self.room : self.room + self.shape[1]]

    def phases(self, shifts: NDArray[np.float64]) -> Array:
        """By which a spectrum is multiplied that moves by -shifts (n, 2)."""
        xp = array_namespace(self.like)
        d = xp.asarray(shifts)
        kind = np.result_type(self.like.dtype, np.complex64)
        down, across = (xp.exp(1j * k * d[:, axis, None, None]).astype(kind) for axis, k in enumerate(self._k))
        return down * across

    def total(self, values: Array) -> Any:
        """Sum over the whole plane of (..., rows, columns / 2 + 1), on the host."""
        sums = (values * self.halves).sum(axis=(-2, -1), dtype=np.float64)
        return to_host(array_namespace(self.like).asarray(sums))
