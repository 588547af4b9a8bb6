"""Angle and scale between two images, over the whole range, whatever their shift: the Fourier-Mellin transform.

The magnitude of a spectrum does not change when the image is shifted, and turns and scales with it; on a grid of angles
and logarithms of radii both are shifts, which a zero-mean normalised correlation finds (Reddy and Chatterji 1996, doi
10.1109/83.506761). A magnitude looks the same when turned by half a turn, so that every angle stands for two.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, array_namespace, to_host

_ANGLES = 360
"""Over half a turn."""
_RADII = 128
_INNER, _OUTER = 0.02, 0.35
"""Frequencies that are compared, in cycles a pixel: those below are illumination, those above mostly noise."""
MAX_SCALE = 2.0
"""Largest factor, or its inverse, that is looked for."""


def spectra_of(images: Array) -> Array:
    """Magnitudes of the spectra of images (n, h, w), (n, angles, logarithms of radii), of zero mean along angles.

    Images are looked at under a window that lets their edges go to nothing.
    """
    xp = array_namespace(images)
    height, width = images.shape[1:]
    window = xp.asarray(np.hanning(height + 2)[1:-1, None] * np.hanning(width + 2)[1:-1])
    flat = (images - (images * window).sum(axis=(1, 2), keepdims=True) / window.sum()) * window
    power = xp.abs(flat).mean(axis=(1, 2), keepdims=True) * np.sqrt(height * width)
    magnitude = xp.log1p(xp.abs(xp.fft.fftshift(xp.fft.fft2(flat), axes=(1, 2))) / (power + 1e-300))
    angles = np.arange(_ANGLES) * (np.pi / _ANGLES)
    radii = _INNER * (_OUTER / _INNER) ** (np.arange(_RADII) / (_RADII - 1))
    rows = height // 2 + height * radii * np.cos(angles)[:, None]
    columns = width // 2 + width * radii * np.sin(angles)[:, None]
    grid = _between(magnitude, rows, columns, xp)
    return grid - grid.mean(axis=1, keepdims=True)


def _between(images: Array, rows: NDArray[np.float64], columns: NDArray[np.float64], xp: Any) -> Array:
    """Images (n, h, w), interpolated linearly at places inside them."""
    y, x = (np.floor(places).astype(np.intp) for places in (rows, columns))
    v, u = (xp.asarray(places - whole) for places, whole in ((rows, y), (columns, x)))
    width = images.shape[2]
    flat = images.reshape(len(images), -1)
    corner, below = xp.asarray(y * width + x), xp.asarray((y + 1) * width + x)
    upper = flat[:, corner] * (1 - u) + flat[:, corner + 1] * u
    lower = flat[:, below] * (1 - u) + flat[:, below + 1] * u
    return upper * (1 - v) + lower * v


def turns_between(reference: Array, frames: Array, count: int, *, scales: bool) -> list[list[tuple[float, float]]]:
    """Likely (angle in radians, scale) of the motions from a reference to frames, most likely first.

    Their spectra are given: (1, angles, radii) and (n, angles, radii). Each angle stands for itself and for half a turn
    more. With `scales` not set, the scale is one.
    """
    xp = array_namespace(frames)
    step = np.log(_OUTER / _INNER) / (_RADII - 1)
    reach = int(np.log(MAX_SCALE) / step) if scales else 0
    of_reference, of_frames = xp.fft.rfft(reference, axis=1).conj(), xp.fft.rfft(frames, axis=1)
    squares = [(spectra**2).sum(axis=1) for spectra in (reference, frames)]
    scores = xp.empty((len(frames), 2 * reach + 1, _ANGLES))
    for lag in range(-reach, reach + 1):
        one = slice(max(lag, 0), _RADII + min(lag, 0))
        other = slice(max(-lag, 0), _RADII + min(-lag, 0))
        products = (of_reference[:, :, one] * of_frames[:, :, other]).sum(axis=2)
        power = squares[0][:, one].sum(axis=1) * squares[1][:, other].sum(axis=1)
        power = xp.where(power > 0, power, np.inf)
        scores[:, lag + reach] = xp.fft.irfft(products, _ANGLES, axis=1) / xp.sqrt(power)[:, None]
    peaks = [_highest(scores, xp) for _ in range(count)]
    found: list[list[tuple[float, float]]] = [[] for _ in range(len(frames))]
    for peak in peaks:
        for turns, (height, lag, place) in zip(found, to_host(peak).tolist(), strict=True):
            if np.isfinite(height):
                turns.append((place * np.pi / _ANGLES, float(np.exp((lag - reach) * step))))
    return found


def _highest(scores: Array, xp: Any) -> Array:
    """Of each plane (n, scales, angles) the highest value, its row and its place between angles; then it is blanked."""
    images = xp.arange(len(scores))
    at = scores.reshape(len(scores), -1).argmax(axis=1)
    row, column = at // _ANGLES, at % _ANGLES
    place = column + _vertex(scores[images, row], column)
    found = xp.stack([scores[images, row, column], row, place], axis=1)
    _blank(scores, row, column)
    return found


def _vertex(values: Array, at: Array) -> Array:
    """Where parabolas through values (n, m) at places (n,) and their neighbours, the ends joined, have their vertex."""
    xp = array_namespace(values)
    below, here, above = (xp.take_along_axis(values, (at[:, None] + k) % values.shape[1], 1)[:, 0] for k in (-1, 0, 1))
    bend = below - 2 * here + above
    known = xp.isfinite(bend) & (bend < 0)  # beside a place that was found before there is no value
    found = (xp.where(known, below, 0) - xp.where(known, above, 0)) / (2 * xp.where(known, bend, 1))
    return xp.clip(found, -0.5, 0.5)


def _blank(scores: Array, row: Array, column: Array, angles: int = 12, scales: int = 6) -> None:
    xp = array_namespace(scores)
    rows = abs(xp.arange(scores.shape[1]) - row[:, None]) <= scales
    half = scores.shape[2] // 2
    columns = abs((xp.arange(scores.shape[2]) - column[:, None] + half) % scores.shape[2] - half) <= angles
    scores[rows[:, :, None] & columns[:, None, :]] = -np.inf
