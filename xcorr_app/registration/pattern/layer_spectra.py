"""Spectra of a series that may show two layers, and whether they show a pattern that stands still.

Only what lies below the highest frequency that stands out of the noise is looked at, of frames that fade to the rim.
"""

from __future__ import annotations

from copy import copy
from typing import Self

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, array_namespace, fft_namespace, to_host

RIM = 0.15
"""Share of each side over which frames fade."""
_NOISE_BEYOND = 0.4
"""Cycles per pixel beyond which the least noise is read off."""
_DEVIATIONS = 4.0
"""Of the noise in a ring of frequencies, by which frames differ in it where it is looked at."""
_LOWEST_LIMIT, _HIGHEST_LIMIT = 0.05, 0.3
"""Cycles per pixel between which the highest frequency looked at lies."""
_THINNED, _MIN_FREQUENCIES = 8, 250
"""Of so many frequencies one is enough for a first fit, if there are as many of these."""


_GAIN_ROUNDS, _MIN_GAIN = 12, 1e-6

Complex = NDArray[np.complex128]
Floats = NDArray[np.float64]


class LayerSpectra:
    """Spectra of float frames (T, h, w) where they tell layers apart."""

    def __init__(self, frames: Array) -> None:
        self.count, height, width = frames.shape
        self._shape: tuple[int, int] | None = (int(height), int(width))
        window = fading(height)[:, None] * fading(width)
        self._overlap = float((window**4).mean() / (window**2).mean() ** 2)
        power = float((window**2).sum())
        y, x = np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width)[None]
        frequency = np.hypot(y, x)
        # Of columns that are real, each frequency but those of the first has its conjugate left out.
        known = (frequency > 0) & ~((x == 0) & (y < 0))
        ring = np.rint(frequency * min(height, width)).astype(np.intp)
        low = known & (frequency < _HIGHEST_LIMIT)
        self._rim = RIM * min(height, width)
        self._window = window.astype(frames.dtype) / np.sqrt(power)
        beyond = known & (frequency > _NOISE_BEYOND)
        chosen, fine = self._spectra_of(frames, low, beyond)
        noise = float((np.abs(fine - fine.mean(axis=0)) ** 2).mean() * self.count / (self.count - 1))
        # Up to the first ring in which nothing changes but noise.
        rings = Rings(ring[low])
        changes = rings.means(chosen.var(axis=0)) * (self.count / (self.count - 1))
        faint = changes < noise * (1 + _DEVIATIONS / np.sqrt(rings.size * (self.count - 1)))
        faint[: int(_LOWEST_LIMIT * min(height, width))] = False
        last = int(np.argmax(faint)) if faint.any() else faint.size
        kept = ring[low] < last
        self._chosen = low.copy()
        self._chosen[low] = kept
        self._spectra = chosen[:, kept]
        self._mean = self._spectra.mean(axis=0)
        self._rest = self._spectra - self._mean
        self._total = (np.abs(self._rest) ** 2).sum(axis=0)
        self._rings = Rings(ring[low][kept])
        rows, columns = np.broadcast_arrays(y, x)
        self._k = 2 * np.pi * np.stack([rows[low][kept], columns[low][kept]])
        self._grid = 2 * np.pi * y[:, 0], 2 * np.pi * x[0]
        self._places = tuple(place[kept] for place in np.nonzero(low))
        self._noise = np.full(self._mean.size, max(noise, 1e-12 * float(self._total.mean())))
        shared = np.maximum(self._rings.spread(np.abs(self._mean) ** 2) / 2, 1e-3 * self._noise)
        self._begin = self._noise / shared
        self._ratio = self._begin
        """Of noise over scene, by frequency."""

    def thinned(self) -> Self:
        """The same with few of the frequencies: for a first fit, or to see that two layers do not fit at all."""
        few = copy(self)
        few._shape = None
        every = slice(_THINNED // 2, None, _THINNED) if self._mean.size > _THINNED * _MIN_FREQUENCIES else slice(None)
        few._spectra, few._rest = (each[:, every] for each in (self._spectra, self._rest))
        few._mean, few._total, few._noise, few._begin = (
            each[every] for each in (self._mean, self._total, self._noise, self._begin)
        )
        few._ratio = few._begin
        few._rings = Rings(self._rings.number[every])
        few._k = self._k[:, every]
        few._places = tuple(place[every] for place in self._places)
        return few

    def _spectra_of(self, frames: Array, *parts: NDArray[np.bool_]) -> list[Complex]:
        """Spectra of float frames (n, h, w) that fade to the rim, at some frequencies."""
        xp, fft = array_namespace(frames), fft_namespace(frames)
        spectra = fft.rfft2((frames - frames.mean(axis=(1, 2), keepdims=True)) * xp.asarray(self._window))
        spectra = spectra.reshape(frames.shape[0], -1)
        return [to_host(spectra[:, xp.asarray(np.flatnonzero(part))]).astype(np.complex128) for part in parts]

    def evidence(self, shifts: Floats) -> tuple[float, float]:
        """Return the power of a pattern over all that frames share, and by how many deviations it stands out."""
        phase = self._phases(shifts)
        # A change of the light is none of the scene. Frames keep their noise, be they as faint as may be.
        aligned = phase.conj() * self._spectra
        gain = gains((aligned @ aligned.conj().T).real)
        squares = float((gain**2).sum())
        power = (np.abs(self._spectra) ** 2).sum(axis=0)
        moved, still = gain @ aligned, gain @ self._spectra
        mean_phase = (gain**2) @ phase / squares
        known = squares * (1 - np.abs(mean_phase) ** 2)
        product = moved - mean_phase.conj() * still
        one = power - np.abs(moved) ** 2 / squares
        two = power - np.abs(still) ** 2 / squares - np.abs(product) ** 2 / np.maximum(known, 1e-12)
        left = self._rings.spread(two) / (self.count - 2)
        signal = known * self._rings.spread(np.abs(self._mean) ** 2)
        weight = signal / np.maximum(left, 1e-300) / (1 + signal / np.maximum(left, 1e-300))
        excess = (one - two) / np.maximum(left, 1e-300) - 1
        deviations = float((weight * excess).sum() / np.sqrt(max((weight**2).sum() * self._overlap, 1e-300)))
        return float((one - two - left).sum() / max(signal.sum(), 1e-300)), deviations

    def _phases(self, shifts: Floats) -> Complex:
        of_rows, of_columns = (
            np.exp(1j * shift[:, None] * grid)[:, place]
            for shift, grid, place in zip(shifts.T, self._grid, self._places, strict=True)
        )
        phases: Complex = of_rows * of_columns
        return phases


class Rings:
    """Frequencies (n,) by the number of the ring in which they lie."""

    def __init__(self, number: NDArray[np.intp]) -> None:
        self.number = number
        self.size = np.maximum(np.bincount(number), 1)

    def sums(self, values: Floats) -> Floats:
        """Sum over each ring."""
        sums: Floats = np.bincount(self.number, values).astype(np.float64, copy=False)
        return sums

    def means(self, values: Floats) -> Floats:
        """Mean of each ring."""
        mean: Floats = self.sums(values) / self.size
        return mean

    def spread(self, values: Floats) -> Floats:
        """Mean of its ring, at each frequency."""
        return self.means(values)[self.number]


def fading(size: int) -> Floats:
    """Weights (size,) of pixels that fade to zero towards both ends (Tukey's window)."""
    place = (np.arange(size) + 0.5) / size
    to_end = np.minimum(place, 1 - place)
    weights: Floats = np.sin(np.pi / 2 * np.minimum(to_end / RIM, 1)) ** 2
    return weights


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
