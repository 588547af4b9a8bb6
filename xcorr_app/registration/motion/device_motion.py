"""Starting values and refined motions for a chunk of frames at once on a device: the steps of the CPU, batched.

Pixels are looked at by kernels, which leave sums of every motion; the few equations of each are solved on the host for
all motions together. Motions that are settled take no part in further steps.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xcorr_app.correlation.plane import cross_correlate
from xcorr_app.gpu.field.linear import LinearSums, linear_scatter, linear_sums, unit_of
from xcorr_app.gpu.resample.warping import warp_on_device
from xcorr_app.gpu.runtime.arrays import Array, array_namespace, to_host
from xcorr_app.registration.motion.gauss_newton import (
    COARSE,
    FEWEST,
    MAX_STEPS,
    SETTLED,
    Fit,
    Level,
    are_definite,
    corner_moves,
    slopes_of,
)
from xcorr_app.registration.motion.models import Model
from xcorr_app.registration.motion.start import MIN_OVERLAP, Candidate, Starts, without_shift
from xcorr_app.registration.warping.device_warp import spline_coefficients
from xcorr_app.registration.warping.matrices import Matrix, about_corner

Floats = NDArray[np.float64]
Numbers = NDArray[np.intp]


def device_candidates(
    starts: Starts, reference: Array, frames: Array, known: Sequence[Sequence[Matrix]]
) -> list[list[Candidate]]:
    """Candidates of each of the frames (n, h, w), best first; `known` are motions of others, to be tried too."""
    turns = starts.turns_of(frames)
    for motions, others in zip(turns, known, strict=True):
        motions += [without_shift(motion) for motion in others]
    numbers = np.repeat(np.arange(len(turns)), [len(motions) for motions in turns])
    linear = np.concatenate([np.stack(motions) for motions in turns])
    xp = array_namespace(frames)
    centred = (frames - frames.mean(axis=(1, 2), keepdims=True)).astype(np.float32)
    seen = _seen(centred[xp.asarray(numbers)], linear, "linear", outside=0.0)
    planes = cross_correlate(
        seen, reference[None], "n-to-m", max_shift=starts.window, min_overlap=MIN_OVERLAP, check_finite=False
    )
    planes = planes.reshape(len(linear), -1)
    planes = xp.where(xp.isfinite(planes), planes, -np.inf)
    shifted = starts.motions(linear, to_host(planes.argmax(axis=1)))
    found: list[list[Candidate]] = [[] for _ in turns]
    for number, motion, score in zip(numbers.tolist(), shifted, to_host(planes.max(axis=1)).tolist(), strict=True):
        found[number].append(Candidate(motion, score))
    return [sorted(each, key=lambda one: -one.score) for each in found]


def _seen(images: Array, motions: Matrix, method: str, outside: float | None) -> Array:
    """Images (n, h, w), or coefficients of their splines, through motions (n, 3, 3) about their middles."""
    of_corner = about_corner(motions, (int(images.shape[1]), int(images.shape[2])))
    return warp_on_device(images, of_corner[:, :2], np.dtype(np.float32), method, outside=outside)


@dataclass(frozen=True)
class DeviceLevel:
    """A reference at one size, in float32 on the device."""

    image: Array
    slopes: Array
    """(h, w, 2) along rows and columns."""
    factor: int

    @classmethod
    def of(cls, level: Level) -> DeviceLevel:
        """The same image."""
        xp = array_namespace(level.image)
        image = xp.ascontiguousarray(level.image.astype(np.float32))
        return cls(image, xp.ascontiguousarray(xp.stack(slopes_of(image), axis=-1)), level.factor)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return int(self.image.shape[0]), int(self.image.shape[1])


@dataclass
class _Moving:
    """n motions that are being refined at one size, changed as they are."""

    numbers: Numbers
    """Of the frame that each is of."""
    motions: Matrix
    settled: NDArray[np.bool_]
    definite: NDArray[np.bool_]


class DeviceMotion:
    """Refines motions of frames against a reference given at full size, half, ..."""

    def __init__(self, levels: Sequence[Level], model: Model) -> None:
        self._levels, self._model = [DeviceLevel.of(level) for level in levels], model
        self._count = len(_mixture(model))

    def refined(self, sizes: Sequence[Array], numbers: Numbers, motions: Matrix) -> list[Fit]:
        """Refine motions (n, 3, 3), each of the frame of that number; frames (T, h, w) at the levels' `sizes`."""
        count = len(numbers)
        nothing = np.full((self._count, self._count), np.nan)
        lost = Fit(np.eye(3), np.nan, settled=False, covariance=nothing, overlap=0.0, definite=False)
        fits = [lost] * count
        alive, motions = np.arange(count), motions.copy()
        for level, frames in zip(reversed(self._levels), reversed(sizes), strict=True):
            if not alive.size:
                break
            motions[:, :2, 2] /= level.factor
            splines = spline_coefficients(frames)
            moving = _Moving(numbers[alive], motions, np.zeros(alive.size, bool), np.ones(alive.size, bool))
            found = self._at_level(level, splines, moving)
            known = [index for index, fit in enumerate(found) if not np.isnan(fit.score)]
            alive, motions = alive[known], moving.motions[known]
            motions[:, :2, 2] *= level.factor
            fits = [lost] * count
            for index, place in zip(alive.tolist(), known, strict=True):
                fits[index] = found[place]
        return fits

    def _at_level(self, level: DeviceLevel, splines: Array, moving: _Moving) -> list[Fit]:
        fine, k = level.factor == 1, self._count
        active = np.arange(len(moving.numbers))
        for _ in range(MAX_STEPS if fine else MAX_STEPS // 2):
            sums = self._sums(level, splines, moving, active)
            moving.definite[active] = are_definite(sums.normal, sums.right) | (sums.pixels < FEWEST)
            go_on = moving.definite[active] & (sums.pixels >= FEWEST)
            numbers = _solved(sums.normal[go_on], sums.right[go_on])
            inward = numbers[:, k] > 0  # else turned inside out: nothing to hold on to
            active, numbers = active[go_on][inward], numbers[inward]
            if not active.size:
                break
            before = moving.motions[active]
            after = before @ np.linalg.inv(self._model.step(numbers[:, :k]))
            moving.motions[active] = after
            still = corner_moves(after - before, level.shape) < SETTLED * (1 if fine else COARSE)
            moving.settled[active[still]] = True
            active = active[~still]
            if not active.size:
                break
        return self._described(level, splines, moving)

    def _described(self, level: DeviceLevel, splines: Array, moving: _Moving) -> list[Fit]:
        """What can be said about motions as they are."""
        every, k = np.arange(len(moving.numbers)), self._count
        sums = self._sums(level, splines, moving, every)
        covariance = np.full((every.size, k, k), np.nan)
        enough = sums.pixels >= FEWEST
        score = np.where(enough, sums.score, np.nan)
        if level.factor == 1:
            sure = np.flatnonzero(moving.definite & enough & are_definite(sums.normal, sums.right))
            if sure.size:
                covariance[sure] = self._covariance(level, splines, moving, sums, sure)
        overlap = np.where(enough, sums.pixels / level.image.size, 0.0)
        settled = moving.settled & enough
        each = zip(moving.motions, score.tolist(), settled.tolist(), covariance, overlap.tolist(), strict=True)
        return [Fit(*values, definite) for values, definite in zip(each, moving.definite.tolist(), strict=True)]

    def _sums(self, level: DeviceLevel, splines: Array, moving: _Moving, chosen: Numbers) -> LinearSums:
        """Sums of some motions, of the changes of the model."""
        of_corner = about_corner(moving.motions[chosen], level.shape)[:, :2]
        found = linear_sums(splines, level.image, level.slopes, moving.numbers[chosen], of_corner)
        mixture = self._mixture(level)
        return dataclasses.replace(found, normal=mixture @ found.normal @ mixture.T, right=found.right @ mixture.T)

    def _covariance(
        self, level: DeviceLevel, splines: Array, moving: _Moving, sums: LinearSums, chosen: Numbers
    ) -> Floats:
        """Covariances (n, k, k) of the numbers of the model: see `gauss_newton`."""
        xp, k = array_namespace(splines), self._count
        normal, mixture = sums.normal[chosen], self._mixture(level)
        numbers = _solved(normal, sums.right[chosen])
        gains, offsets = numbers[:, k], numbers[:, k + 1]
        of_both, scatter = np.empty((chosen.size, 8, 6)), np.empty((chosen.size, 8, 8))
        for first in range(0, chosen.size, len(splines)):  # as many at a time as there are frames
            part = slice(first, first + len(splines))
            motions = moving.motions[chosen[part]]
            seen = _seen(splines[xp.asarray(moving.numbers[chosen[part]])], motions, "cubic", outside=None)
            of_corner = about_corner(motions, level.shape)[:, :2]
            of_both[part], scatter[part] = linear_scatter(
                seen, level.image, level.slopes, of_corner, gains[part], offsets[part]
            )
        changes = mixture[:k, :6]
        # Slopes of frame and reference have the scene in common, and no noise.
        products = -gains[:, None, None] * (mixture @ of_both @ changes.T)
        matrix = np.concatenate([products, normal[:, :, k:]], axis=2)
        inverse = np.linalg.inv(matrix)
        found: Floats = (inverse @ (mixture @ scatter @ mixture.T) @ inverse.transpose(0, 2, 1))[:, :k, :k]
        return found

    def _mixture(self, level: DeviceLevel) -> Floats:
        """(k + 2, 8): the changes of the model, the frame and one, from the images that sums are of."""
        changes = _mixture(self._model)
        changes[:, 2:] /= unit_of(level.shape)
        found = np.zeros((self._count + 2, 8))
        found[:-2, :6] = changes
        found[-2, 6] = found[-1, 7] = 1.0
        return found


def _solved(normal: Floats, right: Floats) -> Floats:
    """Solutions (n, k) of normal equations (n, k, k)."""
    found: Floats = np.linalg.solve(normal, right[..., None])[..., 0].astype(np.float64)
    return found


def _mixture(model: Model) -> Floats:
    """(k, 6): each change of a model as a sum of g_y, g_x, y g_y, x g_y, y g_x, x g_x."""

    def at(gy: float, gx: float, y: float, x: float) -> Floats:
        place = (np.full((1, 1), value) for value in (gy, gx, y, x))
        return np.array([float(change[0, 0]) for change in model.slopes(*place)])

    down, across = at(1, 0, 0, 0), at(0, 1, 0, 0)
    return np.stack(
        [down, across, at(1, 0, 1, 0) - down, at(1, 0, 0, 1) - down, at(0, 1, 1, 0) - across, at(0, 1, 0, 1) - across],
        axis=1,
    )
