"""Sub-pixel shifts where parts of the scene come and go: the solver, by iteratively re-weighted least squares.

A spot that is lit in one of two images only is no motion, but it bends the peak of their correlation by hundredths of a
pixel, and tiles around it differ. Here pixels in which frame and reference differ by more than their noise explains
lose their weight (robust least squares: Holland and Welsch 1977, doi 10.1080/03610927708827533), and the shift is
refined by those that are left (:mod:`xcorr_app.registration.solver.gauss_newton`). Noise is what the two differ by as a
rule (the median absolute deviation) where they are as bright as there, since photons scatter more on bright parts.
Differences are smoothed before they are judged, so that faint spots are told from noise; what is fitted is not. Slopes
of the reference are smoothed by the weighting's kernel, even where too little is noise for a plane to be weighted:
slopes of spots that are wide for their noise show mostly that. Standard errors are of the scatter among tiles.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from xcorr_app.correlation.standardize import standardize
from xcorr_app.correlation.weighting import RADIUS, smooth
from xcorr_app.gpu.runtime.arrays import Array, array_namespace
from xcorr_app.registration.columns import FineShifts
from xcorr_app.registration.solver.basis import BASES, slopes_of
from xcorr_app.registration.solver.gauss_newton import Numbers, Solver, compared
from xcorr_app.registration.solver.whole_frames import FrameView, Level
from xcorr_app.registration.stack.prefilter import Prefilter
from xcorr_app.registration.warping.matrices import Matrix

FINELY_NOISY = 0.005
"""Share of noise in the variance from which slopes are smoothed: they show it sooner than what they are slopes of."""
_SMOOTHING = Prefilter("gaussian", (2.0,))
"""Pixels over which differences are averaged before they are judged."""
_NOISE, _CHANGE = 2.0, 4.0
"""Deviations of the noise up to which a difference has full weight, and from which it has none. What noise alone does
hardly bends these weights, so that standard errors need not know how they depend on the shift."""
_LEVELS = 16
"""Of brightness, whose noise is estimated each by itself."""
_SAMPLED = 7
"""One of so many pixels tells the noise."""
_MIN_NOISE = 2e-3
"""Share of the deviation of the reference that differences may have by interpolation alone."""
_MIN_FRAMES, _MAX_STEPS = 3, 10
"""Steps, each with weights of its own, at least and at most."""
_CONVERGED, _NEGLIGIBLE = 2e-4, 0.05
"""Step after which weights and shift are settled, in pixels and as a share of the standard error."""
_UNCHANGED = 1e-5
"""Pixels by which a shift differs from the one given for rounding alone."""
_RIM = 8
"""Pixels along the edges whose differences are averaged with what is beyond."""
_TILES = 144
"""As many as standard errors of peaks are taken from: the two are compared."""
_MAX_DISTANCE = 0.5
"""Pixels from the shift given beyond which something else was found."""


class _ReweightedFrame(FrameView):
    """A frame (1, h, w) of whose pixels not all count alike."""

    rims = _RIM, _RIM + 1.5  # of what is interpolated, two pixels more, to the nearest
    weights: Array = np.float32(1)
    _last: tuple[Matrix, Array] | None = None

    def warped(self, motions: Matrix, items: Numbers) -> Array:
        """The frame through a motion, kept until there is another."""
        if self._last is None or not np.array_equal(self._last[0], motions):
            self._last = motions.copy(), super().warped(motions, items)
        return self._last[1]

    def weight(self, motions: Matrix, items: Numbers) -> Array:
        """Those of pixels that both images show."""
        return super().weight(motions, items) * self.weights


def fit_reweighted(
    images: Array,
    frames: Array,
    shift: NDArray[np.float64],
    kernel: NDArray[np.float64] | None,
    *,
    once: bool = False,
) -> FineShifts:
    """Refine shifts (n, 2), to be added to frames (n, h, w) to land on images (1 or n, h, w).

    The kernel weights frequencies, see :mod:`xcorr_app.correlation.weighting`. With `once`, pixels are weighted at the
    shifts given, which stay: enough to see how sure shifts will be.
    """
    fit, image = FineShifts.empty(shift.shape[0]), None
    for i in np.flatnonzero(np.isfinite(shift).all(axis=1)):
        if image is None or len(images) > 1:
            image = _standard(images[i : i + 1] if len(images) > 1 else images)
            level, smooth_image = _level(image, kernel), _SMOOTHING(image)
        view = _ReweightedFrame(level, _standard(frames[i : i + 1]), np.zeros(1, np.intp), shifts=True)
        fit.shift[i], fit.sigma[i] = _fitted(view, smooth_image, shift[i], once=once)
    return fit


def note(reweighted: NDArray[np.bool_]) -> str:
    """Say how many frames (T,) were measured so."""
    return (
        f"In {int(reweighted.sum())} of {reweighted.size} frames parts of the picture come and go or move otherwise: "
        "what differs from the reference by more than noise counts less."
    )


def _level(image: Array, kernel: NDArray[np.float64] | None) -> Level:
    """A reference (1, h, w) whose changes are smoothed by the kernel, and so large that steps are as long as before."""
    xp, basis = array_namespace(image), BASES["translation"]
    changes = basis.changes(slopes_of(image))
    if kernel is not None:
        around = xp.pad(image, ((0, 0), (RADIUS, RADIUS), (RADIUS, RADIUS)), mode="edge")
        smoothed = basis.changes(slopes_of(smooth(around, kernel.astype(np.float32)).astype(np.float32)))
        changes = smoothed * ((smoothed * changes).sum() / (smoothed * smoothed).sum())
    return Level(image[0], 1, changes)


def _fitted(
    view: _ReweightedFrame, smooth_reference: Array, shift: NDArray[np.float64], *, once: bool
) -> tuple[NDArray[np.float64] | float, NDArray[np.float64] | float]:
    """Shift (2,) and standard error of one frame, NaN where there is none."""
    one, solver = np.zeros(1, np.intp), Solver(view, BASES["translation"], _CONVERGED)
    motion, at, step = np.eye(3)[None], shift, np.zeros(2)
    motion[0, :2, 2] = -shift
    inside = view.weight(motion, one)
    for number in range(_MAX_STEPS):
        weight, warped = view.weight(motion, one), view.warped(motion, one)
        total, gain = float(weight.sum()), float(compared(view.reference, warped, weight).gain[0])
        if not (total >= solver.fewest and np.isfinite(gain)):
            break
        values = _SMOOTHING(gain * warped)
        level_of = float((weight * (values - smooth_reference)).sum()) / total
        rest = values - level_of - smooth_reference
        weights = _weights(rest, values - level_of + smooth_reference, inside, smooth_reference)
        view.weights = weights
        if not once:
            found = solver.fitted(motion, 1)
            step, motion = found.motion[0, :2, 2] - motion[0, :2, 2], found.motion
            at = -motion[0, :2, 2]
            if not (found.definite[0] and np.abs(at - shift).max() <= _MAX_DISTANCE):
                break
            if number + 1 < _MIN_FRAMES:
                continue
        # There both what is left and what it is left of are weighted.
        view.weights = weights**0.5
        sigma = np.sqrt(np.diag(solver.scatter(motion, one, _TILES)[0]))
        view.weights = weights
        if once or np.abs(step).max() <= max(_CONVERGED, _NEGLIGIBLE * float(sigma.max())):
            return np.where(np.abs(at - shift) < _UNCHANGED, shift, at), sigma
    return np.nan, np.nan


def _weights(rest: Array, brightness: Array, inside: Array, reference: Array) -> Array:
    """Weights (1, h, w) of pixels by how far they differ, over the noise of those as bright."""
    xp = array_namespace(rest)
    there = inside.ravel()[::_SAMPLED] > 0
    differs, bright = (each.ravel()[::_SAMPLED][there] for each in (abs(rest), brightness))
    size = max(differs.size // _LEVELS, 1)
    order = xp.argsort(bright)[: differs.size // size * size]
    noise = 1.4826 * xp.median(differs[order].reshape(-1, size), axis=1)
    levels = xp.median(bright[order].reshape(-1, size), axis=1)
    noise = xp.maximum(noise, _MIN_NOISE * float(reference.std()))
    scale = xp.interp(brightness.ravel(), levels, noise).reshape(rest.shape).astype(rest.dtype)
    beyond = xp.clip((abs(rest) / scale - _NOISE) / (_CHANGE - _NOISE), 0, 1)
    return (1 - beyond * beyond) ** 2


def _standard(images: Array) -> Array:
    return standardize(images, np.float32).values
