"""Pairs of finely textured images at half-pixel shifts, with the smallest error that any method could reach.

noise
    White up to the Nyquist frequency of either axis, moved by a phase ramp: a texture of one pixel.
0.5, 0.7
    The same, blurred by a Gaussian of so many pixels.
spots
    The same, blurred by 3 pixels.
box
    White noise on a grid of an eighth of a pixel, averaged over pixels: a texture that is aliased.
speckle
    Discs of 1.6 pixels at random places, half of the area, drawn on that grid: a speckle pattern for strain, aliased.

The bound is that of two equally noisy images of a random scene whose spectrum is known (see :mod:`benchmarks.scenes`),
over the overlap; there is none where the texture is aliased.
"""

from __future__ import annotations

import cv2
import numpy as np

from benchmarks.board.scenes import MARGIN, Array, Series, Texture, recorded

SIZE, PAIRS = 192, 4
_FINE, _DISC = 8, 13
BLUR = {"noise": 0.0, "0.5": 0.5, "0.7": 0.7, "spots": 3.0}


def pairs(rng: np.random.Generator, kind: str, snr: float) -> list[Series]:
    """Pairs of a texture of their own each, half a pixel beside a whole shift of up to three."""
    made = []
    for _ in range(PAIRS):
        path = np.stack([np.zeros(2), rng.integers(-3, 3, 2) + 0.5])
        views, bound = _banded(rng, BLUR[kind], path, snr) if kind in BLUR else (_averaged(rng, kind, path), np.nan)
        made.append(recorded(views, path, snr, rng, bound=bound))
    return made


def _banded(rng: np.random.Generator, blur: float, path: Array, snr: float) -> tuple[Array, float]:
    """Views of band-limited noise, and the bound of their shift."""
    width = 1 / (2 * np.pi * blur) if blur else 1e6
    texture = Texture(rng, SIZE, width, highest=1.0)
    n = SIZE + 2 * MARGIN
    for spectrum_of in (texture.spectrum, texture.spectrum.T):
        spectrum_of[n // 2] = 0  # a ramp cannot move the Nyquist frequency
    wy, wx = (2 * np.pi * f for f in np.broadcast_arrays(texture.fy, texture.fx))
    power = np.exp(-((wy**2 + wx**2) * blur**2))
    power[n // 2] = power[:, n // 2] = power[0, 0] = 0
    power /= power.mean()
    weight = power**2 / (2 * power / snr**2 + 1 / snr**4)
    overlap = np.prod(SIZE - np.abs(path[1])) / n**2
    information = overlap * np.array([[np.sum(p * q * weight) for q in (wy, wx)] for p in (wy, wx)])
    return texture.along(path), float(np.sqrt(np.trace(np.linalg.inv(information)) / 2))


def _averaged(rng: np.random.Generator, kind: str, path: Array) -> Array:
    """Views whose pixels are means over 8 x 8 fine ones."""
    size = _FINE * (SIZE + 16)
    fine = rng.standard_normal((size, size)).astype(np.float32)
    if kind == "speckle":
        disc = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (_DISC, _DISC))
        # So many discs, thrown at random, cover half of the area.
        centres = rng.random((size, size)) < np.log(2) / disc.sum()
        fine = cv2.dilate(centres.astype(np.uint8), disc).astype(np.float32)
    views = []
    for dy, dx in np.rint(_FINE * path).astype(int):
        part = fine[8 * _FINE - dy :, 8 * _FINE - dx :][: _FINE * SIZE, : _FINE * SIZE]
        views.append(part.reshape(SIZE, _FINE, SIZE, _FINE).mean(axis=(1, 3), dtype=np.float64))
    stack = np.stack(views)
    return np.asarray((stack - stack.mean()) / stack[0].std())
