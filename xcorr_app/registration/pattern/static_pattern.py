"""A fixed pattern of camera or illumination: found from the series, subtracted for measuring.

Columns, rows, dust: what stays where it is while the scene moves correlates at zero shift, with a ridge along its
columns, and pins the shifts there. It is told from the scene by the motion of the scene: a few frames, aligned by what
was measured, or by what pairs of them say of two layers, must share something as they are, must be two layers and
nothing else, and the moving layer must fill the frame as the pattern does: bright things that move over a scene that
stands still are no scene.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, array_namespace, to_host
from xcorr_app.registration.measuring.measured import ShiftColumns, Trial, near_each_other, spread, taken
from xcorr_app.registration.model.still_layer import StillLayer
from xcorr_app.registration.model.two_layers import TwoLayers
from xcorr_app.registration.pattern.joint_shifts import JointShifts
from xcorr_app.registration.pattern.one_layer import Residual, left_over, residual_of
from xcorr_app.registration.pattern.pair_layers import FAR_STRONGER, over_still_layer
from xcorr_app.registration.quality import signal_fraction
from xcorr_app.registration.settings import Roi, Settings
from xcorr_app.registration.stack.frames import ArrayFrames, Chunk, FloatFramesOver, Frames
from xcorr_app.registration.stack.prefilter import Contrast, Prefilter

_MIN_FRAMES = 4
"""Frames of which a pattern can be told from a scene."""
_MAX_FRAMES = 32
_PIXELS = 1 << 23
"""Of the frames that a pattern is taken from; at least `_MIN_FRAMES_TAKEN` of them."""
_MIN_FRAMES_TAKEN = 8
_MIN_SIDE = 48
_BINNED_FROM = 384
"""Rows and columns from which a part of the rows, or bins of pixels, are enough for a first look."""
_MIN_MOTION = 3.0
"""Pixels by which the scene moves at least."""
_MIN_SHARED = 0.004
"""Of the variance that aligned frames share, which a pattern has at least; less bends nothing."""
_DEVIATIONS, _OF_REST = 6.0, 0.15
"""Standard errors of that, and share of all that such frames leave: of what moves or changes, less comes back."""
_UNEXPLAINED = 0.005
"""Share from which the shifts measured may be those of the pattern, by whole pixels and by fractions of them."""
_BY_CHANCE = 3.0
"""Standard errors by which it is beyond chance."""
_MUST_LEAVE_LESS = 0.3
"""Share of what aligned frames left with the pattern, or of the scene, which they leave without it at most."""
_MAX_LAYER = 0.65
"""Share of the frame where the static layer shows more than the moving one beyond which it is the scene."""
_WHITE = 0.25
"""Share of a still layer, lines aside, that is not white below which it is the camera's: no optics draws pixels."""
_TILE = 16
"""Pixels along the sides of tiles of which the two are compared, and"""
_FINE, _COARSE = 1.5, 6.0
"""widths in pixels between which they are: noise of pixels and gradients of brightness are no scene."""


@dataclass(frozen=True)
class PatternFreeFrames(FloatFramesOver):
    """Frames less a fixed pattern (Y, X)."""

    pattern: Array
    strength: float
    """Standard deviation of the pattern over that of the scene."""

    def changed(self, chunk: Chunk) -> Array:
        """Take it off."""
        return chunk.frames - self.pattern

    def on_host(self) -> PatternFreeFrames:
        """Return the same frames, handed out as NumPy arrays."""
        return replace(self, source=self.source.on_host(), pattern=to_host(self.pattern))

    @property
    def note(self) -> str:
        """What was done, in words."""
        return (
            "A fixed pattern, which stands still while the scene moves (camera or illumination; "
            f"{100 * self.strength:.0f} % of the scene's contrast), was subtracted for measuring."
        )


@dataclass(frozen=True)
class PatternFit:
    """What was told of a fixed pattern."""

    frames: PatternFreeFrames | None = None
    """Without it; None where there is none, or none that can be told from the scene."""
    still: StillLayer | None = None
    """The same, and the scene, by which all frames are placed."""
    joint: JointShifts | None = None
    """Shifts of a scene that hardly moves over a pattern, fitted together with both."""
    ambiguous: bool = False
    """Two layers were found, but not which of them is the scene, or how far they move against each other."""
    leaves_nothing: bool = False
    """Frames less the pattern leave no more than noise: no other motion is needed to explain them."""
    by_most: bool = False
    """Most pairs of frames say that what moves is the scene."""

    @property
    def notes(self) -> tuple[str, ...]:
        """The same in words."""
        doubt = (
            "Something stands still while something else moves, and which of them is the scene, or how far it moves, "
            "cannot be told: no shift is sure."
        )
        found = [fit.note for fit in (self.frames, self.joint) if fit is not None]
        return (*found, *((doubt,) if self.ambiguous else ()))


