"""Frames measured while a series of them is still written, one file each, and appended to a table as they come.

What only the whole series tells (contrast, light, patterns, which frames are interpolated) is not known yet: these
shifts are a first look, and the series is measured afresh when it has ended.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from xcorr_app.batch.align.frames import SourceFrames, frames_along, reference_of
from xcorr_app.batch.align.options import AlignOptions
from xcorr_app.gpu.runtime.arrays import Array
from xcorr_app.gpu.runtime.select import Device
from xcorr_app.io import SeriesSpec
from xcorr_app.io.finding.file_names import read_name
from xcorr_app.io.series import joined_frames
from xcorr_app.registration.estimate import estimate_from
from xcorr_app.registration.results.frame_table import rows_of, shifts_csv

TABLE = "shifts_so_far.csv"


def can_be_measured_alone(options: AlignOptions) -> bool:
    """Whether a frame can be measured before the others are there: against one frame or image, as it is."""
    fixed = options.reference == "first" or isinstance(options.reference, (int, Path))
    plain = options.model == "translation" and options.mask is None and not options.corrects
    return fixed and plain and options.more_channels == () and options.settings.smooth_time == 1


class FramesSoFar:
    """Measures frames in the order in which they come, and appends them to ``OUT/shifts_so_far.csv``.

    Frames wait until the one that they are compared with is there. Those of another size or type than the first, and
    those whose names count depth, channels or positions, are left to the end.
    """

    def __init__(self, options: AlignOptions, device: Device, out: Path) -> None:
        self._options, self._device, self.table = options, device, out / TABLE
        self._reference: Array | None = None
        self._kind: Any = None
        self._waiting: list[SeriesSpec] = []
        self._taken: set[Path] = set()
        self._written = 0

    def __call__(self, specs: Sequence[SeriesSpec]) -> None:
        """Take in frames, each of a file of its own, that are complete."""
        self._waiting += [spec for spec in specs if self._belongs(spec)]
        if not self._waiting:
            return
        source = joined_frames(self._waiting, self._waiting[0].name).open()
        frames = frames_along(source, "T", self._options.first_channel, self._device.xp)
        if self._reference is None:
            self._reference = self._known_reference(frames)
        if self._reference is None:
            return
        result = estimate_from(frames, self._reference, self._options.settings, xp=self._device.xp)
        # By what a frame is moved is decided when all are known.
        unknown: Any = {"applied_dy": math.nan, "applied_dx": math.nan}
        rows = rows_of(result, "leave", frames.origins())
        text = shifts_csv(replace(row, frame=row.frame + self._written, **unknown) for row in rows)
        with self.table.open("a", encoding="utf-8") as file:
            file.write(text if self._written == 0 else text.partition("\n")[2])
        self._written += frames.count
        self._waiting = []

    def _belongs(self, spec: SeriesSpec) -> bool:
        """Whether a file is a frame of the series of the first, and not known yet."""
        (path,) = spec.paths
        name = read_name(path)
        if path in self._taken or name.series or set(name.at) & set("ZC"):
            return False
        metadata = spec.open().metadata
        kind = (metadata.shape, metadata.dtype)
        self._kind = self._kind or kind
        if kind != self._kind:
            return False
        self._taken.add(path)
        return True

    def _known_reference(self, frames: SourceFrames) -> Array | None:
        """Image that all are compared with; None before it is there."""
        if isinstance(self._options.reference, Path):
            image: Any = reference_of(self._options, frames)
            return image
        number = 0 if self._options.reference == "first" else int(self._options.reference)
        return frames.read(number, number + 1).frames[0] if 0 <= number < frames.count else None
