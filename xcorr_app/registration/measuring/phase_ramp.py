"""Sub-pixel shifts by maximum likelihood: the phase ramp of the cross-spectrum, frequencies weighted by coherence.

A fit to 3 x 3 values of a correlation plane is off where the peak is no polynomial: by a third of a pixel on noise of
single pixels, at half-pixel shifts. Here both images are seen through a flat window with narrow flanks that moves with
the scene, half the shift each: what lies under the windows is the same, and the edges of the overlap pull nowhere. Rows
and columns lose their means under the windows: offsets of lines would outshine what else lies along the axes. Of
their cross-spectrum C at the shift found so far, summed over cells of the frequency plane, is solved

    sum V 2 pi f Im(C exp(-2 pi i f d)) = 0,    V = c / ((1 - c^2) sqrt(Pa Pb)),    shift = start + d,

Pa and Pb being the powers of the images and c their coherence at the shift found, by rings of frequencies (Knapp and
Carter 1976, doi 10.1109/TASSP.1976.1162830). The covariance is the sandwich over cells, H^-1 (sum t t') H^-1; of stars,
whose photons scatter where they are, it is that over tiles of the picture.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, array_namespace, to_host
from xcorr_app.registration.columns import FineShifts
from xcorr_app.registration.measuring.match import Comparison
from xcorr_app.registration.measuring.score_tiles import is_peaked, scatter_over_tiles
from xcorr_app.registration.measuring.spectral_cells import CELLS, Lattice, lattice_of, sums_over_cells

Floats = NDArray[np.float64]

_FLANK = 12
"""Pixels over which a window rises."""
_WIDE = (8, 2, 0)
"""Rings averaged on either side of one, from coarse to fine."""
_DOUBT = 4.0
"""Variances of the coherence by which fewer rings must differ from more to be believed."""
_PULL = 0.25
"""Standard errors by which windows at the start's place may pull before all is computed again from the shift found."""
_STEPS = 30
"""Of Newton at most; three to five are taken as a rule."""
_MAX_STEP = 0.3
"""Pixels; beyond, the phase of high frequencies has wrapped."""
_CONVERGED = 0.01
"""Standard errors by which a step may still change the shift."""
MIN_SIDE = 4 * _FLANK
"""Rows or columns of an overlap that a window leaves enough of."""
_PIXELS_AT_ONCE = {True: 1 << 24, False: 1 << 19}
"""Of frames that are transformed together, on a device and on the host."""


def refine(lefts: Array, rights: Array, start: Floats) -> FineShifts:
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
    found = FineShifts(start.copy(), np.full(start.shape, np.nan))
    inside: NDArray[np.bool_] = np.asarray(np.isfinite(start).all(axis=1))
    inside[inside] = (np.array(shape) - np.abs(np.rint(start[inside])) >= MIN_SIDE).all(axis=1)
    rows = np.flatnonzero(inside)
    shift, sigma, late = _refined(lefts, rights, rows, start[rows])
    if late.any():
        shift[late], sigma[late], _ = _refined(lefts, rights, rows[late], shift[late])
    good = np.isfinite(sigma).all(axis=1) & (np.abs(shift - start[rows]) < 1).all(axis=1)
    found.shift[rows[good]], found.sigma[rows[good]] = shift[good], sigma[good]
    return found


def with_phase_ramps(compared: Comparison, images: Array) -> Comparison:
    """Refine the shifts of frames, and their standard errors, against reference images (1 or n, h, w)."""
    found = refine(images, compared.values, compared.match.shift)
    match = replace(compared.match, shift=found.shift)
    return replace(compared, match=match, shapes=replace(compared.shapes, refined=found.sigma))


