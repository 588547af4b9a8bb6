"""Moving every plane of a stack by its frame's shift and writing the result, plane by plane."""

from collections.abc import Collection
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.batch.align.frames import SourceFrames
from xcorr_app.batch.align.options import INTERPOLATIONS
from xcorr_app.batch.align.projections import Projections
from xcorr_app.batch.shared_options import MovingOptions
from xcorr_app.decision import Decision
from xcorr_app.errors import InputError
from xcorr_app.gpu.runtime.arrays import Array
from xcorr_app.gpu.runtime.limits import device_limits
from xcorr_app.gpu.runtime.placement import current_device
from xcorr_app.io.source import plane_positions
from xcorr_app.pipeline.planes import over_planes, write_planes
from xcorr_app.pipeline.resources import StackResources
from xcorr_app.registration.correction import Correction
from xcorr_app.registration.moving.apply import common_area, shift_frames
from xcorr_app.registration.moving.device_moving import decide_moving
from xcorr_app.registration.warping.warp import Warp


@dataclass(frozen=True)
class MovingResult:
    """What moving a stack did to it."""

    clipped: int
    """Pixels whose interpolated value did not fit the integer type."""
    area: tuple[slice, slice] | None
    """Part of the frame that was written, if it was cropped."""
    decision: Decision | None
    """What moved the planes, and why."""
    notes: tuple[str, ...] = ()
    """What a user should know of how it went."""


def move_stack(
    frames: SourceFrames,
    shifts: NDArray[np.float64],
    options: MovingOptions,
    target: Path | None,
    resources: StackResources,
    *,
    unreadable: Collection[int] = (),
    projections: Projections | None = None,
    warp: Warp | None = None,
    correction: Correction | None = None,
) -> MovingResult:
    """Move all planes of all channels by (count, 2) pixels and write them to `target`, if any.

    Frames whose shift is NaN are left out. Planes of the measured channel are added to `projections`; damaged planes of
    frames in `unreadable` become zeros. Where the device's memory does not suffice for a single plane, the CPU moves
    the rest. Frames that were uploaded to be measured are taken from there. With a `warp` frames are warped,
    and `shifts` only say which are left out. With a `correction` planes are corrected before they move.
    """
    source = frames.source
    kept = np.isfinite(shifts[:, 0]) & np.isfinite(shifts[:, 1])
    if not kept.any():
        shifts, kept = np.zeros_like(shifts), np.ones_like(kept)
    metadata = source.metadata.with_frames(frames.axis, np.flatnonzero(kept).tolist())
    area = common_area(frames.shape, shifts[kept]) if options.border == "crop" else None
    along = frames.axis.lower()
    planes = [
        each
        for each in plane_positions(source.metadata)
        if kept[each[along]] and (target is not None or _is_shown(frames, each))
    ]
    order: Any = INTERPOLATIONS[options.interpolation]
    mode: Any = "constant" if options.border == "crop" else options.border
    notes = list[str]()

    def read(start: int, stop: int) -> NDArray[Any]:
        before, errors = frames.planes(planes[start:stop])
        for i, error in errors.items():
            if planes[start + i][along] not in unreadable:
                raise error
        return before

    def job(start: int, stop: int, xp: Any) -> tuple[int, Array, Array, int]:
        numbers = [position[along] for position in planes[start:stop]]
        uploaded = frames.uploaded if frames.averaged == 1 and xp is not np else None
        if uploaded is not None and all(each["c"] == frames.channel for each in planes[start:stop]):
            chunk = uploaded.read(numbers[0], numbers[-1] + 1)
            if new := (chunk.unreadable.keys() & set(numbers)) - set(unreadable):
                raise InputError(chunk.unreadable[min(new)])
            together = len(numbers) == len(chunk.frames)
            before = chunk.frames if together else chunk.frames[[number - numbers[0] for number in numbers]]
        else:
            before = xp.asarray(read(start, stop))
        if correction is not None:
            before = correction.as_stored(before)
        if warp is None:
            after, count = shift_frames(before, shifts[numbers], order=order, mode=mode, workers=1)
        else:
            after, count = warp(before, numbers, order, mode), 0
        return start, before, after, count

    if target is None:
        writer: Any = nullcontext()
    else:
        rows, columns = area or (slice(0, frames.shape[0]), slice(0, frames.shape[1]))
        sides = (rows.stop - rows.start, columns.stop - columns.start)
        written = metadata.with_plane_shape(*sides, rows.start, columns.start)
        writer = resources.writer(target, written)
    clipped = 0
    with writer as stream:
        results = over_planes(
            frames.xp, len(planes), frames.shape[0] * frames.shape[1], job, ("move", "moved"), resources.progress, notes
        )
        for start, before, after, beyond in results:
            clipped += beyond
            shown = [i for i in range(before.shape[0]) if _is_shown(frames, planes[start + i])]
            if shown and projections is not None:
                those: Any = shown if len(shown) < before.shape[0] else slice(None)
                projections.add([planes[start + i][along] for i in shown], before[those], after[those])
            if stream is not None:
                write_planes(stream, after, area)
            del before, after  # not kept while the next ones are computed
    limits = None if frames.xp is np or notes else device_limits(current_device())
    decision = decide_moving(frames.shape, len(planes), metadata.dtype.name, order, limits)
    return MovingResult(clipped, area, decision, tuple(notes))


def _is_shown(frames: SourceFrames, position: dict[str, int]) -> bool:
    """Whether a plane stands for its frame in the projections: measured channel, middle of the averaged planes."""
    across = "z" if frames.axis == "T" else "t"
    return position["c"] == frames.channel and position[across] == frames.averaged // 2
