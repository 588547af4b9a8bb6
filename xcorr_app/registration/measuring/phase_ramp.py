"""Sub-pixel shifts by maximum likelihood: the phase ramp of the cross-spectrum, frequencies weighted by coherence.

A fit to 3 x 3 values of a correlation plane is off where the peak is no polynomial: by a third of a pixel on noise of
single pixels, at half-pixel shifts. Here both images are seen through a flat window with narrow flanks that moves with
the scene, half the shift each: what lies under the windows is the same, and the edges of the overlap pull nowhere. Of
their cross-spectrum C at the shift found so far, summed over cells of the frequency plane, is solved

    sum V 2 pi f Im(C exp(-2 pi i f d)) = 0,    V = c / ((1 - c^2) sqrt(Pa Pb)),    shift = start + d,

Pa and Pb being the powers of the images and c their coherence at the shift found, by rings of frequencies (Knapp and
Carter 1976, doi 10.1109/TASSP.1976.1162830). The covariance is the sandwich over cells, H^-1 (sum t t') H^-1. What lies
near the Nyquist frequency is left out where lower frequencies alone say something else, by more than noise explains
(Hausman 1978, doi 10.2307/1913827): it is aliased. Where very low frequencies contradict all others, fine and coarse
structures move differently, as over the fixed pattern of a camera's pixels: nothing is refined.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.fft
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, array_namespace, fft_namespace, to_host
from xcorr_app.registration.measuring.match import Match
from xcorr_app.registration.standard_error.peak_shapes import PeakShapes

Floats = NDArray[np.float64]

_FLANK = 12
"""Pixels over which a window rises."""
_CELLS = 64
"""Cells of the frequency plane per cycle and pixel, along each axis."""
_WIDE = (8, 2, 0)
"""Rings averaged on either side of one, from coarse to fine."""
_DOUBT = 4.0
"""Variances of the coherence by which fewer rings must differ from more to be believed."""
_BANDS = (1.0, 0.35, 0.25, 0.17, 0.12, 0.085, 0.06)
"""Cycles per pixel below which frequencies count, from all to those that hold no aliasing, and few fixed patterns."""
_NOT_ALIASED = 0.17
"""Cycles per pixel; where lower bands contradict those up to here, another layer lies over the scene."""
_DIFFER = 25.0
"""Squared standard errors, five of them, by which a lower band contradicts a higher one: six are asked, along two axes,
and the lowest is hundreds of times less sure than all of a fine texture."""
_PULL = 0.25
"""Standard errors by which windows at the start's place may pull before all is computed again from the shift found."""
_STEPS = 30
_LARGEST_STEP = 0.3
"""Pixels; beyond, the phase of high frequencies has wrapped."""
_SETTLED = 0.01
"""Standard errors by which a step may still change the shift."""
SMALLEST = 4 * _FLANK
"""Rows or columns of an overlap that a window leaves enough of."""
_PIXELS_AT_ONCE = {True: 1 << 24, False: 1 << 19}
"""Of frames that are transformed together, on a device and on the host."""


class Refined(NamedTuple):
    """Shifts of n frames, on the host."""

    shift: Floats
    """(n, 2) pixels, as started where no better was found."""
    sigma: Floats
    """(n, 2) standard errors in pixels; NaN where no better was found."""


