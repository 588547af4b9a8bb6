"""What a report is made of: plain records, filled in by whoever measured.

Sign of every shift here: pixels to *add* to a frame to land on the reference, rows (dy) counted downwards
and columns (dx) to the right.
"""

import math
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Self

from xcorr_app.registration.assessment import Assessment
from xcorr_app.registration.results.frame_table import FrameRow
from xcorr_app.report.pictures import Pictures

__all__ = ["FLAG_MEANINGS", "Bends", "FrameRow", "Pictures", "RunReport", "StackReport"]

_SUMMED_UP = ("notes", "tolerance", "left_out", "reference_frame", "turns")
"""Fields of a stack's report that are kept for a run that is resumed."""

FLAG_MEANINGS: dict[str, str] = {
    "edge": "The best shift is on the edge of the search window, or of the shifts that leave enough overlap, so the "
    "true one may lie beyond it. Measure again with a larger --max-shift, or a smaller --min-overlap.",
    "low-score": "Even at its best shift the frame resembles the reference little. A remark: noise alone can cause it.",
    "uncertain": "The predicted standard error of the shift is too large, or its peak is no higher than chance would "
    "make it. In movies with few photons try --reference template, or, where the scene moves slowly, --smooth-time 5.",
    "inconsistent": "Most of the frame moves differently from the shift that was found, or shows something else. Look "
    "at the frame before you trust it; frames that turn are measured by --motion rigid, those that bend by patches.",
    "ambiguous": "A second shift fits almost as well as the best one, as in a periodic pattern. Measure again with "
    "--max-shift below half the period.",
    "inherited": "A step between earlier frames is doubtful, and this shift contains it.",
    "flat": "The frame has the same value everywhere, so there is nothing to register.",
    "unreadable": "The frame could not be read, or holds no finite value. It has no shift.",
    "non-finite": "The frame holds NaN or infinite pixels. They were replaced by the mean of the others for measuring.",
    "disagrees": "The shift differs from the float64 FFT reference by more than the tolerance, or the correlation "
    "around it differs from its definition.",
}


@dataclass(frozen=True)
class Bends:
    """By how much the parts of frames move otherwise than their frame, at the nodes of a grid.

    Attributes
    ----------
    rows, columns : tuple of float
        Places of the nodes in pixels.
    frame : int
        The frame that bends most, of those that are trusted.
    arrows : tuple of tuple of (float, float)
        Rows, columns in pixels by which it is moved at each node, less its mean shift.
    size : tuple of tuple of float
        Median over the trusted frames of the length of such an arrow.
    """

    rows: tuple[float, ...]
    columns: tuple[float, ...]
    frame: int
    arrows: tuple[tuple[tuple[float, float], ...], ...]
    size: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class StackReport:
    """Everything that a report says about one stack.

    Attributes
    ----------
    name, description : str
        Name of the stack and what it is, e.g. "60 frames, 160 x 176, uint16".
    rows : tuple of FrameRow
        One for each frame, in order; empty for a failed stack.
    pictures : Pictures or None
        Means and thumbnails, where they were made.
    reference : str
        What the frames were compared with, in words.
    max_shift : tuple of float
        Half widths (rows, columns) of the window of shifts that was searched, in pixels.
    pixel_size : tuple of float or None
        Height and width of a pixel in `unit`, where known.
    unit : str or None
        Unit of `pixel_size`.
    tolerance : float
        Largest accepted difference from the FFT reference, in pixels.
    notes : tuple of str
        Sentences that a reader must know.
    failure : str or None
        Why the whole stack failed; None where it did not.
    assessment : Assessment or None
        How good the result is, before and after; None where it was not looked at.
    interval : tuple of float and str, or None
        Time, or depth, from one frame to the next and its unit, where the file says so.
    tiles : tuple of tuple of float, or None
        For rows and columns of tiles of the picture, the share of the frames looked at in which each differs from what
        the shift says, nan where none could tell; None where the picture moves as one.
    """

    name: str
    description: str = ""
    rows: tuple[FrameRow, ...] = ()
    pictures: Pictures | None = None
    reference: str = ""
    max_shift: tuple[float, float] = (0.0, 0.0)
    pixel_size: tuple[float, float] | None = None
    unit: str | None = None
    tolerance: float = math.inf
    notes: tuple[str, ...] = ()
    failure: str | None = None
    assessment: Assessment | None = None
    interval: tuple[float, str] | None = None
    tiles: tuple[tuple[float, ...], ...] | None = None
    bends: Bends | None = None
    """Of frames whose parts move otherwise; None where they move as one."""
    is_quick: bool = False
    """Only a drawing of its shifts is wanted, which takes no time."""
    left_out: bool = False
    """Something that is part of the frames, and may stand still, was left out for measuring."""
    reference_frame: int | None = None
    """The frame that others are compared with, whose shift is none; None where there is no such frame."""
    files: tuple[str, ...] = ()
    """Names of the files of its results, in its folder."""
    sigma_limit: float | None = None
    """Standard error in pixels above which a shift is flagged."""
    turns: tuple[tuple[float, float], ...] | None = None
    """Angle in degrees and scale of each frame, nan where not known; None where frames do not turn."""

    def as_record(self) -> dict[str, Any]:
        """Plain values of what is needed beside its table to sum it up; what is drawn is kept as it was drawn."""
        known = {name: getattr(self, name) for name in _SUMMED_UP}
        return known | {"assessment": None if self.assessment is None else self.assessment.as_record()}

    @classmethod
    def from_record(cls, name: str, record: dict[str, Any], rows: tuple[FrameRow, ...]) -> Self:
        """Undo `as_record`, of what JSON makes of it."""
        known = {each: record[each] for each in _SUMMED_UP} | {"notes": tuple(map(str, record["notes"]))}
        assessment = None if record["assessment"] is None else Assessment.from_record(record["assessment"])
        return cls(name, rows=rows, assessment=assessment, **known)

    @cached_property
    def replaced(self) -> frozenset[int]:
        """Frames that are not moved by their measured shift."""
        return frozenset([row.frame for row in self.rows if (row.applied_dy, row.applied_dx) != (row.dy, row.dx)])

    @cached_property
    def remarked(self) -> bool:
        """Whether anything is remarked of a frame."""
        return any(row.remarks for row in self.rows)

    def counted(self, words: Literal["flags", "remarks"]) -> list[str]:
        """Say how many frames have each of their flags, or remarks, and what it means."""
        numbers = Counter(word for row in self.rows for word in getattr(row, words))
        return [f"{number} x {word}: {FLAG_MEANINGS.get(word, '')}" for word, number in numbers.items()]

    @cached_property
    def unmoved(self) -> bool:
        """Whether no frame is moved by as much as a thousandth of a pixel, so that after is as before."""
        return not any(row.is_moved for row in self.rows)


@dataclass(frozen=True)
class RunReport:
    """A whole run: a title, the facts of what ran on what as (label, value), its stacks in order, and the date."""

    title: str
    facts: tuple[tuple[str, str], ...]
    stacks: tuple[StackReport, ...]
    date: str = ""
    stages: tuple[Any, ...] = ()
    """What each stage took (see `StageTime`), the one that set the pace first; none where the page must be the same for
    a run that was resumed."""
    command: str = ""
    """The command line that repeats it."""
    pages: frozenset[str] = frozenset()
    """Names of stacks that have a page of their own."""
