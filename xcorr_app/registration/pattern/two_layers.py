"""Shifts of a scene that hardly moves over a pattern that stands still, by likelihood.

A peak of correlation that is wider than the motion shows both layers as one. Their spectra are told apart all the same:
frame t has, at frequency k,

    F_t = P + S exp(i k d_t) + noise,

which is linear in P and S for given shifts d_t. With P unknown and S of an unknown power in each ring of frequencies,
the likelihood of the shifts alone has a closed form (variable projection: Golub and Pereyra 1973, doi 10.1137/0710036;
marginal likelihood). To first order in k d only S d is determined, to second order S and d apart: how far the scale of
all shifts is uncertain follows from the curvature of the likelihood along it, and goes into the standard errors.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy  # whose parts are loaded when they are asked for
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array
from xcorr_app.registration.pattern.layer_spectra import Complex, Floats, LayerSpectra

_BLOCK = 16
"""Rows and columns of a block."""
_MIN_BLOCKS = 4
"""Blocks along an axis below which their scatter says nothing."""


def scatter_over_white(
    slopes: Complex, left: Complex, places: tuple[NDArray[np.intp], ...], shape: tuple[int, int], noise: float
) -> float | None:
    """Variance of sums over images (h, w) of slopes times what is left, over that by white noise; None of small ones.

    The slope of the likelihood of a shift is such a sum. Where noise is stronger on bright parts, or frames fade to
    their rim, it scatters otherwise than the likelihood takes it: sums over blocks, larger than noise is correlated,
    show by how much (White 1980, doi 10.2307/1912934, with blocks as clusters).

    Parameters
    ----------
    slopes : ndarray, shape (n, 2, K)
        Spectra along rows and columns, at these places of a half plane.
    left : ndarray, shape (n, K)
        Spectra of what is left.
    places : tuple of ndarray, each of shape (K,)
    shape : tuple of int
    noise : float
        Mean square of a coefficient of the noise.
    """
    rows, columns = (size // _BLOCK for size in shape)
    if min(rows, columns) < _MIN_BLOCKS:
        return None
    found = expected = 0.0
    for along, rest in zip(slopes, left, strict=True):
        residual = _image(rest, places, shape)
        for slope in along:
            image = _image(slope, places, shape)
            part = (image * residual)[: rows * _BLOCK, : columns * _BLOCK]
            sums = part.reshape(rows, _BLOCK, columns, _BLOCK).sum(axis=(1, 3))
            found += float((sums**2).sum())
            expected += float((image**2).sum()) * noise / (shape[0] * shape[1])
    return found / expected if expected > 0 else None


def _image(values: Complex, places: tuple[NDArray[np.intp], ...], shape: tuple[int, int]) -> NDArray[np.float64]:
    half = np.zeros((shape[0], shape[1] // 2 + 1), dtype=np.complex128)
    half[places] = values
    return np.asarray(scipy.fft.irfft2(half, shape))


_AT_RIM = 6.0
"""Error in pixels, for each pixel of a shift, times the square of the pixels over which frames fade.

A scene that moves fades where it is, not where it was. Root mean square of scenes of 149 x 163 and 512 x 512 pixels.
"""
_COARSE, _FINE, _EACH_WAY = np.log(2.0), np.log(2.0) / 6, 7
"""Steps of the logarithm of the power of a ring, and how many of them are tried each way."""
_MAX_RATIO = 1e7
"""Of noise over scene: a ring with next to no scene."""
_MIN_STEPS, _POWER_STEPS, _STEPS = 4, 14, 40
_CONVERGED = 1e-4
"""Pixels a step from which the shifts have settled."""
_SCALE_STEP = 0.02
_SCATTER_OF = 4
"""Frames whose noise is compared with white noise."""
_ROUNDS = 8
"""Gauss-Newton's, of frames beside those that the layers are taken from."""


@dataclass(frozen=True)
class Fit:
    """Shifts by which both layers explain the frames best."""

    shifts: Floats
    """(T, 2) from the frame that was held."""
    sigma: Floats
    """(T, 2) standard errors of these."""
    scale_error: float
    """Relative standard error of the length of all shifts."""
    scatter: float
    """Variance of shifts over that by white noise of one strength."""