def refine(lefts: Array, rights: Array, start: Floats) -> Refined:
    """Refine what is to be added to frames to land on reference images, from estimates within half a pixel.

    Parameters
    ----------
    lefts : ndarray, shape (1 or n, h, w)
        Reference images.
    rights : ndarray, shape (n, h, w)
        Frames.
    start : ndarray, shape (n, 2)
        Finite where a frame is to be refined.
    """
    shape: tuple[int, int] = (int(rights.shape[1]), int(rights.shape[2]))
    found = Refined(start.copy(), np.full(start.shape, np.nan))
    inside: NDArray[np.bool_] = np.asarray(np.isfinite(start).all(axis=1))
    inside[inside] = (np.array(shape) - np.abs(np.rint(start[inside])) >= SMALLEST).all(axis=1)
    at_once = max(1, _PIXELS_AT_ONCE[array_namespace(rights) is not np] // (shape[0] * shape[1]))
    chosen = np.flatnonzero(inside)
    for first in range(0, chosen.size, at_once):
        rows = chosen[first : first + at_once]
        shift, sigma, late = _refined(lefts, rights, rows, start[rows])
        if late.any():
            shift[late], sigma[late], _ = _refined(lefts, rights, rows[late], shift[late])
        good = np.isfinite(sigma).all(axis=1) & (np.abs(shift - start[rows]) < 1).all(axis=1)
        found.shift[rows[good]], found.sigma[rows[good]] = shift[good], sigma[good]
    return found


def with_phase_ramps(match: Match, shapes: PeakShapes, images: Array, frames: Array) -> tuple[Match, PeakShapes]:
    """Refine the shifts of frames (n, h, w), and their standard errors, against reference images (1 or n, h, w)."""
    found = refine(images, frames, match.shift)
    return replace(match, shift=found.shift), replace(shapes, refined=found.sigma)


def _refined(
    lefts: Array, rights: Array, rows: NDArray[np.intp], start: Floats
) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Shifts and standard errors of some frames, and which windows were too far from the shift found."""
    xp = array_namespace(rights)
    height, width = rights.shape[1:]
    lattice = _lattice(height, width, _BANDS[0])
    of_left, of_right = _windows(rights.shape[1:], start)
    a = _spectra(lefts if lefts.shape[0] == 1 else lefts[rows], of_left, lattice)
    b = _spectra(rights[rows], of_right, lattice)
    ramps = [np.exp(-2j * np.pi * start[:, i, None] * f).astype(np.complex64) for i, f in enumerate(lattice.axes)]
    cross = xp.conj(a) * b
    cross *= xp.asarray(ramps[0])[:, :, None]
    cross *= xp.asarray(ramps[1])[:, None, :]
    cells = _Cells(
        to_host(lattice.summed(cross)).astype(np.complex128),
        *(to_host(lattice.summed(each.real**2 + each.imag**2)).astype(np.float64) for each in (a, b)),
    )
    step, variance, information, power = _solved(cells, lattice, np.zeros_like(start))
    for band in _BANDS[1:]:
        lower = _lattice(height, width, band)
        low = _solved(cells.within(lower), lower, step)
        doubt = np.maximum(low.variance - information, 0.25 * low.variance)
        with np.errstate(invalid="ignore"):
            differs = ((low.step - step) ** 2 > _DIFFER * doubt).any(axis=1) & (np.abs(low.step) <= 1).all(axis=1)
        for of_whole, of_low in zip((step, variance, information, power), low, strict=True):
            of_whole[differs] = of_low[differs] if band >= _NOT_ALIASED else np.nan
    # A window that is late by a pixel pulls by its mean squared slope over that of the scene.
    size = np.array(rights.shape[1:]) - np.abs(np.rint(start))
    pull = np.abs(step) * (np.pi**2 / 4 / _FLANK / size) * power[:, None] * information
    sigma: Floats = np.sqrt(np.where(variance > 0, variance, np.nan))
    late: NDArray[np.bool_] = np.zeros(len(step), dtype=bool)
    late[:] = (pull > _PULL * sigma).any(axis=1) & (np.abs(step) < 1).all(axis=1)
    return start + step, sigma, late


@dataclass(frozen=True)
class _Lattice:
    """Frequencies of padded images, and cells of them: those of a band, and what is averaged beside it."""

    shape: tuple[int, int]
    axes: tuple[Floats, Floats]
    """Frequencies in cycles per pixel of rows, and of columns up to below the Nyquist frequency."""
    rows: NDArray[np.intp]
    """Of all rows of cells, those of the band; columns are the first."""
    y: Floats
    x: Floats
    """Angular frequencies of the middles of cells, (rows, 1) and (1, columns)."""
    inside: NDArray[np.bool_]
    """Rings of the band."""
    ring: NDArray[np.intp]
    order: NDArray[np.intp]
    """Cells by their rings."""
    starts: NDArray[np.intp]
    """Where rings begin in it."""
    count: Floats
    """Real values of a ring."""
    doubts: tuple[Floats, ...]
    """Of `_doubts`."""

    def summed(self, values: Array) -> Array:
        """Sums over cells (n, cells, cells / 2) of values (n, rows, columns)."""
        rows = values.reshape(len(values), _CELLS, -1, values.shape[2]).sum(axis=2)
        return 2 * rows.reshape(len(values), _CELLS, _CELLS // 2, -1).sum(axis=3)

    def of_rings(self, values: NDArray[Any]) -> Floats:
        """Sums over rings (n, rings) of values (n, rows, columns)."""
        found: Floats = np.add.reduceat(values.reshape(len(values), -1)[:, self.order], self.starts, axis=1)
        return found


@functools.lru_cache(maxsize=8 * len(_BANDS))
def _lattice(height: int, width: int, band: float) -> _Lattice:
    shape = (_whole_cells(height), _whole_cells(width))
    place_y, place_x = np.fft.fftfreq(_CELLS, 1 / _CELLS), np.arange(_CELLS // 2)
    most = band * _CELLS + _WIDE[0] + 1
    rows, columns = np.flatnonzero(np.abs(place_y) <= most), place_x <= most
    y: Floats = (place_y[rows, None] + 0.5) / _CELLS - 0.5 / shape[0]
    x: Floats = (place_x[None, columns] + 0.5) / _CELLS - 0.5 / shape[1]
    ring = np.rint(np.hypot(y, x) * _CELLS).astype(np.intp)
    order = np.argsort(ring, axis=None, kind="stable")
    starts = np.searchsorted(ring.ravel()[order], np.arange(ring.max() + 1))
    count = np.bincount(ring.ravel()) * 2.0 * height * width / _CELLS**2
    inside = np.arange(count.size) <= band * _CELLS
    axes: tuple[Any, Any] = np.fft.fftfreq(shape[0]), np.fft.fftfreq(shape[1])[: shape[1] // 2]
    return _Lattice(shape, axes, rows, 2 * np.pi * y, 2 * np.pi * x, inside, ring, order, starts, count, _doubts(count))


def _whole_cells(size: int) -> int:
    """A length that is padded to cells, and transformed fast."""
    return _CELLS * int(scipy.fft.next_fast_len(-(-size // _CELLS), real=True))


def _windows(shape: tuple[int, ...], start: Floats) -> tuple[list[NDArray[np.float32]], list[NDArray[np.float32]]]:
    """Windows (n, h) and (n, w) of reference images, and of frames, over what overlaps at shifts (n, 2)."""
    whole = np.rint(start)
    rest = start - whole
    sides: list[list[NDArray[np.float32]]] = []
    for first, offset in ((np.maximum(whole, 0), rest / 2), (np.maximum(-whole, 0), -rest / 2)):
        along = []
        for axis, size in enumerate(shape):
            length = size - np.abs(whole[:, axis, None])
            within = np.arange(size) - first[:, axis, None]
            inner = (within >= 0) & (within < length)
            place = within - offset[:, axis, None]
            rise = np.clip((np.minimum(place, length - 1 - place) - 0.5) / _FLANK, 0, 1)
            along.append(np.where(inner, np.sin(rise * np.pi / 2) ** 2, 0).astype(np.float32))
        sides.append(along)
    return sides[0], sides[1]


def _spectra(images: Array, windows: list[NDArray[np.float32]], lattice: _Lattice) -> Array:
    """Half spectra of images under windows, without their means and the Nyquist frequencies."""
    xp, fft = array_namespace(images), fft_namespace(images)
    y, x = (xp.asarray(each) for each in windows)
    total = (windows[0].sum(axis=1, dtype=np.float64) * windows[1].sum(axis=1, dtype=np.float64)).astype(np.float32)
    both = y[:, :, None] * x[:, None, :]
    seen = images.astype(xp.float32) * both
    mean = seen.sum(axis=(1, 2)) / xp.asarray(total)
    seen -= mean[:, None, None] * both
    spectra = fft.rfft2(seen, s=lattice.shape)[:, :, :-1]
    spectra[:, :, 0] *= np.float32(0.5**0.5)  # the other columns stand for two
    spectra[:, lattice.shape[0] // 2] = 0
    return spectra


class _Cells(NamedTuple):
    """Sums over cells of the spectra of n frames."""

    cross: NDArray[np.complex128]
    """(n, rows, columns) of the cross-spectrum."""
    left: Floats
    """(1 or n, rows, columns) of the power of reference images, and"""
    right: Floats
    """of frames."""

    def within(self, lattice: _Lattice) -> _Cells:
        """Those of a band."""
        part = np.s_[:, lattice.rows, : lattice.x.size]
        return _Cells(self.cross[part], self.left[part], self.right[part])


class _Solved(NamedTuple):
    """Of n frames."""

    step: Floats
    """(n, 2) from the start."""
    variance: Floats
    """(n, 2) by the scatter of cells, and not below what the coherence allows: few cells misjudge their scatter."""
    information: Floats
    """(n, 2) diagonal of the inverse Hessian: the variance that the coherence allows."""
    power: Floats
    """(n,) weighted real part of the cross-spectrum."""


@dataclass(frozen=True)
class _Rings:
    """What the coherence of n frames rests on beside the cross-spectrum."""

    power: Floats
    """(n, rings), of both images, of one real value."""
    averaged: tuple[Floats, ...]
    """(n, rings) for every width of averages."""

    @classmethod
    def of(cls, cells: _Cells, lattice: _Lattice) -> _Rings:
        """From sums over cells."""
        a, b = lattice.of_rings(cells.left), lattice.of_rings(cells.right)
        if len(a) < len(b):
            a = np.broadcast_to(a, b.shape)
        averaged = tuple(np.sqrt(np.maximum(_near(a, wide) * _near(b, wide), 1e-300)) for wide in _WIDE)
        return cls(np.sqrt(np.maximum(a * b, 1e-300)) / np.maximum(lattice.count, 1), averaged)

    def of_rows(self, rows: NDArray[np.intp]) -> _Rings:
        """Of some frames."""
        return _Rings(self.power[rows], tuple(each[rows] for each in self.averaged))


def _near(values: Floats, wide: int) -> Floats:
    """Sums of rings (n, rings) and their neighbours, those further away weighing less."""
    if wide == 0:
        return values
    count = values.shape[1]
    padded = np.pad(values, ((0, 0), (wide, wide)))
    found = np.zeros_like(values)
    for place, weight in enumerate(1 - np.abs(np.arange(-wide, wide + 1)) / (wide + 1)):
        found += weight * padded[:, place : place + count]
    return found


def _doubts(count: Floats) -> tuple[Floats, ...]:
    """(rings,) for every width of averages: the variance of a coherence near zero, times `_DOUBT`."""
    doubts = []
    for wide in _WIDE:
        kernel = 1 - np.abs(np.arange(-wide, wide + 1)) / (wide + 1)
        spread = np.convolve(count, kernel**2)[wide : wide + count.size]
        values = _near(count[None], wide)[0] ** 2 / np.maximum(spread, 1)
        doubts.append(_DOUBT / np.maximum(values, 1))
    return tuple(doubts)


def _coherence(cross: Floats, rings: _Rings, lattice: _Lattice) -> Floats:
    """Coherence of rings (n, rings): of many together, and of fewer where these surely say something else."""
    sums, coherence = lattice.of_rings(cross), np.zeros_like(rings.power)
    for wide, power, doubt in zip(_WIDE, rings.averaged, lattice.doubts, strict=True):
        apart = _near(sums, wide) / power - coherence
        unsure = doubt * (1 - np.clip(coherence, 0, 1) ** 2) ** 2
        coherence = coherence + apart * np.clip(1 - unsure / np.maximum(apart**2, 1e-300), 0, 1)
    return np.clip(coherence, 0, 1 - 1e-7)


def _solved(cells: _Cells, lattice: _Lattice, start: Floats) -> _Solved:
    """Steps from where the cells were computed."""
    cross, rings, step = cells.cross, _Rings.of(cells, lattice), start.copy()
    going = np.arange(len(start))
    for _ in range(_STEPS):
        terms = _Terms.of(cross[going], rings.of_rows(going), lattice, step[going])
        move, inverse = terms.newton()
        known = np.isfinite(move).all(axis=1)
        step[going[known]] += np.clip(move[known], -_LARGEST_STEP, _LARGEST_STEP)
        with np.errstate(invalid="ignore"):
            settled = (np.abs(move) < _SETTLED * np.sqrt(np.abs(inverse[:, [0, 1], [0, 1]]))).all(axis=1)
        going = going[known & ~settled]
        if not going.size:
            break
    terms = _Terms.of(cross, rings, lattice, step)
    _, inverse = terms.newton()
    information = np.abs(inverse[:, [0, 1], [0, 1]])
    with np.errstate(invalid="ignore"):
        variance = np.fmax(np.einsum("nij,njk,nki->ni", inverse, terms.scatter(), inverse), information)
    return _Solved(step, variance, information, terms.even.sum(axis=(1, 2)))


@dataclass(frozen=True)
class _Terms:
    """What every cell of n frames contributes, at steps from where the cells were computed."""

    lattice: _Lattice
    even: Floats
    """(n, rows, columns) weighted real parts of the cross-spectrum."""
    slopes: tuple[Floats, Floats]
    """The derivatives of their sum along rows and columns."""

    @classmethod
    def of(cls, cross: NDArray[np.complex128], rings: _Rings, lattice: _Lattice, step: Floats) -> _Terms:
        """By frequencies of the band."""
        fy, fx = lattice.y, lattice.x
        turned = cross * np.exp(-1j * fy * step[:, :1, None]) * np.exp(-1j * fx * step[:, 1:, None])
        coherence = _coherence(turned.real, rings, lattice)
        inside = lattice.inside / rings.power
        weight = (inside * coherence / (1 - coherence**2))[:, lattice.ring]
        side = weight * turned.imag
        return cls(lattice, weight * turned.real, (fy * side, fx * side))

    def newton(self) -> tuple[Floats, Floats]:
        """Newton's step (n, 2) and the inverse Hessian (n, 2, 2); NaN where there is no maximum."""
        fy, fx = self.lattice.y, self.lattice.x
        a, b, c = ((f * self.even).sum(axis=(1, 2)) for f in (fy**2, fy * fx, fx**2))
        determinant = a * c - b * b
        determinant = np.where((a > 0) & (determinant > 0), determinant, np.nan)
        inverse = np.stack([c, -b, -b, a], axis=-1).reshape(-1, 2, 2) / determinant[:, None, None]
        slope = np.stack([each.sum(axis=(1, 2)) for each in self.slopes], axis=1)
        move: Floats = (inverse * slope[:, None, :]).sum(axis=2)
        return move, inverse

    def scatter(self) -> Floats:
        """Covariance (n, 2, 2) of the sums of slopes, by products of each cell with itself and its neighbours.

        Windows and padding make neighbours alike.
        """
        ty, tx = self.slopes
        around_y, around_x = _around(ty), _around(tx)
        p, q, r = ((one * near).sum(axis=(1, 2)) for one, near in ((ty, around_y), (ty, around_x), (tx, around_x)))
        found: Floats = np.stack([p, q, q, r], axis=-1).reshape(-1, 2, 2)
        return found


def _around(values: Floats) -> Floats:
    """Sums of each cell (n, rows, columns) and its eight neighbours; rows of cells go round."""
    rows = values + np.roll(values, 1, axis=1) + np.roll(values, -1, axis=1)
    found = rows.copy()
    found[:, :, 1:] += rows[:, :, :-1]
    found[:, :, :-1] += rows[:, :, 1:]
    return found