def without_pattern(
    frames: Frames, measured: ShiftColumns, settings: Settings, measure: Trial, rest: Residual
) -> PatternFit:
    """Look for a fixed pattern in frames, `measured` as they are, and take it away; `measure` measures them anew."""
    is_open = settings.by_default and min(settings.measured_shape(frames.shape)) >= _MIN_SIDE
    usable = near_each_other(measured, frames.shape) if is_open else np.zeros(0, np.intp)
    few, begin = PatternFit(), None
    # Averages of the same frames share their noise, which stands still.
    may_lie_over = usable.size > 1 and measured.linear is None and settings.smooth_time == 1
    if may_lie_over and not replace(rest, share=abs(rest.share)).is_little:
        sure = usable[~measured.lost(settings)[usable]]
        few, begin = _by_pairs(frames, spread(sure, _MIN_FRAMES), measured, settings)
    if usable.size < _MIN_FRAMES:
        return few
    near = few.joint is not None and few.joint.is_near(measured.shifts)
    if few.joint is not None and near and few.joint.is_near(np.zeros(2)):
        return PatternFit()
    many = spread(usable, min(_MAX_FRAMES, max(_MIN_FRAMES_TAKEN, _PIXELS // (frames.shape[0] * frames.shape[1]))))
    plain = replace(settings, prefilter=Prefilter(), contrast=Contrast())
    fit, some = PatternFit(), spread(usable)
    if not (rest.is_little or _some_leave_nothing(frames, measured, settings)):
        images = taken(frames, some, replace(plain, roi=_middle(frames.shape)))
        if _moves(measured.shifts[some]) and _stands_still(left_over(images, measured.shifts[some])):
            fit = _by_layers(frames, measured, plain, measure, many, measured.shifts[many])
    # What does not bend the shifts of a few frames bends those of no other; of what crosses a scene pairs know no more.
    if fit.frames is not None or begin is None or near or (measured.occluded and few.joint is None):
        return fit
    pairs, begin = _by_pairs(frames, many if few.joint is None else sure, measured, settings)
    if begin is None or (few.joint is not None and pairs.joint is None):
        return pairs
    # All frames together say it better, if both layers are all that they show.
    fit = _by_layers(frames, measured, plain, measure, many, begin[many], led=True, by_most=pairs.by_most)
    if fit.frames is None or (pairs.ambiguous and fit.frames.strength**2 > FAR_STRONGER):
        return pairs
    return fit if fit.leaves_nothing or few.joint is None else pairs


def _by_pairs(
    frames: Frames, usable: NDArray[np.intp], measured: ShiftColumns, settings: Settings
) -> tuple[PatternFit, NDArray[np.float64] | None]:
    """Shifts of frames of which each, and one of them, say by themselves that something stands still.

    And by how much (T, 2) what moves does, be it the scene or not; None where all stands still, or all moves.
    """
    if usable.size < 2:
        return PatternFit(), None
    stack = taken(frames, usable, replace(settings, prefilter=Prefilter(), contrast=Contrast()))
    # Of magnitude one, squares keep their digits.
    stack = stack / array_namespace(stack).abs(stack).max()
    first = int(np.argmin(np.abs(measured.shifts[usable]).max(axis=1)))
    begin = measured.shifts[usable[first]]
    shifts, sigma = np.full((2, *measured.shifts.shape), np.nan)
    moving, strengths, scene_moves = measured.shifts.copy(), [], []
    for i in np.delete(np.arange(usable.size), first):
        both, number = array_namespace(stack).stack([stack[first], stack[i]]), usable[i]
        found = over_still_layer(both, measured.shifts[number] - begin, measured.sigma[number])
        if found is not None:
            shifts[number], sigma[number] = found.shift + begin, found.sigma
            moving[number] = found.moving + begin
            strengths.append(found.strength)
            scene_moves.append(np.isfinite(found.sigma).all() and (found.shift == found.moving).all())
    if not strengths:
        return PatternFit(), None
    # Which of both is the scene is one question of all frames: pairs that leave it open are in doubt alone.
    if 2 * np.isinf(sigma[:, 0]).sum() >= len(strengths):
        return PatternFit(ambiguous=True, leaves_nothing=True), moving
    joint = JointShifts(shifts, sigma, float(np.sqrt(np.mean(strengths))))
    return PatternFit(joint=joint, leaves_nothing=True, by_most=bool(2 * sum(scene_moves) > len(scene_moves))), moving


def _by_layers(
    frames: Frames,
    measured: ShiftColumns,
    settings: Settings,
    measure: Trial,
    many: NDArray[np.intp],
    begin: NDArray[np.float64],
    *,
    led: bool = False,
    by_most: bool = False,
) -> PatternFit:
    """Tell a pattern by both layers, of frames of these numbers, from shifts to `begin` with.

    Those that pairs `led` to may be small. Where it is the scene that moves `by_most` pairs, which of both is larger is
    not asked.
    """
    stack, window = taken(frames, many, settings), settings.window(frames.shape)
    reach = max(window.dy_max, -window.dy_min), max(window.dx_max, -window.dx_min)
    # Without what stands still by these shifts the scene is found to half a pixel: likelihood finds the rest.
    scene, trial = ArrayFrames(stack - TwoLayers(stack, begin).pattern), replace(settings, max_shift=reach, roi=None)
    begin = measure(scene, "first", replace(trial, engine="fft"), whole=True, tiles=False).shifts
    if not np.isfinite(begin).all():
        return PatternFit()
    layers = TwoLayers(stack, begin, int(np.argmin(np.abs(measured.shifts[many]).max(axis=1))))
    sigma, shifts = layers.fit(), layers.shifts
    pattern, scene = layers.pattern, layers.scene(shifts[0])
    found = left_over(stack, shifts)
    if not _stands_still(found) or not (led or _moves(shifts)):
        return PatternFit()
    as_measured, without = left_over(stack, measured.shifts[many]), left_over(stack - pattern, shifts)
    # In units of what moves: of shifts that followed the pattern frames share that, which may be far stronger; and so
    # do those of a scene that hardly moves.
    before = as_measured.share * max(as_measured.times(found), as_measured.times(without))
    # By fractions of pixels: a scene that blurs or grows, or light that turns, leaves as much beside a "pattern".
    if without.share > max(_MUST_LEAVE_LESS * min(before, 1.0), _BY_CHANCE * without.chance):
        return PatternFit()
    if not by_most and _largest(pattern, scene) > _MAX_LAYER:
        return PatternFit()
    strength = float(pattern.std()) / max(float(scene.std()), 1e-30)
    return PatternFit(
        PatternFreeFrames(frames, _of_frame(pattern, frames, settings.roi), strength),
        StillLayer(layers, many, sigma, settings),
        leaves_nothing=without.share < max(_UNEXPLAINED, _BY_CHANCE * without.chance),
    )


def _moves(shifts: NDArray[np.float64]) -> bool:
    """Whether shifts (n, 2) are those of a scene that moves far enough."""
    return float(np.ptp(shifts, axis=0).max()) >= _MIN_MOTION


def _stands_still(found: Residual) -> bool:
    """Whether frames share something where they are."""
    return max(_MIN_SHARED, _DEVIATIONS * found.static_chance, _OF_REST * found.share) < found.static < np.inf


def _of_frame(pattern: Array, frames: Frames, part: Roi | None) -> Array:
    """Pattern (Y, X) of whole frames, of which it shows a part."""
    whole = array_namespace(pattern).zeros(frames.shape, dtype=pattern.dtype)
    whole[part or ...] = pattern
    return whole


def _some_leave_nothing(frames: Frames, measured: ShiftColumns, settings: Settings) -> bool:
    """Whether frames that move, and are trusted where others are not, leave nothing: a pattern would be in all of them.

    The others then show another scene, as after a cut, of which two layers make a pattern.
    """
    usable = measured.usable & np.isfinite(measured.shifts).all(axis=1)
    trusted = usable & measured.trusted(settings)
    if (
        trusted.sum() < _MIN_FRAMES
        or trusted.sum() == usable.sum()
        or np.ptp(measured.shifts[trusted], axis=0).max() < 1
    ):
        return False
    return residual_of(frames, replace(measured, usable=trusted), settings).is_little


def _middle(shape: tuple[int, int]) -> Roi | None:
    """Rows of large frames that are enough to see whether there is a pattern."""
    rows = shape[0]
    return None if rows < _BINNED_FROM else (slice(rows // 4, rows - rows // 4), slice(0, shape[1]))


def _largest(pattern: Array, scene: Array) -> float:
    """Share of the frame where the static layer, apart from rows and columns, shows more than the moving one.

    All of it, where the two lie beside each other, and the static one fills more: parts are no layers.
    """
    lines = pattern.mean(axis=1, keepdims=True) + pattern.mean(axis=0)
    layers = array_namespace(pattern).stack([pattern - lines + pattern.mean(), scene])
    # Without lines white, it is the camera's: no optics draws pixels.
    if float(signal_fraction(layers[:1])[0]) < _WHITE:
        return 0.0
    # What is neither noise of pixels nor a gradient of brightness.
    fine, coarse = (Prefilter("gaussian", (sigma,)) for sigma in (_FINE, _COARSE))
    power = fine((fine(layers) - coarse(layers)) ** 2)
    share = float((power[0] > power[1]).mean())
    alike = np.corrcoef(to_host(coarse(power)).reshape(2, -1))[0, 1]
    return 1.0 if alike < -_BY_CHANCE * _TILE / np.sqrt(scene.size) and share > 0.5 else share