def _refined(
    lefts: Array, rights: Array, rows: NDArray[np.intp], start: Floats
) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Shifts and standard errors of some frames, and which windows were too far from the shift found."""
    shape = (int(rights.shape[1]), int(rights.shape[2]))
    lattice = lattice_of(*shape)
    at_once = max(1, _PIXELS_AT_ONCE[array_namespace(rights) is not np] // (shape[0] * shape[1]))
    parts = [slice(first, first + at_once) for first in range(0, rows.size, at_once)]
    if not parts:
        return start.copy(), np.full_like(start, np.nan), np.zeros(0, dtype=bool)
    found_of = [_cells(lefts, rights, rows[part], start[part], lattice) for part in parts]
    cells = _Cells(*(array_namespace(rights).concatenate(each) for each in zip(*found_of, strict=True)))
    found = _solved(cells, lattice)
    if is_peaked(lefts):
        for part in parts:
            at, of = start[part] + found.step[part], lefts if lefts.shape[0] == 1 else lefts[rows[part]]
            scores = scatter_over_tiles(of, rights[rows[part]], start[part], at, found.weight[part], lattice, _FLANK)
            found.variance[part] = np.fmax(found.variance[part], _sandwich(found.inverse[part], scores))
    # A window that is late by a pixel pulls by its mean squared slope over that of the scene.
    size = np.array(shape) - np.abs(np.rint(start))
    pull = np.abs(found.step) * (np.pi**2 / 4 / _FLANK / size) * found.power[:, None] * found.information
    sigma: Floats = np.sqrt(np.where(found.variance > 0, found.variance, np.nan))
    late = (pull > _PULL * sigma).any(axis=1) & (np.abs(found.step) < 1).all(axis=1)
    return start + found.step, sigma, np.asarray(late)


class _Cells(NamedTuple):
    """Of n frames, where they live."""

    cross: Array
    """(n, m) sums of the cross-spectrum over cells, complex."""
    power: Array
    """(n, rings), of both images, of one real value."""
    averaged: Array
    """(n, widths, rings) of both images, for every width of averages."""

    def of(self, rows: NDArray[np.intp]) -> _Cells:
        """Of some frames."""
        at = array_namespace(self.cross).asarray(rows)
        return _Cells(*(each[at] for each in self))


def _cells(lefts: Array, rights: Array, rows: NDArray[np.intp], start: Floats, lattice: Lattice) -> _Cells:
    """Transform images of frames under their windows, moved by where they start."""
    xp = array_namespace(rights)
    lefts = lefts if lefts.shape[0] == 1 else lefts[rows]
    left, right, cross = sums_over_cells(lefts, rights[rows], start, lattice, _FLANK)
    left, right = lattice.of_rings(left), lattice.of_rings(right)
    pairs = xp.stack([_near(left, wide) * _near(right, wide) for wide in _WIDE], axis=1)
    power = xp.sqrt(xp.maximum(left * right, 1e-300)) / xp.asarray(np.maximum(lattice.count, 1))
    return _Cells(cross, power, xp.sqrt(xp.maximum(pairs, 1e-300)))


class _PhaseFit(NamedTuple):
    """Of n frames, on the host."""

    step: Floats
    """(n, 2) from the start."""
    variance: Floats
    """(n, 2) by the scatter of cells, and not below what the coherence allows: few cells misjudge their scatter."""
    inverse: Floats
    """(n, 3) of the Hessian."""
    power: Floats
    """(n,) weighted real part of the cross-spectrum."""
    weight: Floats
    """(n, rings) of frequencies."""

    @property
    def information(self) -> Floats:
        """(n, 2) the variance that the coherence allows."""
        return np.abs(self.inverse[:, [0, 2]])


def _near(values: Array, wide: int) -> Array:
    """Sums of rings (n, rings) and their neighbours, those further away weighing less."""
    if wide == 0:
        return values
    found = (wide + 1) * values
    for apart in range(1, wide + 1):
        found[:, apart:] += (wide + 1 - apart) * values[:, :-apart]
        found[:, :-apart] += (wide + 1 - apart) * values[:, apart:]
    return found / (wide + 1)


@functools.lru_cache(maxsize=8)
def _doubts(lattice: Lattice) -> tuple[Floats, ...]:
    """(rings,) for every width of averages: the variance of a coherence near zero, times `_DOUBT`."""
    doubts, count = [], lattice.count
    for wide in _WIDE:
        kernel = 1 - np.abs(np.arange(-wide, wide + 1)) / (wide + 1)
        spread = np.convolve(count, kernel**2)[wide : wide + count.size]
        values = _near(count[None], wide)[0] ** 2 / np.maximum(spread, 1)
        doubts.append(_DOUBT / np.maximum(values, 1))
    return tuple(doubts)


def _coherence(cross: Array, cells: _Cells, lattice: Lattice) -> Array:
    """Coherence of rings (n, rings): of many together, and of fewer where these surely say something else."""
    xp = array_namespace(cross)
    sums, coherence = lattice.of_rings(cross), xp.zeros_like(cells.power)
    for i, (wide, doubt) in enumerate(zip(_WIDE, _doubts(lattice), strict=True)):
        apart = _near(sums, wide) / cells.averaged[:, i] - coherence
        unsure = xp.asarray(doubt) * (1 - xp.clip(coherence, 0, 1) ** 2) ** 2
        coherence = coherence + apart * xp.clip(1 - unsure / xp.maximum(apart**2, 1e-300), 0, 1)
    return xp.clip(coherence, 0, 1 - 1e-7)


def _weighted(cells: _Cells, lattice: Lattice, step: Floats) -> tuple[Array, Array, Array]:
    """What cells (n, m) contribute at steps (n, 2): parts of the cross-spectrum, weighted; and weights (n, rings)."""
    xp = array_namespace(cells.cross)
    y, x, steps = xp.asarray(lattice.y), xp.asarray(lattice.x), xp.asarray(step)
    turn = y * steps[:, :1] + x * steps[:, 1:]
    # Not as a product of complex numbers, whose last bit depends on where in memory they lie.
    cosine, sine, real, imaginary = xp.cos(turn), xp.sin(turn), cells.cross.real, cells.cross.imag
    even, side = real * cosine + imaginary * sine, imaginary * cosine - real * sine
    coherence = _coherence(even, cells, lattice)
    of_rings = coherence / ((1 - coherence**2) * cells.power)
    weight = of_rings[:, xp.asarray(lattice.ring)]
    return weight * even, weight * side, of_rings


def _sums(even: Array, side: Array, lattice: Lattice) -> tuple[Floats, Floats]:
    """Hessians (n, 3) and slopes (n, 2) of what cells contribute."""
    xp = array_namespace(even)
    y, x = xp.asarray(lattice.y), xp.asarray(lattice.x)
    terms = (even * (y * y), even * (y * x), even * (x * x), side * y, side * x)
    sums = to_host(xp.stack([lattice.of_rings(each) for each in terms], axis=2)).sum(axis=1)
    return sums[:, :3], sums[:, 3:]


def _newton(hessian: Floats, slope: Floats) -> tuple[Floats, Floats]:
    """Newton's steps (..., 2) and inverse Hessians (..., 3); NaN where there is no maximum."""
    a, b, c = np.moveaxis(hessian, -1, 0)
    determinant = a * c - b * b
    with np.errstate(invalid="ignore", divide="ignore"):
        determinant = np.where((a > 0) & (determinant > 0), determinant, np.nan)
        inverse = np.stack([c, -b, a], axis=-1) / determinant[..., None]
        y, x = np.moveaxis(slope, -1, 0)
        step = np.stack([inverse[..., 0] * y + inverse[..., 1] * x, inverse[..., 1] * y + inverse[..., 2] * x], axis=-1)
    return step, inverse


