"""How scores of a shift scatter over tiles of the picture: where noise is strongest on what tells the shift.

Photons scatter most on bright things. Of stars that is where the shift is told, so that noise that is even on average
says several times too little. The score of a shift, a sum over frequencies (see
:mod:`xcorr_app.registration.measuring.phase_ramp`), is a sum over pixels, too,

    sum V k Im(conj(L) R) = sum (L'_V R - R'_V L) / 2

with L'_V the slope of L weighted by V. What both images share vanishes pixel by pixel; the noise is left. Its sums over
tiles are independent, whatever it follows (sandwich with clusters: White 1980, doi 10.2307/1912934).
"""

import numpy as np

from xcorr_app.gpu.runtime.arrays import Array, array_namespace, fft_namespace, to_host
from xcorr_app.registration.measuring.spectral_cells import CELLS, Floats, Lattice, ramps, spectra, windows_over

_TILE = 16
"""Pixels along the sides of tiles, which cells of padded images hold whole."""
_PEAKED = 6.0
"""Fourth moment of differences of neighbours over their squared variance from which few bright things tell the shift:
of textures it is 3 to 5, of stars tens to thousands."""
_SAMPLED = 4
"""One of so many rows tells it."""


def is_peaked(images: Array) -> bool:
    """Whether few bright things tell the shifts of images (n, h, w), by the first of them."""
    squares = np.diff(to_host(images[0, ::_SAMPLED]).astype(np.float64)) ** 2
    return bool(((squares / max(squares.mean(), np.finfo(np.float64).tiny)) ** 2).mean() > _PEAKED)


def scatter_over_tiles(
    lefts: Array, rights: Array, start: Floats, shift: Floats, weight: Floats, lattice: Lattice, rise: float
) -> Floats:
    """Covariance (n, 2, 2) of scores at shifts (n, 2) of frames (n, h, w) against images (1 or n, h, w).

    Windows rise over so many pixels and lie at `start` (n, 2); frequencies have a weight (n, rings).
    """
    xp, fft = array_namespace(rights), fft_namespace(rights)
    pair = [
        spectra(each, windows, lattice)
        for each, windows in zip((lefts, rights), windows_over(rights.shape[1:], start, rise), strict=True)
    ]
    for ramp in ramps(lattice, shift, xp):
        pair[1] = pair[1] * ramp
    y, x = (2 * np.pi * each for each in np.ix_(*lattice.axes))
    ring = np.minimum(np.rint(np.hypot(y, x) * CELLS / 2 / np.pi).astype(np.intp), weight.shape[1] - 1)
    largest = np.maximum(weight.max(axis=1), np.finfo(np.float64).tiny)[:, None]
    of_bins = xp.asarray((weight / largest).astype(np.float32)[:, ring])

    def seen(values: Array) -> Array:
        return fft.irfft2(values, s=lattice.shape)  # of the Nyquist frequency there is none

    left, right = map(seen, pair)
    scores = []
    for k in (y, x):
        slope = xp.asarray((1j * k).astype(np.complex64)) * of_bins
        score = seen(slope * pair[0]) * right - seen(slope * pair[1]) * left
        tiles = score.reshape(len(score), lattice.shape[0] // _TILE, _TILE, -1, _TILE).sum(axis=(2, 4))
        scores.append(to_host(tiles).astype(np.float64).reshape(len(score), -1))
    both = np.stack(scores, axis=1) * largest[:, None] * np.prod(lattice.shape) / 2
    return np.asarray(both @ both.swapaxes(1, 2), np.float64)
