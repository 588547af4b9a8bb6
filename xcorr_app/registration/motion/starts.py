"""Where refining starts: the likeliest of a few motions, looked at on small images.

Angle and scale are found over the whole range, whatever the shift, by the Fourier-Mellin transform: the magnitude of a
spectrum does not change when the image is shifted, and turns and scales with it; on a grid of angles and logarithms of
radii both are shifts, which a zero-mean normalised correlation finds (Reddy and Chatterji 1996, doi
10.1109/83.506761). A magnitude looks the same when turned by half a turn, so that every angle stands for two.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from xcorr_app.correlation.plane import cross_correlate
from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.gpu.runtime.arrays import Array, array_namespace, to_host
from xcorr_app.registration.solver.basis import Basis, corner_moves
from xcorr_app.registration.solver.sampling import sampled_through
from xcorr_app.registration.solver.whole_frames import Level
from xcorr_app.registration.warping.device_warp import ndimage_of
from xcorr_app.registration.warping.matrices import Matrix, translated, turned

_ANGLES, _RADII = 360, 128
"""Over half a turn; from the inner frequency to the outer one."""
_INNER, _OUTER = 0.02, 0.35
"""Frequencies that are compared, in cycles a pixel: those below are illumination, those above mostly noise."""
_MAX_SCALE = 2.0
"""Largest factor, or its inverse, that is looked for."""
_TURNS, _NEIGHBOURS = 3, (6, 12)
"""Peaks of the log-polar plane that are tried, each at two angles; around each so many scales and angles are its."""
_AS_LIKELY = 0.85
"""Share of the best candidate's score from which another is refined too."""
_TRIED = 3
"""Candidates that are refined at most."""
_MIN_OVERLAP = 0.3
"""Share of the small copy that a shift leaves at least."""


