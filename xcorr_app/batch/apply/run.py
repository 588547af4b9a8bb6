"""A run of ``xcorr apply``: every series found is moved by shifts that are known."""

import math
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np

from xcorr_app.batch.align.frames import frames_of
from xcorr_app.batch.align.moving import move_stack
from xcorr_app.batch.align.options import INTERPOLATIONS, MOTION_INTERPOLATIONS
from xcorr_app.batch.apply.options import ApplyOptions
from xcorr_app.batch.apply.tables import Tables, moves_of, table_files
from xcorr_app.correlation.engines import limits_of
from xcorr_app.decision import Decision
from xcorr_app.errors import InputError
from xcorr_app.io import SeriesSpec
from xcorr_app.io.source import runs_of
from xcorr_app.pipeline.resources import StackResources
from xcorr_app.pipeline.work import OneFile, StackResult
from xcorr_app.registration.moving.device_moving import decide_moving


class Apply(OneFile[ApplyOptions]):
    """Moves stacks."""

    program = "xcorr apply"
    done = "aligned"

    @cached_property
    def _tables(self) -> Tables:
        return table_files(self.options, self.discovery)

    def checked(self) -> Self:
        """Refuse tables that cannot be read, or are of no stack."""
        _ = self._tables
        return self

    def files(self) -> dict[str, tuple[Path, ...]]:
        """See `Work`."""
        return {"shift_tables": tuple(dict.fromkeys(path for path in self._tables.values() if isinstance(path, Path)))}

    def decide(self, spec: SeriesSpec) -> Decision:
        """See `Work`."""
        with spec.open() as source:
            frames = frames_of(source, self.options, self.device.xp)
            planes = int(np.prod(source.metadata.shape[:-2]))
            order = INTERPOLATIONS[self.options.interpolation]
            return decide_moving(frames.shape, planes, frames.dtype.name, order, limits_of(self.device.xp))

    def process(self, spec: SeriesSpec, resources: StackResources, opened: None) -> StackResult:
        """See `Work`."""
        source = resources.open(spec.open(), once=True)
        frames = frames_of(source, self.options, self.device.xp)
        options = self.options
        moves = moves_of(self._tables[spec.name], frames, options)
        if not moves.kept.any():
            raise InputError(f"{self._tables[spec.name]}: has no shift for any frame of this stack")
        if moves.largest > math.hypot(*frames.shape):
            raise InputError(
                f"{self._tables[spec.name]}: would move a frame by {moves.largest:.3g} px, and nothing of it would be "
                f"left: frames have {frames.shape[0]} x {frames.shape[1]} pixels; --scale is {options.scale:g}"
            )
        plain = options.border in ("constant", "nearest") and options.interpolation in MOTION_INTERPOLATIONS
        if moves.warp and not plain:
            words = "use nearest, linear or cubic, and --border constant or nearest"
            raise InputError(f"{self._tables[spec.name]}: holds motions: {words}")
        target = self.target(spec.name)
        with resources.step("move"):
            moved = move_stack(frames, moves.shifts, options, target, resources, warp=moves.warp)
        resources.close()
        notes = [*spec.notes, *resources.notes, *moved.notes]
        if not moves.kept.all():
            notes.append(f"Without a shift and left out: frames {runs_of(np.flatnonzero(~moves.kept).tolist())}.")
        if moves.lacking:
            notes.append(
                f"Not in the table: frames {runs_of(moves.lacking)}; interpolated between its lines, moved as the "
                "first or last of them beyond."
            )
        if moved.area is not None:
            rows, columns = moved.area
            notes.append(f"Cropped to rows {rows.start}:{rows.stop} and columns {columns.start}:{columns.stop}.")
        facts = {
            "frames": frames.count,
            "table": str(self._tables[spec.name]),
            "matched": moves.matched,
            "largest_shift_px": round(moves.largest, 6),
            "clipped_pixels": moved.clipped,
            "moving": moved.decision and moved.decision.as_record(),
            "notes": notes,
        }
        return StackResult(facts, [target], facts)
