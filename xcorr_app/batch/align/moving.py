"""Moving every plane of a stack by its frame's shift and writing the result, plane by plane."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.batch.align.frames import SourceFrames
from xcorr_app.batch.align.options import INTERPOLATIONS
from xcorr_app.batch.align.projections import Projections
from xcorr_app.batch.align.without_pictures import NoPictures
from xcorr_app.batch.shared_options import MovingOptions
from xcorr_app.decision import Decision
from xcorr_app.errors import InputError
from xcorr_app.gpu.runtime.arrays import Array
from xcorr_app.gpu.runtime.download import download_in_parts
from xcorr_app.gpu.runtime.limits import device_limits
from xcorr_app.gpu.runtime.placement import current_device
from xcorr_app.io import HeldSource, StackMetadata, StackWriter
from xcorr_app.io.ome_zarr.zarr_write import planes_together
from xcorr_app.io.outputs import Writer
from xcorr_app.io.reading import read_planes
from xcorr_app.io.source import plane_positions
from xcorr_app.io.writing.placed_planes import PlacedPlanes
from xcorr_app.pipeline.chunks import PlanesPass
from xcorr_app.registration.correction import Correction
from xcorr_app.registration.moving.apply import common_area, shift_frames
from xcorr_app.registration.moving.moving_choice import decide_moving
from xcorr_app.registration.stack.frames import Frames
from xcorr_app.registration.stack.passes import Progress
from xcorr_app.registration.warping.warp import Warp

_RANGES_A_BLOCK, _PLANES_A_BLOCK = 16, 64
"""At least, of pictures, whose sums take as much memory as thirty planes: of a CPU 128 frames of 512 x 512, of a device
4096."""


@dataclass(frozen=True)
class Moved:
    """What moving a stack did to it."""

    clipped: int
    """Pixels whose interpolated value did not fit the integer type."""
    area: tuple[slice, slice] | None
    """Part of the frame that was written, if it was cropped."""
    decision: Decision | None
    """What moved the planes, and why."""
    notes: tuple[str, ...] = ()
    """What a user should know of how it went."""


@dataclass
class _Block:
    """What was made of consecutive planes."""

    clipped: int
    gathered: Any
    written: tuple[Any, ...] = ()
    """What their writer says of where they are."""

    def joined(self, other: _Block) -> _Block:
        """Take in what was made of the planes that follow."""
        self.clipped += other.clipped
        self.written += other.written
        if self.gathered is not None:
            self.gathered.join(other.gathered)
        return self


def move_stack(
    frames: SourceFrames,
    shifts: NDArray[np.float64],
    options: MovingOptions,
    target: Path | None,
    unreadable: Collection[int],
    projections: Projections | NoPictures,
    progress: Progress | None,
    new_writer: Callable[[Path, StackMetadata], Writer] = StackWriter,
    on_device: Frames | None = None,
    warp: Warp | None = None,
    correction: Correction | None = None,
) -> Moved:
    """Move all planes of all channels by (count, 2) pixels and write them to `target`, if any.

    Frames whose shift is NaN are left out. Planes of the measured channel are added to `projections`; damaged planes of
    frames in `unreadable` become zeros. Where the device's memory does not suffice for a single plane, the CPU moves
    the rest. Frames that were measured `on_device` are taken from there. With a `warp` frames are warped,
    and `shifts` only say which are left out. With a `correction` planes are corrected before they move.
    """
    source = frames.source
    kept = np.isfinite(shifts[:, 0]) & np.isfinite(shifts[:, 1])
    if not kept.any():
        shifts, kept = np.zeros_like(shifts), np.ones_like(kept)
    metadata = source.metadata.with_frames(frames.axis, np.flatnonzero(kept).tolist())
    area = common_area(frames.shape, shifts[kept]) if options.border == "crop" else None
    planes = [p for p in _planes(frames, only_measured=target is None) if kept[p[frames.axis.lower()]]]
    order: Any = INTERPOLATIONS[options.interpolation]
    mode: Any = "nearest" if options.border == "nearest" else "constant"
    along = frames.axis.lower()
    notes = list[str]()

    def read(start: int, stop: int) -> NDArray[Any]:
        positions = planes[start:stop]
        if isinstance(source, HeldSource):
            before, errors = source.planes(positions)
        else:
            before = np.empty((stop - start, *frames.shape), dtype=metadata.dtype)
            errors = read_planes(source, positions, before)
        for i, error in errors.items():
            if positions[i][along] not in unreadable:
                raise error
        return before

    def job(start: int, stop: int, xp: Any) -> tuple[int, Array, Array, int]:
        numbers = [position[along] for position in planes[start:stop]]
        if on_device is not None and xp is not np and _are_those_measured(frames, planes[start:stop]):
            chunk = on_device.read(numbers[0], numbers[-1] + 1)
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
        writer = new_writer(target, written)
    with writer as stream:

        def of_block(first: int, results: Iterator[tuple[int, Array, Array, int]]) -> _Block:
            with stream.part(first) if is_placed else nullcontext(stream) as sink:
                found = gathered_of(results, sink)
            return replace(found, written=sink.placed) if is_placed else found

        def gathered_of(results: Iterator[tuple[int, Array, Array, int]], sink: Writer | None) -> _Block:
            gathered: Any = projections.begun()
            all_clipped = 0
            for start, before, after, clipped in results:
                all_clipped += clipped
                shown = [i for i in range(before.shape[0]) if _is_shown(frames, planes[start + i])]
                if shown:
                    those: Any = shown if len(shown) < before.shape[0] else slice(None)
                    numbers = [planes[start + i][along] for i in shown]
                    projections.add(numbers, before[those], after[those], gathered)
                if sink is not None:
                    for part in download_in_parts(after):
                        for image in part:
                            sink.write(image if area is None else image[area])
                del before, after  # not kept while the next ones are computed
            return _Block(all_clipped, projections.end(gathered, to_join=blocks.blocks > 1))

        is_placed = isinstance(stream, PlacedPlanes)
        together, pictured = 1 if target is None else planes_together(written), not isinstance(projections, NoPictures)
        if pictured:
            together *= -(-_PLANES_A_BLOCK // together)
        blocks = PlanesPass(
            len(planes),
            frames.shape[0] * frames.shape[1],
            frames.xp is not np,
            progress,
            ranges_a_block=_RANGES_A_BLOCK if pictured else 4,
            together=together,
            past="moved",
            notes=notes,
            there=[frames.xp],
        )
        moved = blocks.total("move", blocks.there_too(job), _Block.joined, of_block)
        projections.take(moved.gathered, blocks.there[0])
        if moved.written and not is_placed:
            stream.take(moved.written)
    limits = None if frames.xp is np or notes else device_limits(current_device())
    decision = decide_moving(frames.shape, len(planes), metadata.dtype.name, order, limits)
    return Moved(moved.clipped, area, decision, tuple(notes))


def _planes(frames: SourceFrames, *, only_measured: bool) -> list[dict[str, int]]:
    """Positions of the planes in the order of the file."""
    positions = plane_positions(frames.source.metadata)
    return [p for p in positions if _is_shown(frames, p)] if only_measured else positions


def _are_those_measured(frames: SourceFrames, positions: list[dict[str, int]]) -> bool:
    """Whether planes are frames as they were measured."""
    return frames.averaged == 1 and all(position["c"] == frames.channel for position in positions)


def _is_shown(frames: SourceFrames, position: dict[str, int]) -> bool:
    """Whether a plane stands for its frame in the projections: measured channel, middle of the averaged planes."""
    across = "z" if frames.axis == "T" else "t"
    return position["c"] == frames.channel and position[across] == frames.averaged // 2