def _solved(cells: _Cells, lattice: Lattice) -> _PhaseFit:
    """Steps from where the cells were computed."""
    step, going = np.zeros((len(cells.cross), 2)), np.arange(len(cells.cross))
    for _ in range(_STEPS):
        move, inverse = _newton(*_sums(*_weighted(cells.of(going), lattice, step[going])[:2], lattice))
        known = np.isfinite(move).all(axis=1)
        step[going[known]] += np.clip(move[known], -_MAX_STEP, _MAX_STEP)
        converged = (np.abs(move) < _CONVERGED * np.sqrt(np.abs(inverse[:, [0, 2]]))).all(axis=1)
        going = going[known & ~converged]
        if not going.size:
            break
    even, side, weight = _weighted(cells, lattice, step)
    _, inverse = _newton(*_sums(even, side, lattice))
    variance = np.fmax(_sandwich(inverse, _scatter(side, lattice)), np.abs(inverse[:, [0, 2]]))
    # A ring without cells has no power, and a weight that is none.
    of_rings = np.where(lattice.count > 0, to_host(weight), 0)
    return _PhaseFit(step, variance, inverse, to_host(even.sum(axis=1)), of_rings)


def _sandwich(inverse: Floats, scatter: Floats) -> Floats:
    """Variances (n, 2) of shifts by the scatter (n, 2, 2) of slopes, with inverse Hessians (n, 3)."""
    i = inverse[:, [0, 1, 1, 2]].reshape(-1, 2, 2)
    with np.errstate(invalid="ignore"):
        return np.asarray((i @ scatter * i).sum(axis=2))


def _scatter(side: Array, lattice: Lattice) -> Floats:
    """Covariance (n, 2, 2) of sums of slopes, by products of each cell with itself and its neighbours.

    Windows and padding make neighbours alike.
    """
    xp = array_namespace(side)
    back = np.argsort(lattice.order)
    ty, tx = (
        (side * xp.asarray(each))[:, xp.asarray(back)].reshape(len(side), CELLS, -1) for each in (lattice.y, lattice.x)
    )
    around_y, around_x = _around(ty), _around(tx)
    p, q, r = ((one * near).sum(axis=(1, 2)) for one, near in ((ty, around_y), (ty, around_x), (tx, around_x)))
    found: Floats = to_host(xp.stack([p, q, q, r], axis=-1)).reshape(-1, 2, 2)
    return found


def _around(values: Array) -> Array:
    """Sums of each cell (n, rows, columns) and its eight neighbours; rows of cells go round."""
    xp = array_namespace(values)
    rows = values + xp.roll(values, 1, axis=1) + xp.roll(values, -1, axis=1)
    found = rows.copy()
    found[:, :, 1:] += rows[:, :, :-1]
    found[:, :, :-1] += rows[:, :, 1:]
    return found
