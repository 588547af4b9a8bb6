"""Cross-spectra of images under windows that move with the scene, summed over cells of the frequency plane."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # whose parts are loaded when they are asked for
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, array_namespace, fft_namespace

CELLS = 64
"""Cells of the frequency plane per cycle and pixel, along each axis."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Lattice:
    """Frequencies of padded images, and cells of them."""

    shape: tuple[int, int]
    axes: tuple[Floats, Floats]
    """Frequencies in cycles per pixel of rows, and of columns up to below the Nyquist frequency."""
    order: NDArray[np.intp]
    """(m,) cells from inner rings outwards, in which all else counts them."""
    y: Floats
    x: Floats
    """(m,) angular frequencies of their middles."""
    ring: NDArray[np.intp]
    """(m,)"""
    starts: NDArray[np.intp]
    """Where rings begin."""
    count: Floats
    """Real values of a ring."""

    def summed(self, values: Array) -> Array:
        """Sums over cells (n, m) of values (n, rows, columns)."""
        rows = values.reshape(len(values), CELLS, -1, values.shape[2]).sum(axis=2)
        sums = rows.reshape(len(values), CELLS * CELLS // 2, -1).sum(axis=2)
        return 2 * sums[:, array_namespace(values).asarray(self.order)]

    def of_rings(self, values: Array) -> Array:
        """Sums over rings (n, rings) of values (n, m); on a host what comes of a frame depends on no other."""
        xp = array_namespace(values)
        if xp is np:
            return np.add.reduceat(values, self.starts, axis=1)
        return values @ xp.asarray((self.ring[:, None] == np.arange(self.count.size)).astype(np.float64))


@functools.lru_cache(maxsize=8)
def lattice_of(height: int, width: int) -> Lattice:
    """For images of a shape."""
    shape = (_whole_cells(height), _whole_cells(width))
    y: Floats = (np.fft.fftfreq(CELLS, 1 / CELLS)[:, None] + 0.5) / CELLS - 0.5 / shape[0]
    x: Floats = (np.arange(CELLS // 2)[None] + 0.5) / CELLS - 0.5 / shape[1]
    ring = np.rint(np.hypot(y, x) * CELLS).astype(np.intp).ravel()
    order = np.argsort(ring, kind="stable")
    count = np.bincount(ring) * 2.0 * height * width / CELLS**2
    y, x = (2 * np.pi * each.ravel()[order] for each in np.broadcast_arrays(y, x))
    axes: tuple[Any, Any] = np.fft.fftfreq(shape[0]), np.fft.fftfreq(shape[1])[: shape[1] // 2]
    return Lattice(shape, axes, order, y, x, ring[order], np.searchsorted(ring[order], np.arange(count.size)), count)


def _whole_cells(size: int) -> int:
    """A length that is padded to cells, and transformed fast."""
    return CELLS * int(scipy.fft.next_fast_len(-(-size // CELLS), real=True))


def windows_over(
    shape: tuple[int, ...], start: Floats, rise: float
) -> tuple[list[NDArray[np.float32]], list[NDArray[np.float32]]]:
    """Windows (n, h) and (n, w) of reference images, and of frames, over what overlaps at shifts (n, 2).

    They move by half of each and rise over so many pixels.
    """
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
            risen = np.clip((np.minimum(place, length - 1 - place) - 0.5) / rise, 0, 1)
            along.append(np.where(inner, np.sin(risen * np.pi / 2) ** 2, 0).astype(np.float32))
        sides.append(along)
    return sides[0], sides[1]


def spectra(images: Array, windows: list[NDArray[np.float32]], lattice: Lattice) -> Array:
    """Half spectra of images under windows, without the means of lines and the Nyquist frequencies.

    Of images in units in which the values of each differ by about one, whose squares float32 holds.
    """
    xp, fft = array_namespace(images), fft_namespace(images)
    y, x = xp.asarray(windows[0])[:, :, None], xp.asarray(windows[1])[:, None, :]
    # By a power of two, which changes no digit.
    units = xp.frexp(xp.ptp(images, axis=(1, 2), keepdims=True))[1].astype(np.result_type(images.dtype, np.float32))
    seen = (images * xp.exp2(-units)).astype(xp.float32) * y
    seen = (seen - seen.sum(axis=1, keepdims=True) / y.sum(axis=1, keepdims=True) * y) * x
    seen -= seen.sum(axis=2, keepdims=True) / x.sum(axis=2, keepdims=True) * x
    found = fft.rfft2(seen, s=lattice.shape)[:, :, :-1]
    found[:, :, 0] *= np.float32(0.5**0.5)  # the other columns stand for two
    found[:, lattice.shape[0] // 2] = 0
    return found


def ramps(lattice: Lattice, shift: Floats, xp: Any) -> tuple[Array, Array]:
    """Phases (n, rows, 1) and (n, 1, columns) of frequencies that turn spectra back by shifts (n, 2)."""
    y, x = (np.exp(-2j * np.pi * shift[:, i, None] * f).astype(np.complex64) for i, f in enumerate(lattice.axes))
    return xp.asarray(y)[:, :, None], xp.asarray(x)[:, None, :]


def sums_over_cells(
    lefts: Array, rights: Array, start: Floats, lattice: Lattice, rise: float
) -> tuple[Array, Array, Array]:
    """Powers of reference images (1 or n, h, w) and of frames (n, h, w), and their cross-spectrum, over cells (n, m).

    The cross-spectrum is turned back by the shifts (n, 2) at which the windows lie.
    """
    xp = array_namespace(rights)
    of_left, of_right = windows_over(rights.shape[1:], start, rise)
    a, b = spectra(lefts, of_left, lattice), spectra(rights, of_right, lattice)
    cross = xp.conj(a) * b
    for ramp in ramps(lattice, start, xp):
        cross *= ramp
    left, right = (lattice.summed(each.real**2 + each.imag**2).astype(np.float64) for each in (a, b))
    return left, right, lattice.summed(cross).astype(np.complex128)
