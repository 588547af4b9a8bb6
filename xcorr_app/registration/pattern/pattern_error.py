"""By how much shifts are less sure because the pattern taken off the frames was found by these very shifts.

The pattern follows from the shifts assumed: with errors e_t of n frames, whose scene S moves by phases
``f_t = exp(i k d_t)`` of mean m, the pattern found is off by

    - i k S a mean over t of e_t (f_t - m),    a = (1 - (1 - w (1 - |m|^2))^rounds) / (1 - |m|^2),

a for the rounds of ``pattern/layers.py``, 1 / (1 - |m|^2) were there many. What is left of it
in frame t and in the reference, of phase 1, moves the peak of their correlation by J e, where

    J_ts = mean over k of Re a (conj(f_t) - 1) (f_s - m) / n,  with the weight of each frequency in the peak.

Shifts and pattern that agree have the error ``(1 - J)^-1 e`` in place of the error e of shifts over a known pattern.

What frames moved by fractions of pixels, and seen in part, leave in a pattern bends all of a frame alike, however
little noise there is: by a share of the width of the peak.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, array_namespace, fft_namespace, to_host
from xcorr_app.registration.pattern.layer_spectra import fading
from xcorr_app.registration.pattern.layers import share_found

_GRID = 128
"""Frequencies along an axis."""
_NOISE_BEYOND = 0.4
"""Cycles per pixel beyond which the scene shows noise alone."""
_MIN_WEIGHT = 1e-4
_OF_REFERENCE = 0.5
"""Share of the variance of a shift that all shifts have in common: the reference is as noisy as a frame."""
_OF_WIDTH = 4e-4
"""Share of the width of the peak that a pattern taken off bends shifts by; of spots and speckle of 512 x 512 pixels."""
_AT_REST = 1e-4
_AT_ONCE = 256

Floats = NDArray[np.float64]


def less_sure(shifts: Floats, taken: Floats, scene: Array, rounds: int) -> Floats:
    """Factor (T, 2) on the standard errors of shifts (T, 2), NaN where there is none.

    Parameters
    ----------
    shifts : ndarray, shape (T, 2)
        Of all frames, without the pattern.
    taken : ndarray, shape (n, 2)
        Of the frames that the pattern was taken from.
    scene : ndarray, shape (h, w)
        Less the pattern, the mean of those frames.
    rounds : int
        In which the pattern was found.
    """
    k, power = _frequencies(scene, len(taken))
    phase = np.exp(1j * (taken @ k))
    mean = phase.mean(axis=0)
    found = share_found(mean, rounds) / np.maximum(1 - np.abs(mean) ** 2, 1e-12)
    # The reference has no error against itself.
    moves = np.abs(taken).max(axis=1) > _AT_REST
    into_pattern = ((phase - mean) * found)[moves].T / len(taken)
    factor = np.full(shifts.shape, np.nan)
    known = np.flatnonzero(np.isfinite(shifts).all(axis=1))
    for axis in range(2):
        weight = k[axis] ** 2 * power
        weight /= weight.sum()

        def into_shifts(some: Floats, weight: Floats = weight) -> Floats:
            return np.asarray((((np.exp(-1j * (some @ k)) - 1) * weight) @ into_pattern).real)

        count = int(moves.sum())
        both = (1 - _OF_REFERENCE) * np.eye(count) + _OF_REFERENCE
        settled = np.linalg.inv(np.eye(count) - into_shifts(taken[moves]))
        for first in range(0, known.size, _AT_ONCE):
            some = known[first : first + _AT_ONCE]
            carried = into_shifts(shifts[some]) @ settled
            same = np.abs(shifts[some][:, None] - taken[moves]).max(axis=2) < _AT_REST
            shared = np.where(same, 1.0, _OF_REFERENCE)
            variance = 1 + 2 * (carried * shared).sum(axis=1) + ((carried @ both) * carried).sum(axis=1)
            factor[some, axis] = np.sqrt(np.maximum(variance, 1.0))
    return factor


def error_left(scene: Array, count: int) -> Floats:
    """Error (2,) in pixels that a pattern leaves in shifts, of a scene (h, w), the mean of so many frames."""
    k, power = _frequencies(scene, count)
    error: Floats = _OF_WIDTH * np.sqrt(power.sum() / (k * k * power).sum(axis=1))
    return error


def _frequencies(scene: Array, count: int) -> tuple[Floats, Floats]:
    """Frequencies (2, n) that count, in radians per pixel, and how much they do (n,)."""
    rows, columns = (2 * np.pi * each for each in (np.fft.fftfreq(_GRID), np.fft.rfftfreq(_GRID)))
    of_rows, of_columns = np.broadcast_arrays(rows[:, None], columns)
    power = _weight(scene, count, np.hypot(of_rows, of_columns) / (2 * np.pi))
    kept = power > _MIN_WEIGHT * power.max()
    return np.stack([of_rows[kept], of_columns[kept]]), power[kept]


def _weight(scene: Array, count: int, frequency: Floats) -> Floats:
    """How much frequencies (...) of a scene (h, w), the mean of so many frames, count in a correlation."""
    xp, fft = array_namespace(scene), fft_namespace(scene)
    height, width = scene.shape
    window = xp.asarray((fading(height)[:, None] * fading(width)).astype(scene.dtype))
    spectrum = to_host(fft.rfft2((scene - scene.mean()) * window))
    of_scene = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width))
    ring = np.rint(of_scene * _GRID).astype(np.intp).ravel()
    rings = np.bincount(ring, (np.abs(spectrum) ** 2).ravel()) / np.maximum(np.bincount(ring), 1)
    noise = float(rings[int(_NOISE_BEYOND * _GRID) :].mean())
    power = np.maximum(rings - noise, 0.0)
    weight = power**2 / np.maximum(power + count * noise, 1e-300)
    return np.interp(frequency * _GRID, np.arange(weight.size), weight) * (frequency > 0)
