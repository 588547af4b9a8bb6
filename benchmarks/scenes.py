"""Synthetic series whose true sub-pixel drift is known exactly, and the smallest error any method could reach on them.

Generative model
----------------
1. A *scene* is a continuous, non-negative function s(y, x), scaled so that its standard deviation over the 512x512
   field of view is 1. It is evaluated at displaced coordinates, never interpolated, and it extends beyond the field of
   view on every side, so that new content enters where old content leaves and no crop is periodic.

   spots
       300 round Gaussian spots, centres uniform over the field of view enlarged by 52 pixels on every side, sigma
       uniform in 3.2 to 4.0 pixels, amplitude uniform in 0.5 to 1.5. At the Nyquist frequency the spectrum is below
       1e-21 of its maximum.
   speckle
       Fully developed speckle |U|^2. U is a complex circular Gaussian field made by Fourier synthesis on a 640x640
       torus with power spectrum exp(-(f/f0)^2), f0 = 0.06 cycles per pixel, cut at 0.2; |U|^2 is therefore band-limited
       to 0.4 cycles per pixel. U is displaced by a phase ramp (exact), squared, then the 512x512 crop is taken; no
       displacement up to 64 pixels brings the torus's other side into the crop.
   lattice
       Round Gaussian spots of sigma 2 pixels on a square lattice of 12 pixels with a random origin; 5 % are missing.

2. The *displacement* d(t) of frame t is smooth: per axis a cubic spline through seven random knots, zero at t = 0 and
   scaled so that its largest magnitude over the frames is 20 pixels. Frame t shows s(y - dy(t), x - dx(t)); the
   registration shift, which must be added to the frame to land on frame 0, is -d(t).

3. A *condition* is what else happens to the frames before the camera, or in it: see :mod:`benchmarks.conditions`.

4. The *camera* counts photo-electrons: counts = round(100 + Poisson(b + a s) + Normal(0, r)), b = 20, r = 10, uint16.
   Frame 0, the reference, is as noisy as every other frame. SNR = std(a s) / rms noise, where the mean noise variance
   is b + a mean(s) + r^2; so a is the positive root of a^2 = SNR^2 (b + a mean(s) + r^2).

Bounds
------
`bound_known_scene` is the Cramer-Rao bound of a frame's displacement against a noise-free reference:
F = sum over pixels of a^2 (grad s)(grad s)^T / (b + a s + r^2 + 1/12); sqrt(trace(F^-1) / 2) is the rms error per axis.

`bound_noisy_reference` is the bound when the reference is as noisy as the frame. With S(f) the scene's power spectrum
and N the mean noise power, both in variance per pixel, Knapp and Carter (doi 10.1109/TASSP.1976.1162830) give for a
random scene of spectrum S

    F = sum over all f of (2 pi f)(2 pi f)^T S^2 / (2 S N + N^2),

which tends to half the known-scene information (a factor sqrt 2 in the error) at high SNR and falls below that where N
exceeds S. S is the radial mean of the clean scene's periodogram (a raw periodogram would count its own scatter as
information). Poisson noise is not white at high SNR, so the larger of this and sqrt(2) * bound_known_scene is reported.
It holds on average over Gaussian scenes; sparse spots are not Gaussian, and at SNR 0.2 an estimator may come out a
little below it. The frames of a series share the noise of one reference, so their errors are correlated: compare
several seeds.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

SIZE = 512
LARGEST_DRIFT = 20.0
BACKGROUND = 20.0
READ_NOISE = 10.0
OFFSET = 100.0
SNRS = (20.0, 5.0, 2.0, 1.0, 0.5, 0.2)

Array = NDArray[np.float64]


class Scene(ABC):
    """A continuous scene of unit standard deviation over the undisplaced field of view."""

    name: str

    def __init__(self, size: int = SIZE) -> None:
        self._size = size
        self._scale = 1.0
        self._scale = 1.0 / float(self.sample(0.0, 0.0).std())

    def sample(self, dy: float, dx: float) -> Array:
        """Sample the scene displaced by (dy, dx) pixels.

        Parameters
        ----------
        dy, dx : float
            Displacement in pixels (rows, columns); content moves towards larger indices.

        Returns
        -------
        array, shape (size, size)
            s(y - dy, x - dx) on the integer grid, non-negative.
        """
        return self._scale * self._sample(dy, dx)

    def gradient(self) -> tuple[Array, Array]:
        """Return ds/dy and ds/dx, shape (size, size), by central differences of exact samples 0.01 pixel apart."""
        h = 0.005
        d_dy = (self.sample(-h, 0.0) - self.sample(h, 0.0)) / (2 * h)
        d_dx = (self.sample(0.0, -h) - self.sample(0.0, h)) / (2 * h)
        return d_dy, d_dx

    @abstractmethod
    def _sample(self, dy: float, dx: float) -> Array:
        """Sample the unscaled scene."""


class Spots(Scene):
    """Round Gaussian spots at random places (see the module's docstring)."""

    name = "spots"
    _COUNT = 300
    _MARGIN = 52.0

    def __init__(self, rng: np.random.Generator, size: int = SIZE) -> None:
        count = round(self._COUNT * ((size + 2 * self._MARGIN) / (SIZE + 2 * self._MARGIN)) ** 2)
        self._centres = rng.uniform(-self._MARGIN, size + self._MARGIN, size=(count, 2))
        self._sigma = rng.uniform(3.2, 4.0, size=count)
        self._amplitude = rng.uniform(0.5, 1.5, size=count)
        super().__init__(size)

    def _sample(self, dy: float, dx: float) -> Array:
        # A sum of separable Gaussians is one matrix product: rows x spots times spots x columns.
        grid = np.arange(self._size, dtype=np.float64)
        rows = np.exp(-0.5 * ((grid[:, None] - self._centres[:, 0] - dy) / self._sigma) ** 2)
        columns = np.exp(-0.5 * ((grid[:, None] - self._centres[:, 1] - dx) / self._sigma) ** 2)
        product: Array = (rows * self._amplitude) @ columns.T
        return product

    def random_spots(self, rng: np.random.Generator, share: float) -> NDArray[np.bool_]:
        """Choose about this share of the spots."""
        return rng.random(self._amplitude.size) < share

    def without(self, spots: NDArray[np.bool_]) -> Spots:
        """Return the same scene without some of its spots."""
        scene = copy.copy(self)
        scene._amplitude = np.where(spots, 0.0, self._amplitude)
        return scene

    def turned(self, angle: float, factor: float) -> Spots:
        """Return the scene turned by an angle in radians, columns towards rows, and enlarged, about its centre."""
        scene, middle = copy.copy(self), (self._size - 1) / 2
        turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
        scene._centres = middle + factor * (self._centres - middle) @ turn.T
        scene._sigma = factor * self._sigma
        return scene


class Lattice(Spots):
    """Round Gaussian spots on a lattice with defects (see the module's docstring)."""

    name = "lattice"
    _PITCH = 12.0
    _SIGMA = 2.0
    _MISSING = 0.05

    def __init__(self, rng: np.random.Generator, size: int = SIZE) -> None:
        origin = rng.uniform(0, self._PITCH, size=2)
        reach = np.arange(-self._MARGIN, size + self._MARGIN, self._PITCH)
        y, x = np.meshgrid(reach + origin[0], reach + origin[1], indexing="ij")
        there = rng.random(y.size) >= self._MISSING
        self._centres = np.stack([y.ravel(), x.ravel()], axis=1)[there]
        self._sigma = np.full(there.sum(), self._SIGMA)
        self._amplitude = np.ones(there.sum())
        Scene.__init__(self, size)


class Speckle(Scene):
    """Fully developed, band-limited speckle (see the module's docstring)."""

    name = "speckle"
    _MARGIN = 64
    _F0 = 0.06
    _CUTOFF = 0.2

    def __init__(self, rng: np.random.Generator, size: int = SIZE) -> None:
        shape = (size + 2 * self._MARGIN, size + 2 * self._MARGIN)
        f = np.fft.fftfreq(shape[0])
        radius_squared = f[:, None] ** 2 + f[None, :] ** 2
        amplitude = np.exp(-0.5 * radius_squared / self._F0**2) * (radius_squared <= self._CUTOFF**2)
        self._spectrum = amplitude * (rng.standard_normal(shape) + 1j * rng.standard_normal(shape))
        self._frequencies = f
        super().__init__(size)

    def _sample(self, dy: float, dx: float) -> Array:
        ramp_y = np.exp(-2j * np.pi * self._frequencies * dy)
        ramp_x = np.exp(-2j * np.pi * self._frequencies * dx)
        field = np.fft.ifft2(self._spectrum * ramp_y[:, None] * ramp_x[None, :])
        crop = field[self._MARGIN : -self._MARGIN, self._MARGIN : -self._MARGIN]
        intensity: Array = crop.real**2 + crop.imag**2
        return intensity


SCENES: dict[str, type[Spots | Speckle]] = {"spots": Spots, "speckle": Speckle}


def drift(count: int, rng: np.random.Generator, largest: float = LARGEST_DRIFT) -> Array:
    """Make a smooth drift.

    Parameters
    ----------
    count : int
        Number of frames, at least 2, the reference included.
    rng : numpy.random.Generator
    largest : float
        Largest displacement per axis in pixels; reached on both axes.

    Returns
    -------
    array, shape (count, 2)
        Displacements (rows, columns) in pixels; the first is zero.
    """
    knots = np.linspace(0, count - 1, 7)
    path: Array = CubicSpline(knots, rng.uniform(-1, 1, size=(7, 2)))(np.arange(count))
    path = path - path[0]
    scaled: Array = largest * path / np.abs(path).max(axis=0)
    return scaled


def contrast(snr: float, mean: float) -> float:
    """Return the electrons per unit of scene that give the SNR, for a scene of this mean and unit deviation."""
    floor = BACKGROUND + READ_NOISE**2
    return 0.5 * (snr**2 * mean + float(np.sqrt(snr**4 * mean**2 + 4 * snr**2 * floor)))


def bounds(scene: Scene, snr: float) -> tuple[float, float]:
    """Compute both bounds of the module's docstring.

    Returns
    -------
    known_scene, noisy_reference : float
        Rms error per axis in pixels.
    """
    clean = scene.sample(0.0, 0.0)
    a, size = contrast(snr, float(clean.mean())), clean.shape[0]
    variance = BACKGROUND + a * clean + READ_NOISE**2 + 1 / 12
    gy, gx = (a * g for g in scene.gradient())
    fisher = np.array([[np.sum(p * q / variance) for q in (gy, gx)] for p in (gy, gx)])
    known = float(np.sqrt(np.trace(np.linalg.inv(fisher)) / 2))

    # A Hann window (scaled to keep the power) hides the step at the border, which is no detail of the scene.
    hann = np.hanning(size)[:, None] * np.hanning(size)[None, :]
    hann /= np.sqrt(np.mean(hann**2))
    power = np.abs(np.fft.fft2((clean - clean.mean()) * a * hann)) ** 2 / clean.size
    noise = float(variance.mean())
    omega = 2 * np.pi * np.fft.fftfreq(size)
    wy, wx = np.broadcast_arrays(omega[:, None], omega[None, :])
    ring = np.rint(np.hypot(wy, wx) * size / (2 * np.pi)).astype(np.intp).ravel()
    spectrum = (np.bincount(ring, power.ravel()) / np.bincount(ring))[ring].reshape(power.shape)
    weight = spectrum**2 / (2 * spectrum * noise + noise**2)
    information = np.array([[np.sum(p * q * weight) for q in (wy, wx)] for p in (wy, wx)])
    random_scene = float(np.sqrt(np.trace(np.linalg.inv(information)) / 2))
    return known, max(random_scene, float(np.sqrt(2)) * known)
