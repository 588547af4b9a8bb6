"""Names of files read: the numbers that letters give an axis, and the places of the files that follow from them.

Letters before a number name its axis: ``_t000_c0_z1``, ``-ch01``, ``C1-name``, ``_w2GFP``, ``_s2``. The C of `well_C1`
is row C of a plate where the names show it, else a channel.
"""

import itertools
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from xcorr_app.errors import InputError
from xcorr_app.io.names import stem

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
_AFTER_WORD = re.compile(r"(?<![A-Za-z])well[-_ ]+C[0-9]", re.IGNORECASE)
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


def read_names(paths: Sequence[Path]) -> list[NamedFile]:
    """Read the names of files of one folder.

    C1 is a well where the word stands before it, or another row has the same name (`x_A1`, `x_C1`).
    """
    rows: dict[tuple[str, str], set[str]] = defaultdict(set)
    wells = [_wells(path) for path in paths]
    for of_name in wells:
        for row, around in of_name:
            rows[around].add(row)
    return [
        read_name(
            path,
            well=_AFTER_WORD.search(path.name) is not None
            or any(row == "C" and len(rows[around]) > 1 for row, around in of_name),
        )
        for path, of_name in zip(paths, wells, strict=True)
    ]


def may_be_wells(names: Sequence[NamedFile]) -> bool:
    """Whether names that number channels alone do so as a plate numbers the wells of row C: upper case, 1 to 24.

    ImageJ begins the names of split channels so, `C1-name`, which are no wells.
    """
    return all(
        set(name.at) == {"C"} and any(row == "C" and around[0] for row, around in _wells(name.path)) for name in names
    )


def _wells(path: Path) -> list[tuple[str, tuple[str, str]]]:
    """Rows of what may be wells in a name, and the name around each, its columns left out."""
    name = stem(path.name)
    return [(found[1], (name[: found.start()], name[found.end() :])) for found in WELL.finditer(name)]


_WORD = {"T": "time point", "Z": "plane", "C": "channel"}


@dataclass(frozen=True)
class NumberedStack:
    """Files of one stack.

    Attributes
    ----------
    label
        What tells the stack from the others of its folder; empty where it is alone.
    paths
        Files in order of T, Z, C; where `axes` is empty, in natural order along T.
    axes
        Axes along which names place the files.
    positions
        Index (t, z, c) of every file.
    channel_names
        As the names give them, or empty.
    notes
        What a user should know: numbers that are missing.
    """

    label: str
    paths: tuple[Path, ...]
    axes: str = ""
    positions: tuple[tuple[int, int, int], ...] = ()
    channel_names: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def stack_of(folder: Path, label: str, group: list[NamedFile]) -> NumberedStack | InputError:
    """Files of one rest, placed along the axes that their names number."""
    numbers = {axis: sorted({name.at[axis] for name in group}) for axis in "TZC" if axis in group[0].at}
    axes = "".join(axis for axis, values in numbers.items() if len(values) > 1)
    index = {axis: {number: i for i, number in enumerate(values)} for axis, values in numbers.items()}
    places: dict[tuple[int, int, int], NamedFile] = {}
    for name in group:
        t, z, c = (index[axis][name.at[axis]] if axis in axes else 0 for axis in "TZC")
        if (t, z, c) in places:
            first = places[t, z, c].path.name
            return InputError(f"{folder}: {first} and {name.path.name} have the same numbers; remove one of them")
        places[t, z, c] = name
    wanted = math.prod(len(values) for values in numbers.values())
    if len(places) < wanted:
        return InputError(
            f"{folder}: {len(places)} of {wanted} files that {_sizes(numbers)} need are there; "
            f"{_missing(places, numbers)} is missing; add it, or leave out the rest of what is incomplete"
        )
    order = sorted(places)
    if not axes:
        return NumberedStack(_label(label), tuple(places[place].path for place in order))
    labels: dict[int, str] = {c: places[t, z, c].label for t, z, c in order}
    notes = [note for axis in axes for note in gaps(_WORD[axis], [name.at[axis] for name in group])]
    return NumberedStack(
        label=_label(label),
        paths=tuple(places[place].path for place in order),
        axes=axes,
        positions=tuple(order),
        channel_names=tuple(labels.values()) if len(labels) > 1 and all(labels.values()) else (),
        notes=tuple(notes),
    )


def gaps(what: str, numbers: Iterable[int]) -> tuple[str, ...]:
    """Note of numbers that are missing from a run of numbers, where most are there."""
    present = sorted(set(numbers))
    steps = Counter(after - before for before, after in itertools.pairwise(present))
    if not steps:
        return ()
    step = min(steps, key=lambda size: (-steps[size], size))
    wanted = (present[-1] - present[0]) // step + 1
    if 2 * len(present) < wanted:
        return ()
    spans = []
    for before, after in itertools.pairwise(present):
        if after - before > step:
            first, last = before + step, after - step
            spans.append(str(first) if last <= first else f"{first} to {last}")
    if not spans:
        return ()
    shown = ", ".join(spans[:_SHOWN]) + (f" and {len(spans) - _SHOWN} more gaps" if len(spans) > _SHOWN else "")
    return (f"The files' numbers skip {what} {shown}; what is there is counted on without a gap.",)


def _missing(places: dict[tuple[int, int, int], NamedFile], numbers: dict[str, list[int]]) -> str:
    every = itertools.product(*(range(len(numbers.get(axis, "0"))) for axis in "TZC"))
    first = next(place for place in every if place not in places)
    return " ".join(
        f"{axis.lower()}={numbers[axis][i]}" for axis, i in zip("TZC", first, strict=True) if axis in numbers
    )


def _sizes(numbers: dict[str, list[int]]) -> str:
    return " x ".join(f"{axis}={len(values)}" for axis, values in numbers.items())


def _label(rest: str) -> str:
    return re.sub(r"[-_ .]{2,}", "_", re.sub(r"\{[TZCtzc]\}", "", rest)).strip("-_ .")