def likely_motions(
    level: Level,
    basis: Basis,
    spectrum: Array | None,
    frames: Array,
    known: Sequence[Sequence[Matrix]],
    shape: tuple[int, int],
) -> list[list[Matrix]]:
    """Motions to refine of frames (n, h, w), likeliest first: those that fit about as well, far from each other.

    At the size of the frames as they are, `shape`; `level` is a small copy of the reference of the size of `frames`,
    `spectrum` its `log_polar` where frames may turn. `known` are motions of others, to be tried too.
    """
    window = ShiftWindow.symmetric(*(size // 2 for size in level.shape))
    turns = [np.eye(3)[None] for _ in known]
    if spectrum is not None:
        found = _turns_between(spectrum, log_polar(frames), scales=basis.scales)
        turns = [np.concatenate(each) for each in zip(turns, found, strict=True)]
    for i, others in enumerate(known):
        still = [motion * ([[1, 1, 0]] * 2 + [[1, 1, 1]]) for motion in others]  # without their shifts
        turns[i] = np.concatenate([turns[i], *(each[None] for each in still)])
    xp, numbers = array_namespace(frames), np.repeat(np.arange(len(turns)), [len(each) for each in turns])
    linear = np.concatenate(turns)
    seen = frames - frames.mean(axis=(1, 2), keepdims=True)
    seen = sampled_through(seen[xp.asarray(numbers)].astype(np.float32), linear, 1, outside=0.0)
    planes = cross_correlate(
        seen, level.image[None], "n-to-m", max_shift=window, min_overlap=_MIN_OVERLAP, check_finite=False
    ).reshape(len(linear), -1)
    planes = xp.where(xp.isfinite(planes), planes, -np.inf)
    row, column = np.divmod(to_host(planes.argmax(axis=1)), window.shape[1])
    moved = translated(-np.stack([row + window.dy_min, column + window.dx_min], axis=1))
    motions, scores = linear @ moved, to_host(planes.max(axis=1))
    motions[:, :2, 2] *= level.factor
    return [_likely(motions[numbers == number], scores[numbers == number], shape) for number in range(len(turns))]


def _likely(motions: Matrix, scores: NDArray[np.float64], shape: tuple[int, int]) -> list[Matrix]:
    """The likeliest of motions (m, 3, 3) of frames of a shape, and those as likely that are not the same."""
    best, *others = np.argsort(-scores, kind="stable")
    tried = [motions[best]]
    for row in others:
        if scores[row] >= _AS_LIKELY * scores[best] and all(apart(motions[row], other, shape) for other in tried):
            tried.append(motions[row])
    return tried[:_TRIED]


def apart(one: Matrix, other: Matrix, shape: tuple[int, int]) -> bool:
    """Whether two motions take a corner of a frame to places farther apart than a few hundredths of its side."""
    return bool(corner_moves(one - other, shape) > max(2.0, 0.03 * max(shape)))


def log_polar(images: Array) -> Array:
    """Magnitudes of the spectra of images (n, h, w), (n, angles, logarithms of radii), of zero mean along angles.

    Images are looked at under a window that lets their edges go to nothing.
    """
    xp = array_namespace(images)
    height, width = images.shape[1:]
    window = xp.asarray(np.hanning(height + 2)[1:-1, None] * np.hanning(width + 2)[1:-1])
    flat = (images - (images * window).sum(axis=(1, 2), keepdims=True) / window.sum()) * window
    power = xp.abs(flat).mean(axis=(1, 2), keepdims=True) * np.sqrt(height * width)
    magnitude = xp.log1p(xp.abs(xp.fft.fftshift(xp.fft.fft2(flat), axes=(1, 2))) / (power + 1e-300))
    angles = np.arange(_ANGLES)[:, None] * (np.pi / _ANGLES)
    radii = _INNER * (_OUTER / _INNER) ** (np.arange(_RADII) / (_RADII - 1))
    rows = height // 2 + height * radii * np.cos(angles)
    places = xp.asarray(np.stack([rows, width // 2 + width * radii * np.sin(angles)]))
    look = ndimage_of(xp).map_coordinates
    grid = xp.stack([look(each, places, order=1) for each in magnitude])
    return grid - grid.mean(axis=1, keepdims=True)


def _turns_between(reference: Array, frames: Array, *, scales: bool) -> list[Matrix]:
    """Likely motions (m, 3, 3) from a reference to frames, most likely first, without shifts.

    Their log-polar spectra are given: (1, angles, radii) and (n, angles, radii). Each angle stands for itself and for
    half a turn more. With `scales` not set, the scale is one.
    """
    xp = array_namespace(frames)
    step = np.log(_OUTER / _INNER) / (_RADII - 1)
    reach = int(np.log(_MAX_SCALE) / step) if scales else 0
    of_reference, of_frames = xp.fft.rfft(reference, axis=1).conj(), xp.fft.rfft(frames, axis=1)
    squares = [(spectra**2).sum(axis=1) for spectra in (reference, frames)]
    planes = xp.empty((len(frames), 2 * reach + 1, _ANGLES))
    for lag in range(-reach, reach + 1):
        one, other = (slice(max(by, 0), _RADII + min(by, 0)) for by in (lag, -lag))
        products = (of_reference[:, :, one] * of_frames[:, :, other]).sum(axis=2)
        power = squares[0][:, one].sum(axis=1) * squares[1][:, other].sum(axis=1)
        power = xp.where(power > 0, power, np.inf)
        planes[:, lag + reach] = xp.fft.irfft(products, _ANGLES, axis=1) / xp.sqrt(power)[:, None]
    return [_peaks(plane, reach, step) for plane in to_host(planes)]


def _peaks(plane: NDArray[np.float64], reach: int, step: float) -> Matrix:
    """Turns and scales (m, 3, 3) at the highest peaks of a plane (scales, angles), which are blanked one by one."""
    plane, found = plane.copy(), []
    for _ in range(_TURNS):
        row, column = np.unravel_index(plane.argmax(), plane.shape)
        if not np.isfinite(plane[row, column]):
            break
        below, here, above = plane[row, [column - 1, column, (column + 1) % _ANGLES]]
        bend = below - 2 * here + above
        # Beside a place that was found before there is no value.
        vertex = np.clip((below - above) / (2 * bend), -0.5, 0.5) if np.isfinite(bend) and bend < 0 else 0.0
        angle, scale = (column + vertex) * np.pi / _ANGLES, np.exp((row - reach) * step)
        found += [turned(angle, scale), turned(angle + np.pi, scale)]
        rows = slice(max(row - _NEIGHBOURS[0], 0), row + _NEIGHBOURS[0] + 1)
        plane[rows, np.arange(column - _NEIGHBOURS[1], column + _NEIGHBOURS[1] + 1) % _ANGLES] = -np.inf
    return np.stack(found)
