"""Angle and scale between two images, over the whole range, whatever their shift: the Fourier-Mellin transform.

The magnitude of a spectrum does not change when the image is shifted, and turns and scales with it; on a grid of angles
and logarithms of radii both are shifts, which a zero-mean normalised correlation finds (Reddy and Chatterji 1996, doi
10.1109/83.506761). A magnitude looks the same when turned by half a turn, so that every angle stands for two.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, array_namespace, to_host
from xcorr_app.registration.motion.ndimage import ndimage_of

_ANGLES = 360
"""Over half a turn."""
_RADII = 128
_INNER, _OUTER = 0.02, 0.35
"""Frequencies that are compared, in cycles a pixel: those below are illumination, those above mostly noise."""
MAX_SCALE = 2.0
"""Largest factor, or its inverse, that is looked for."""


@dataclass(frozen=True)
class Spectrum:
    """Magnitude of a spectrum on a grid (angles, logarithms of radii), of zero mean along angles."""

    values: NDArray[np.float64]


def spectrum_of(image: Array) -> Spectrum:
    """Look at an image (h, w) under a window that lets its edges go to nothing."""
    xp = array_namespace(image)
    height, width = image.shape
    window = xp.asarray(np.hanning(height + 2)[1:-1, None] * np.hanning(width + 2)[1:-1])
    flat = (image - (image * window).sum() / window.sum()) * window
    magnitude = xp.log1p(
        xp.abs(xp.fft.fftshift(xp.fft.fft2(flat))) / (float(xp.abs(flat).mean()) * np.sqrt(flat.size) + 1e-300)
    )
    angles = np.arange(_ANGLES) * (np.pi / _ANGLES)
    radii = _INNER * (_OUTER / _INNER) ** (np.arange(_RADII) / (_RADII - 1))
    rows = height // 2 + height * radii * np.cos(angles)[:, None]
    columns = width // 2 + width * radii * np.sin(angles)[:, None]
    grid = ndimage_of(xp).map_coordinates(magnitude, xp.asarray(np.stack([rows, columns])), order=1, mode="wrap")
    return Spectrum(to_host(grid - grid.mean(axis=0)).astype(np.float64))


def turns_between(reference: Spectrum, frame: Spectrum, count: int, *, scales: bool) -> list[tuple[float, float]]:
    """Likely (angle in radians, scale) of the motion from reference to frame, most likely first.

    Each angle stands for itself and for half a turn more. With `scales` not set, the scale is one.
    """
    step = np.log(_OUTER / _INNER) / (_RADII - 1)
    reach = int(np.log(MAX_SCALE) / step) if scales else 0
    of_reference, of_frame = np.fft.rfft(reference.values, axis=0), np.fft.rfft(frame.values, axis=0)
    scores = np.empty((2 * reach + 1, _ANGLES))
    for lag in range(-reach, reach + 1):
        one = slice(max(lag, 0), _RADII + min(lag, 0))
        other = slice(max(-lag, 0), _RADII + min(-lag, 0))
        products = (of_reference[:, one].conj() * of_frame[:, other]).sum(axis=1)
        power = (reference.values[:, one] ** 2).sum() * (frame.values[:, other] ** 2).sum()
        scores[lag + reach] = np.fft.irfft(products, _ANGLES) / np.sqrt(power if power > 0 else np.inf)
    found = []
    for _ in range(count):
        at = np.unravel_index(int(scores.argmax()), scores.shape)
        if not np.isfinite(scores[at]):
            break
        lag = int(at[0]) - reach
        angle = (int(at[1]) + _vertex(scores[at[0]], int(at[1]))) * np.pi / _ANGLES
        found.append((angle, float(np.exp(lag * step))))
        _blank(scores, at)
    return found


def _vertex(values: NDArray[np.float64], at: int) -> float:
    """Where a parabola through a value and its neighbours, the ends joined, has its vertex."""
    below, here, above = values[at - 1], values[at], values[(at + 1) % len(values)]
    bend = below - 2 * here + above
    known = np.isfinite(bend) and bend < 0  # beside a place that was found before there is no value
    return float(np.clip((below - above) / (2 * bend), -0.5, 0.5)) if known else 0.0


def _blank(scores: NDArray[np.float64], at: tuple[np.intp, ...], angles: int = 12, scales: int = 6) -> None:
    rows = slice(max(int(at[0]) - scales, 0), int(at[0]) + scales + 1)
    columns = (int(at[1]) + np.arange(-angles, angles + 1)) % scores.shape[1]
    scores[rows, columns] = -np.inf
