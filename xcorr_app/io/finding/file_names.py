"""Names of files read: the numbers that letters give an axis, and what is left of the name.

Letters before a number name its axis: ``_t000_c0_z1``, ``-ch01``, ``C1-name``, ``_w2GFP``, ``_s2``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from xcorr_app.io.finding.natural_order import stem

_AXES = {
    "T": ("t", "tp", "time", "timepoint", "frame"),
    "Z": ("z", "slice", "plane"),
    "C": ("c", "ch", "chan", "channel", "w"),
    "S": ("s", "series", "p", "pos", "position", "xy", "stage", "scene"),
}
_AXIS_OF = {word: axis for axis, words in _AXES.items() for word in words}
_LETTERS = "|".join(word for word in _AXIS_OF if len(word) == 1)
_WORDS = "|".join(sorted((word for word in _AXIS_OF if len(word) > 1), key=len, reverse=True))
# Letters and a number: not within a word, not the hour of a date, not a fraction. What follows is looked at only.
MARK = re.compile(
    rf"(?<![A-Za-z])(?<![0-9]-[0-9]{{2}})(?<![0-9]{{8}})(?:({_WORDS})[-_= ]?|({_LETTERS})=?)([0-9]{{1,15}})(?![0-9.,])"
    r"(?=([A-Za-z][A-Za-z0-9]*)?)",
    re.IGNORECASE,
)
NUMBER = re.compile(r"([0-9]+)")
WELL = re.compile(r"(?<![A-Za-z0-9])([A-P])(0?[1-9]|1[0-9]|2[0-4])(?![A-Za-z0-9.,])")
"""A well of a plate with up to 384: row and column."""
_SHOWN = 3


class NamedFile(NamedTuple):
    """A file and what its name says."""

    path: Path
    rest: str
    """The name with a placeholder for every number that has an axis."""
    at: dict[str, int]
    """Number along T, Z and C."""
    label: str = ""
    """Name of the channel."""
    series: bool = False
    """Whether a number of a position, field or series is part of `rest`."""

    @property
    def key(self) -> str:
        """What files of one stack have in common."""
        return self.rest.casefold()


def read_name(path: Path, *, well: bool = False) -> NamedFile:
    """Read the numbers in the name of a file; the C of C1 is the row of a `well`, or a channel."""
    name = stem(path.name)
    at: dict[str, int] = {}
    label, series, rest = "", False, name
    # From the end: of two numbers along one axis the last one counts, the other is part of the name.
    for mark in reversed(list(MARK.finditer(name))):
        axis, end, following = axis_of(mark), mark.end(3), mark[4] or ""
        if well and WELL.fullmatch(mark[0]):
            continue
        if following and MARK.match(following) is None:
            if axis != "C":
                continue
            # The wavelength of a channel follows its number: _w1DAPI, _w2CSU488.
            label, end = following, mark.end(3) + len(following)
        if axis == "S":
            series = True
        elif axis not in at:
            at[axis] = int(mark[3])
            rest = f"{rest[: mark.start()]}{{{axis}}}{rest[end:]}"
    return NamedFile(path, rest, at, label, series)


def axis_of(mark: re.Match[str]) -> str:
    """Axis that a mark counts: T, Z, C, or S for series and positions."""
    return _AXIS_OF[(mark[1] or mark[2]).lower()]


def some(names: Sequence[str]) -> str:
    """Name the first of several, and how many more there are."""
    more = f", ... and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
