"""Motion that differs from place to place: patches of a frame matched one by one, then one smooth field through all.

Every frame starts from its rigid shift. Its patches are compared with those of the reference in one batch, within the
largest deviation from that shift. Patches whose peak chance may have made, that lie on the edge of the search or do not
belong to their neighbours take no part: the start of the field is there the Gaussian-weighted local-linear regression
of the others, each weighted by its score. Then the field is fitted to all pixels at once (`solver.smooth_field`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.errors import ArgumentError, ShapeError
from xcorr_app.gpu.runtime.arrays import Array, array_namespace
from xcorr_app.registration import quality
from xcorr_app.registration.contrast_choice import BinnedFrames
from xcorr_app.registration.measuring.measurement import Measurement
from xcorr_app.registration.motion.result import MotionResult
from xcorr_app.registration.motion.series import LeaveOneOutMean
from xcorr_app.registration.moving.apply import apply_shifts
from xcorr_app.registration.one_blas_thread import one_blas_thread
from xcorr_app.registration.patches.patch_fit import FittedPatches, PatchFit, PatchOptions
from xcorr_app.registration.reference.strategies import measured_against
from xcorr_app.registration.results.doubtful_frames import applied_shifts
from xcorr_app.registration.settings import Settings
from xcorr_app.registration.solver.basis import PATCHES
from xcorr_app.registration.solver.whole_frames import centred, halved
from xcorr_app.registration.stack.frames import ArrayFrames, Frames
from xcorr_app.registration.stack.passes import Pass, Progress
from xcorr_app.registration.stack.prefilter import Contrast
from xcorr_app.registration.warping.field import Field
from xcorr_app.registration.warping.grid import Grid, with_edges

_AS_LONG_AS = 2
"""On a CPU the patches of a frame take as much memory as the shifts of so many."""
_MIN_TRUSTED = 1 / 3
"""Share of trusted patches below which a frame is uncertain."""
_LEFT_OUT = ("mean", "template")
"""References of which the frame that is measured takes no part."""
REFERENCES = ("first", "last", *_LEFT_OUT)
_NO_MATTER = {quality.INCONSISTENT, quality.LOW_SCORE, quality.UNCERTAIN, quality.AMBIGUOUS}
"""What a frame whose parts move otherwise is flagged with when it is measured as one."""


@dataclass(frozen=True)
class _Rigid:
    """Shifts of whole frames."""

    shifts: NDArray[np.float64]
    flags: tuple[tuple[str, ...], ...]
    reference: str
    notes: tuple[str, ...]
    unreadable: dict[int, str]


@one_blas_thread()
def patches_of(
    frames: Frames,
    reference: str | int | Array,
    options: PatchOptions,
    *,
    max_sigma: float,
    max_shift: float | tuple[float, float] | None = None,
    progress: Progress | None = None,
) -> MotionResult:
    """Measure the motion of the patches of frames that are read as needed.

    `max_shift` in pixels is that of whole frames, by default a quarter of them.
    """
    if min(frames.shape) < options.patch:
        raise ShapeError(
            f"patches of {options.patch} pixels do not fit into frames of {frames.shape[0]} x {frames.shape[1]}: "
            "give a smaller patch"
        )
    if isinstance(reference, str) and reference not in REFERENCES:
        raise ArgumentError(f"unknown reference {reference!r}: use {', '.join(REFERENCES)}, a frame number or an image")
    xp = array_namespace(frames.read(0, 1).frames)
    rigid = _rigid(frames, reference, max_shift, options.half, xp, progress)
    fit = PatchFit(frames.count, *_references(frames, reference, rigid, xp), options, xp)

    def measure(first: int, last: int) -> FittedPatches:
        return fit.measured(frames.read(first, last).frames, first, rigid.shifts[first:last])

    on_device = xp is not np
    pixels = frames.shape[0] * frames.shape[1] * (1 if on_device else _AS_LONG_AS)
    walk = Pass(frames.count, pixels, on_device, progress, held=on_device and isinstance(frames, ArrayFrames))
    found = FittedPatches.joined(list(walk.over("patches", measure)))
    return _result(found, rigid, fit.grid, frames.shape, max_sigma)


def _rigid(
    frames: Frames,
    reference: str | int | Array,
    max_shift: float | tuple[float, float] | None,
    half: int,
    xp: Any,
    progress: Progress | None,
) -> _Rigid:
    """Shifts as `estimate_shifts` finds them, but of frames as a whole: parts that move otherwise are expected.

    Where patches are matched at half their size, so are the frames.
    """
    held = xp is not np and isinstance(frames, ArrayFrames)
    if half == 2:
        frames = BinnedFrames(frames, (slice(None), slice(None)))
        reference = reference if isinstance(reference, (str, int, np.integer)) else halved(reference[None])[0]
    reach: Any = None if max_shift is None else tuple((np.broadcast_to(max_shift, 2) / half).tolist())
    # Patches are looked for around these shifts: a hundredth of a pixel that weights would gain is nothing to them.
    settings = Settings(contrast=Contrast(), weighting="none", max_shift=reach)
    walk = Pass(frames.count, frames.shape[0] * frames.shape[1], xp is not np, progress, held=held)
    measurement = Measurement(frames, walk, settings, xp, whole=True)
    measured, described, notes = measured_against(measurement, reference, np.zeros(frames.count, dtype=bool))
    return _Rigid(half * measured.shifts, measured.flags(settings), described, notes, measured.reasons)


def _references(
    frames: Frames, reference: str | int | Array, rigid: _Rigid, xp: Any
) -> tuple[Array, Callable[[int], Array] | None]:
    """The image that frames are compared with; or the mean of all aligned frames, and for each that of the others."""
    if not isinstance(reference, (str, int, np.integer)):
        return reference, None
    if reference not in _LEFT_OUT:
        # As whole frames are measured: the first, or last, that can be a reference.
        absent = {quality.FLAT, quality.UNREADABLE}
        possible = [t for t, words in enumerate(rigid.flags) if not absent & set(words)] or [0]
        number = possible[0 if reference == "first" else -1] if isinstance(reference, str) else reference
        return frames.read(int(number) % frames.count, int(number) % frames.count + 1).frames[0], None
    usable = np.array([not set(words) - _NO_MATTER for words in rigid.flags]) & np.isfinite(rigid.shifts).all(axis=1)
    shifts = applied_shifts(rigid.shifts, usable, "apply")

    def moved(t: int) -> Array | None:
        frame, _ = centred(frames.read(t, t + 1).frames)
        return apply_shifts(frame, shifts[t : t + 1], interpolation="cubic", cval=np.nan)[0] if usable[t] else None

    others = LeaveOneOutMean(frames, moved, xp)
    whole = xp.nan_to_num(others.of(None)).astype(np.float32)

    def own(t: int) -> Array:
        mean = others.of(t)
        return xp.where(xp.isfinite(mean), mean, whole)

    return whole, own


def _result(found: FittedPatches, rigid: _Rigid, grid: Grid, shape: tuple[int, int], max_sigma: float) -> MotionResult:
    """What `estimate_motion` returns of patches of frames of a shape."""
    count = len(found.field)
    # At an edge, the nearest patch.
    spread = [np.abs(with_edges(axis)[:, None] - axis.middles).argmin(axis=1) for axis in (grid.rows, grid.columns)]
    of_nodes = np.add.outer(spread[0] * grid.shape[1], spread[1])
    measured = np.isfinite(found.field[:, 0, 0, 0])
    errors, mean = found.sigma.reshape(count, 2, -1), found.field.mean(axis=(2, 3))
    sure = (np.median(errors, axis=(1, 2)) <= max_sigma) & (found.trusted.mean(axis=1) >= _MIN_TRUSTED)
    flags = []
    for words, doubt, known in zip(rigid.flags, (~(measured & sure)).tolist(), measured.tolist(), strict=True):
        kept = tuple(word for word in words if word not in _NO_MATTER)
        flags.append((*kept, quality.UNCERTAIN) if doubt and (known or not kept) else kept)
    matrices = np.tile(np.eye(3), (count, 1, 1))
    matrices[~measured] = np.nan
    matrices[measured, :2, 2] = mean[measured]
    field = Field(
        with_edges(grid.rows),
        with_edges(grid.columns),
        -np.moveaxis(found.field, 1, 3),
        np.moveaxis(found.sigma, 1, 3),
        found.trusted[:, of_nodes],
        found.significance[:, of_nodes],
    )
    return MotionResult(
        model=PATCHES,
        matrices=matrices,
        score=found.score,
        sigma=np.median(errors, axis=2),
        sigma_angle=np.zeros(count),
        overlap=np.nan_to_num(np.prod(np.clip(1 - np.abs(mean) / np.array(shape), 0, 1), axis=1)),
        flags=tuple(flags),
        shape=shape,
        reference=rigid.reference,
        unreadable=rigid.unreadable,
        notes=rigid.notes,
        field=field,
    )
