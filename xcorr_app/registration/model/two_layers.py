"""A scene that moves over a layer that stands still, fitted to frames together with the shifts.

Frame t has, at frequency k,

    F_t = a_t S exp(i k d_t) + P + noise,

linear in the scene S and the still layer P for given shifts d_t and gains a_t: every frequency is a problem of two
unknowns, whose prior variances and whose noise are those of its class (`frequencies.py`), found by evidence (MacKay
1992, doi 10.1162/neco.1992.4.3.415). What nothing supports shrinks to nothing. Rows, columns and haze that change from
frame to frame are noise of their classes. Shifts are found by Gauss-Newton steps on the marginal likelihood, both
layers integrated out (variable projection: Golub and Pereyra 1973, doi 10.1137/0710036), with the logarithm of the
determinant, which keeps a scene that moves little from moving too far. What lies beyond the rim of a frame counts as
predicted: each step is one of an expectation-maximisation.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, array_namespace, to_host
from xcorr_app.registration.model.frequencies import Frequencies

_ROOM = 4
"""Pixels around a frame beyond the motion."""
_HIGHEST = 2.5
"""Radians per pixel up to which frequencies tell shifts."""
_TELLING = 1e-4
"""Power of the scene over the noise from which a frequency tells shifts."""
_FIRST_NOISE = 1e-3
"""Share of the power of frames that is noise before anything is known: little, so that layers follow the frames."""
_LONGEST = 0.7
"""Pixels that a step takes at most."""
_CONVERGED, _ENOUGH = 1e-3, 0.05
"""Pixels, and standard errors, of a step from which the shifts have settled."""
_APART, _FURTHER, _ROUNDS, _OF_FRAMES = 3, 7, 40, 8
"""Rounds in which layers are found by known shifts, roughly, and so that slopes are theirs; in which shifts settle; and
of frames over known layers."""
_FIRST, _MAX_DISTANCE = 3, 8.0
"""Rounds before which nothing has settled, and times a step that is gone on by at most."""
_LARGER = 10.0
"""Factor by which a prior variance changes in a round at most."""
_UNDETERMINED = 0.05
"""Share of a prior's frequencies that data determine, at least."""
_MIN_GAIN = 0.1
_GAUGE = 1e-9
"""Share of the largest curvature below which shifts are those of all frames and the scene together."""
_BLOCK = 16
"""Rows and columns of a block, whose sums of scores tell how they scatter."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class _Round:
    """What a round leaves to the shifts: normal equations of both layers at each frequency."""

    moved: Array
    """Phases and gains of the frames (T, ...)."""
    left: Array
    """What both layers leave of them (T, ...)."""
    scene: Array
    """Of the matrix of the normal equations: diagonal, and"""
    pattern: Array
    both: Array
    """what is beside it."""
    det: Array


class TwoLayers:
    """Float frames (T, h, w) whose shifts (T, 2) are known to a pixel or so; the frame `held` keeps its own."""

    def __init__(self, frames: Array, shifts: Floats, held: int = 0) -> None:
        xp = array_namespace(frames)
        # Of magnitude one, squares keep their digits.
        self._unit = max(float(xp.abs(frames).max()), float(np.finfo(frames.dtype).tiny))
        self._frames, self._held, self._begin = frames / self._unit, held, shifts[held]
        self._d = shifts - self._begin
        self._count = len(shifts)
        self._gain = np.ones(self._count)
        self._at = self._canvas()
        mean = self._at.mean((xp.abs(self._at.spectra(self._frames)) ** 2).mean(axis=0))
        mean += np.finfo(frames.dtype).tiny
        self._of_scene, self._of_pattern, self._noise = mean, mean, _FIRST_NOISE * mean
        self._rounding = np.finfo(frames.dtype).eps ** 2 * mean.mean() + np.finfo(frames.dtype).tiny
        self._scene = xp.zeros(mean.shape, dtype=np.result_type(mean.dtype, np.complex64))
        self._pattern = xp.zeros_like(self._scene)
        for _ in range(_APART):
            self._last = self._layers()

    @property
    def pattern(self) -> Array:
        """(h, w) that stands still."""
        pattern: Array = self._at.images(self._pattern) * self._unit
        return pattern

    def scene(self, shift: Floats) -> Array:
        """(h, w) as a frame of such a shift (2,) shows it."""
        scene: Array = (
            self._at.images(self._scene * self._at.phases((shift - self._begin + self._d[self._held])[None])[0])
            * self._unit
        )
        return scene

    @property
    def shifts(self) -> Floats:
        """(T, 2) of the frames."""
        return np.asarray(self._d - self._d[self._held] + self._begin)

    def fit(self) -> Floats:
        """Find shifts and layers in turns; returns standard errors (T, 2) of `shifts`.

        First with one frame held; then it moves against all others: the scene is theirs, and follows it slowly.
        """
        for _ in range(_FURTHER):
            self._last = self._layers(fit_gain=True)
        self._converged(held=True)
        variance, self._of_length = self._converged(held=False), self._length()
        scatter, more = (
            self._scatter(self._last.moved, self._last.left),
            self._of_length * (self._d - self._d[self._held]) ** 2,
        )
        return np.asarray(np.sqrt((variance + more) * np.maximum((scatter + scatter[self._held]) / 2, 1)))

    def _converged(self, *, held: bool) -> Floats:
        """Take steps until none changes anything; returns the variances (T, 2) of the shifts."""
        count, states = self._count, [self._state]
        free = np.delete(np.arange(count), self._held) if held else np.arange(count)
        for number in range(1, _ROUNDS + 1):
            slope, hessian = self._slope_and_hessian()
            inverse = np.linalg.pinv(hessian[free][:, :, free].reshape(2 * free.size, -1), rcond=_GAUGE, hermitian=True)
            step, covariance = np.zeros((count, 2)), np.zeros((count, 2, count, 2))
            step[free] = (inverse @ slope[free].ravel()).reshape(-1, 2)
            if not held:
                alone = step[self._held] - np.delete(step, self._held, axis=0).mean(axis=0)
                step[:] = 0
                step[self._held] = alone
            step = np.clip(step, -_LONGEST, _LONGEST)
            covariance[free[:, None], :, free] = inverse.reshape(free.size, 2, free.size, 2).transpose(0, 2, 1, 3)
            # Of the differences from the frame that is held.
            own, beside = np.einsum("tata->ta", covariance), np.einsum("taa->ta", covariance[:, :, self._held])
            variance = np.maximum(own + own[self._held] - 2 * beside, 0)
            if number > _FIRST and (abs(step) <= np.maximum(_CONVERGED, _ENOUGH * np.sqrt(variance))).all():
                break
            self._d = self._d + step
            self._last = self._layers(fit_gain=True)
            states.append(self._state)
            if len(states) == 3:
                if held:
                    self._go_on(*states)
                    self._last = self._layers(fit_gain=True)
                states = [self._state]
        return np.asarray(variance)

    def _length(self) -> float:
        """Variance of a factor that all shifts have in common, as far as Gauss and Newton do not know of it.

        Where a scene hardly moves both layers give way to it: they are fitted anew to shifts one standard error longer.
        """
        d, other = self._d - self._d.mean(axis=0), copy(self)
        slope, hessian = self._slope_and_hessian()
        told = max(float(np.einsum("ta,tasb,sb->", d, hessian, d)), _GAUGE)
        other._d = self._d * (1 + told**-0.5)
        for _ in range(_APART):
            other._last = other._layers(fit_gain=True)
        known = float(((slope - other._slope_and_hessian()[0]) * d).sum()) * told**0.5
        return float(1 / np.clip(known, _GAUGE * told, told) - 1 / told)

    @property
    def _state(self) -> tuple[Array, Array, Floats]:
        return self._scene, self._pattern, self._d

    def _go_on(self, *states: tuple[Array, Array, Floats]) -> None:
        """Take at once what rounds lead to slowly (squared extrapolation: Varadhan and Roland 2008).

        doi 10.1111/j.1467-9469.2007.00585.x; the length is that of the layers, in units of the noise.
        """
        first = [one - zero for zero, one in zip(states[0], states[1], strict=True)]
        change = [two - one - each for one, two, each in zip(states[1], states[2], first, strict=True)]
        lengths = [
            float(sum(self._at.total(abs(each) ** 2 / self._noise) for each in some[:2])) for some in (first, change)
        ]
        length = min(max(np.sqrt(lengths[0] / max(lengths[1], 1e-30)), 1.0), _MAX_DISTANCE)
        self._scene, self._pattern, self._d = (
            zero + 2 * length * one + length**2 * each for zero, one, each in zip(states[0], first, change, strict=True)
        )

    def placed(self, frames: Array, shifts: Floats) -> tuple[Floats, Floats]:
        """Shifts and standard errors (n, 2) of further frames (n, h, w), from those given, over the layers found."""
        xp, at = array_namespace(frames), self._at
        d, gain = shifts - self._begin + self._d[self._held], np.ones(len(shifts))
        frames = frames / self._unit - at.images(self._pattern)
        k = np.stack([to_host(each).astype(np.float64).ravel() for each in at.slopes])
        weight = to_host(at.halves * xp.abs(self._scene) ** 2 / self._noise).astype(np.float64).ravel()
        hessian = np.einsum("in,jn,n->ij", k, k, weight) * self._seen
        for _ in range(_OF_FRAMES):
            moved = at.phases(d) * xp.asarray(gain.astype(frames.dtype))[:, None, None]
            left, gain = self._left_of(frames, moved, gain, fit_gain=True)
            slope = self._slope(moved, left)
            d = d + np.clip(np.linalg.solve(hessian, slope.T).T / gain[:, None] ** 2, -_LONGEST, _LONGEST)
        variance = (
            np.diag(np.linalg.inv(hessian)) / gain[:, None] ** 2 + self._of_length * (d - self._d[self._held]) ** 2
        )
        return d - self._d[self._held] + self._begin, np.sqrt(variance * np.maximum(self._scatter(moved, left), 1))

    def _canvas(self) -> Frequencies:
        """With room for the motion; further frames move as far."""
        room = int(np.ceil(np.abs(self._d).max())) + _ROOM
        at = Frequencies((int(self._frames.shape[1]), int(self._frames.shape[2])), room, self._frames[0])
        self._seen = float(np.prod(at.shape)) / float(np.prod(at.size))
        return at

    def _left_of(self, frames: Array, moved: Array, gain: Floats, *, fit_gain: bool) -> tuple[Array, Floats]:
        """Spectra of what frames less the pattern differ from the scene by, and gains that fit them better."""
        shown = self._at.images(self._scene * moved)
        left = frames - shown
        left -= left.mean(axis=(1, 2), keepdims=True)
        if fit_gain:
            squares = to_host((shown * shown).sum(axis=(1, 2))).astype(np.float64)
            change = to_host((shown * left).sum(axis=(1, 2))) / np.maximum(squares, np.finfo(np.float64).tiny)
            gain = np.clip(gain * (1 + change), _MIN_GAIN, 1 / _MIN_GAIN)
        return self._at.spectra(left), gain

    def _layers(self, *, fit_gain: bool = False) -> _Round:
        """Noise, then both layers by it, then their variances."""
        at, n, xp = self._at, self._count, array_namespace(self._frames)
        gain = self._gain
        moved = at.phases(self._d) * xp.asarray(gain.astype(self._frames.dtype))[:, None, None]
        left, found = self._left_of(self._frames - at.images(self._pattern), moved, gain, fit_gain=fit_gain)
        self._gain = found / found[self._held]
        power = at.mean((xp.abs(left) ** 2).sum(axis=0)) / (self._seen * max(n - 1, 1))
        self._noise = xp.maximum(power, 1e-6 * self._of_scene + self._rounding)
        scene = float((gain**2).sum()) / self._noise + 1 / self._of_scene
        pattern = n / self._noise + 1 / self._of_pattern
        both = moved.conj().sum(axis=0) / self._noise
        det = scene * pattern - xp.abs(both) ** 2
        of_scene = (moved.conj() * left).sum(axis=0) / self._noise - self._scene / self._of_scene
        of_pattern = left.sum(axis=0) / self._noise - self._pattern / self._of_pattern
        more_scene = (pattern * of_scene - both * of_pattern) / det
        more_pattern = (scene * of_pattern - both.conj() * of_scene) / det
        left -= moved * more_scene
        left -= more_pattern
        self._scene, self._pattern = self._scene + more_scene, self._pattern + more_pattern
        self._of_scene = self._evidence(self._of_scene, self._scene, pattern / det)
        self._of_pattern = self._evidence(self._of_pattern, self._pattern, scene / det)
        return _Round(moved, left, scene, pattern, both, det)

    def _evidence(self, variance: Array, layer: Array, uncertain: Array) -> Array:
        """Power of a layer over the share of it that data determine."""
        xp, mean = array_namespace(layer), self._at.mean
        found = mean(xp.abs(layer) ** 2) / xp.clip(1 - mean(uncertain) / variance, _UNDETERMINED, 1)
        return xp.clip(found, variance / _LARGER, variance * _LARGER) + 1e-6 * self._noise

    def _slope(self, moved: Array, left: Array) -> Floats:
        """Of the likelihood of shifts (n, 2)."""
        slopes = (self._scene.conj() / self._noise * moved.conj() * left).imag
        return np.stack([self._at.total(slopes * k) for k in self._at.slopes], axis=1)

    def _slope_and_hessian(self) -> tuple[Floats, Floats]:
        """Of the marginal likelihood: (T, 2), and as Gauss and Newton take it (T, 2, T, 2)."""
        at, n, noise, last = self._at, self._count, self._noise, self._last
        xp = array_namespace(self._frames)
        slope = self._slope(last.moved, last.left)
        of_det = -(last.both * last.moved).imag / (noise * last.det)
        slope += np.stack([at.total(of_det * k) for k in at.slopes], axis=1)
        power = xp.abs(self._scene) ** 2 / noise
        y, x = at.slopes
        use = xp.flatnonzero(((y**2 + x**2 < _HIGHEST**2) & (power > _TELLING)).ravel())
        moved = last.moved.reshape(n, -1)[:, use]
        # Of the inverse of the normal equations of both layers.
        of_scene, of_pattern, of_both = (
            (each / (last.det * noise)).ravel()[use] for each in (last.pattern, last.scene, -last.both)
        )
        weight, k = (at.halves * power).ravel()[use], [each.ravel()[use] for each in at.slopes]
        squares = self._gain**2
        hessian = np.empty((n, 2, n, 2))
        for a, b in ((0, 0), (0, 1), (1, 1)):
            w = weight * k[a] * k[b]
            part = to_host(((moved.conj() * (w * of_pattern)) @ moved.T).real).astype(np.float64)
            cross = to_host((moved * (w * of_both)).real.sum(axis=1)).astype(np.float64)
            part += squares[:, None] * cross + squares * cross[:, None]
            part += np.outer(squares, squares) * float((w * of_scene).sum())
            hessian[:, a, :, b] = hessian[:, b, :, a] = np.diag(squares * float(w.sum())) - part
        return slope, hessian * self._seen

    def _scatter(self, moved: Array, left: Array) -> Floats:
        """(n, 2) variance of sums of scores over blocks of frames, over that by noise of each class.

        Noise that is stronger on bright parts, and what moves otherwise, scatter more (White 1980, doi
        10.2307/1912934, with blocks as clusters).
        """
        at = self._at
        rows, columns = (side // _BLOCK for side in at.shape)
        part = np.s_[:, : rows * _BLOCK, : columns * _BLOCK]
        rest, over = at.images(left / self._noise)[part], []
        for k in at.slopes:
            slope = 1j * k * self._scene * moved
            scores, expected = at.images(slope)[part], at.images(slope / self._noise)[part]
            sums = (scores * rest).reshape(-1, rows, _BLOCK, columns, _BLOCK).sum(axis=(2, 4))
            found, by_noise = (
                to_host(each).astype(np.float64)
                for each in ((sums**2).sum(axis=(1, 2)), (scores * expected).sum(axis=(1, 2)))
            )
            over.append(found * np.prod(at.size) / np.maximum(by_noise, np.finfo(np.float64).tiny))
        return np.stack(over, axis=1)