class TwoLayers(LayerSpectra):
    """How likely shifts of a scene over a pattern are."""

    def fit(self, shifts: Floats, held: int = 0) -> Fit:
        """Find shifts from those given to begin with, the frame `held` at zero."""
        self._ratio = self._begin
        shifts = shifts - shifts[held]
        free = np.delete(np.arange(self.count), held)
        damping, cost, taken = 1e-3, np.inf, np.inf
        for step in range(_STEPS):
            if step < _POWER_STEPS:
                self._estimate_power(shifts)
                if taken > _CONVERGED:
                    shifts = shifts * self._best_scale(shifts)
                cost = self.cost(shifts)
            slope, hessian = self._slope_and_hessian(shifts)
            slope, hessian = slope[free].ravel(), _of_frames(hessian, free)
            taken = 0.0
            for _ in range(8):
                change = -np.linalg.solve(hessian + damping * np.diag(np.diag(hessian)), slope).reshape(-1, 2)
                trial = shifts.copy()
                trial[free] += change
                of_trial = self.cost(trial)
                if of_trial <= cost:
                    shifts, cost, damping, taken = trial, of_trial, damping / 10, float(np.abs(change).max())
                    break
                damping *= 10
            if taken < _CONVERGED and step >= _MIN_STEPS:
                break
        _, hessian = self._slope_and_hessian(shifts)
        curvature = self._curvature_of_scale(shifts)
        scatter = self._scatter(shifts)
        scale_error = float(np.sqrt(scatter / curvature)) if curvature > 0 else np.inf
        covariance = np.linalg.pinv(_of_frames(hessian, free)) * scatter
        sigma = np.zeros_like(shifts)
        variance = np.maximum(np.diag(covariance).reshape(-1, 2), 0)
        sigma[free] = np.sqrt(variance + (shifts[free] * scale_error) ** 2 + self._error_at_rim(shifts[free]) ** 2)
        return Fit(shifts, sigma, scale_error, scatter)

    def unexplained(self, shifts: Floats) -> tuple[float, float]:
        """What both layers leave of the power that changes from frame to frame, as a share, and its chance."""
        _, mean_phase, product = self._products(shifts)
        known = self.count * (1 - np.abs(mean_phase) ** 2)
        explained = np.abs(product) ** 2 / (known + self._ratio)
        noise = self._noise * (self.count - 1)
        changes = max(float((self._total - noise).sum()), 1e-300)
        chance = float(np.sqrt((self._noise**2).sum() * (self.count - 1) * self._overlap))
        return float((self._total - explained - noise).sum()) / changes, chance / changes

    def strengths(self, shifts: Floats) -> tuple[float, float]:
        """Power of the pattern and of the scene in what is looked at."""
        _, mean_phase, product = self._products(shifts)
        scene = product / (self.count * (1 - np.abs(mean_phase) ** 2) + self._ratio)
        pattern = self._mean - mean_phase * scene
        return float((np.abs(pattern) ** 2).sum()), float((np.abs(scene) ** 2).sum())

    def placed(self, frames: Array, shifts: Floats, fit: Fit) -> tuple[Floats, Floats]:
        """Shifts and standard errors (n, 2) of further frames (n, h, w), from those given, by the layers found."""
        _, mean_phase, product = self._products(fit.shifts)
        scene = product / (self.count * (1 - np.abs(mean_phase) ** 2) + self._ratio)
        rest = self._spectra_of(frames, self._chosen)[0] - (self._mean - mean_phase * scene)
        weight = 2 * np.abs(scene) ** 2 / self._noise
        hessian = np.einsum("in,jn,n->ij", self._k, self._k, weight)
        for _ in range(_ROUNDS):
            moved = scene * self._phases(shifts)
            slope = (2 * np.imag((rest - moved).conj() * moved) / self._noise) @ self._k.T
            shifts = shifts - np.linalg.solve(hessian, slope.T).T
        own = np.diag(np.linalg.inv(hessian)) * fit.scatter
        return shifts, np.sqrt(own + (shifts * fit.scale_error) ** 2 + self._error_at_rim(shifts) ** 2)

    def _scatter(self, shifts: Floats) -> float:
        """Variance of the slope of the likelihood over that by white noise; of frames that fade, at least."""
        phase, mean_phase, product = self._products(shifts)
        some = np.unique(np.linspace(0, self.count - 1, _SCATTER_OF).round().astype(int))
        scene = product / (self.count * (1 - np.abs(mean_phase) ** 2) + self._ratio)
        left = self._rest[some] - scene * (phase[some] - mean_phase)
        slopes = 1j * self._k * (scene * phase[some])[:, None]
        noise = float(self._noise[0]) * (1 - 2 / self.count)
        found = self._shape and scatter_over_white(slopes, left, self._places, self._shape, noise)
        return max(self._overlap, found or 0.0)

    def _error_at_rim(self, shifts: Floats) -> Floats:
        error: Floats = _AT_RIM * np.hypot(*shifts.T)[:, None] / self._rim**2
        return error

    def _products(self, shifts: Floats) -> tuple[Complex, Complex, Complex]:
        phase = self._phases(shifts)
        return phase, phase.mean(axis=0), (phase.conj() * self._rest).sum(axis=0)

    def cost(self, shifts: Floats) -> float:
        """Minus the logarithm of the likelihood, but for constants."""
        _, mean_phase, product = self._products(shifts)
        known = self.count * (1 - np.abs(mean_phase) ** 2)
        explained = np.abs(product) ** 2 / (known + self._ratio)
        return float((np.log1p(known / self._ratio) + (self._total - explained) / self._noise).sum())

    def _estimate_power(self, shifts: Floats) -> None:
        """Power of the scene in each ring, the likeliest."""
        _, mean_phase, product = self._products(shifts)
        known, power = self.count * (1 - np.abs(mean_phase) ** 2), np.abs(product) ** 2 / self._noise
        logarithm = np.log(self._ratio)
        for width in (_COARSE, _FINE):
            offsets = width * np.arange(-_EACH_WAY, _EACH_WAY + 1)
            ratios = (np.exp(logarithm + offset) for offset in offsets)
            costs = [self._rings.sums(np.log1p(known / ratio) - power / (known + ratio)) for ratio in ratios]
            best = offsets[np.argmin(costs, axis=0)]
            logarithm = np.clip(logarithm + best[self._rings.number], None, np.log(_MAX_RATIO))
        self._ratio = np.exp(logarithm)

    def _scaled_cost(self, shifts: Floats, logarithm: float) -> float:
        """Cost of longer shifts of a scene that is as much fainter."""
        before = self._ratio
        self._ratio = before * np.exp(2 * logarithm)
        cost = self.cost(shifts * np.exp(logarithm))
        self._ratio = before
        return cost

    def _best_scale(self, shifts: Floats) -> float:
        found = scipy.optimize.minimize_scalar(
            lambda s: self._scaled_cost(shifts, s), bounds=(-0.7, 0.7), method="bounded", options={"xatol": 0.01}
        )
        scale = float(np.exp(found.x))
        self._ratio = self._ratio * scale**2
        return scale

    def _curvature_of_scale(self, shifts: Floats) -> float:
        low, middle, high = (self._scaled_cost(shifts, s) for s in (-_SCALE_STEP, 0.0, _SCALE_STEP))
        return (low - 2 * middle + high) / _SCALE_STEP**2

    def _slope_and_hessian(self, shifts: Floats) -> tuple[Floats, Floats]:
        """Of the cost: (T, 2) and, as Gauss and Newton take it, (T, 2, T, 2)."""
        phase, mean_phase, product = self._products(shifts)
        count = self.count
        whole = count * (1 - np.abs(mean_phase) ** 2) + self._ratio
        scene = product / whole
        left = self._rest - scene * (phase - mean_phase)
        slope = 2 * np.imag(left.conj() * phase * scene) / self._noise
        slope += 2 * np.imag(mean_phase.conj() * phase) / whole
        # Of the inverse of the normal equations of both layers.
        of_pattern, of_both, of_scene = (count + self._ratio) / count, -mean_phase, 1.0
        hessian = np.empty((count, 2, count, 2))
        for a, b in ((0, 0), (0, 1), (1, 1)):
            weight = 2 / self._noise * self._k[a] * self._k[b] * np.abs(scene) ** 2
            part = np.real((phase.conj() * (weight / whole * of_pattern)) @ phase.T)
            cross = np.real(phase.conj() @ (weight / whole * of_both))
            part = -(part + cross[:, None] + cross + (weight / whole * of_scene).sum())
            part[np.diag_indices(count)] += weight.sum()
            hessian[:, a, :, b] = hessian[:, b, :, a] = part
        return slope @ self._k.T, hessian


def _of_frames(hessian: Floats, frames: NDArray[np.intp]) -> Floats:
    return hessian[frames][:, :, frames].reshape(2 * frames.size, -1)
