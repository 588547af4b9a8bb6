"""Files placed along time, depth and channels by the numbers in their names; numbers that are missing."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from xcorr_app.errors import InputError
from xcorr_app.io.finding.file_names import NamedFile

_SHOWN = 3
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
    def values(axis: str) -> list[int]:
        return numbers.get(axis, [0])

    for t, t_number in enumerate(values("T")):
        for z, z_number in enumerate(values("Z")):
            for c, c_number in enumerate(values("C")):
                if (t, z, c) not in places:
                    at = {"T": t_number, "Z": z_number, "C": c_number}
                    return " ".join(f"{axis.lower()}={at[axis]}" for axis in numbers)
    return "none"


def _sizes(numbers: dict[str, list[int]]) -> str:
    return " x ".join(f"{axis}={len(values)}" for axis, values in numbers.items())


def _label(rest: str) -> str:
    return re.sub(r"[-_ .]{2,}", "_", re.sub(r"\{[TZCtzc]\}", "", rest)).strip("-_ .")
