"""What the numbers in file names say: which files belong together, and their places along time, depth and channels.

Letters before a number name its axis: ``_t000_c0_z1``, ``-ch01``, ``C1-name``, ``_w2GFP``, ``_s2``. Numbers without
letters have no axis. Where names allow two readings the files are refused, with both.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from xcorr_app.errors import InputError
from xcorr_app.io.natural import natural_key, stem

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
_MARK = re.compile(
    rf"(?<![A-Za-z])(?<![0-9]-[0-9]{{2}})(?<![0-9]{{8}})(?:({_WORDS})[-_= ]?|({_LETTERS})=?)([0-9]{{1,15}})(?![0-9.,])"
    r"(?=([A-Za-z][A-Za-z0-9]*)?)",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"([0-9]+)")
_SHOWN = 3


class _Named(NamedTuple):
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


def stacks_by_number(folder: Path, paths: Sequence[Path]) -> list[NumberedStack | InputError]:
    """Sort single-image files of one folder into stacks; a stack whose files are not complete is an InputError.

    Raises InputError where the names allow two readings.
    """
    if len(paths) < 2:
        return [NumberedStack("", tuple(paths))]
    names = [_read(path) for path in paths]
    groups = _grouped(names)
    marked = [name for name in names if name.at]
    if len(marked) == len(names):
        if len(groups) == len(names):
            groups = _without_counter(names) or groups
        if len(groups) < len(names):
            _check_one_reading(folder, groups)
            several = len(groups) > 1
            return [_stack(folder, group[0].rest if several else "", group) for group in groups.values()]
    placed = _varying_axes(marked)
    if placed and (len(marked) == len(names) or len(groups) < len(names)):
        odd = [name.path.name for name in names if not name.at] or [name.path.name for name in names]
        raise InputError(
            f"{folder}: numbers in names count {' and '.join(placed)}, but {_some(odd)} do not fit in: either all are "
            "frames of one movie (--layout frames), or parts of stacks: give every file _t, _z and _c numbers, or move "
            "those that do not belong there"
        )
    return _by_skeleton(folder, names)


def joined_by_number(folder: Path, paths: Sequence[Path]) -> list[NumberedStack]:
    """Sort files with several pages into stacks where their names leave no doubt; each by itself where they do."""
    names = [_read(path) for path in paths]
    groups = _grouped(names)
    found: list[NumberedStack] = []
    for group in groups.values():
        stack = _stack(folder, group[0].rest, group) if len(group) > 1 and all(name.at for name in group) else None
        found += [stack] if isinstance(stack, NumberedStack) else [NumberedStack("", (name.path,)) for name in group]
    return found


def files_of_channel(folder: Path, paths: Sequence[Path], channel: int) -> tuple[Path, ...]:
    """Files whose names have the number of one channel, counted from 0 upwards; none where names number no channels."""
    names = [_read(path) for path in paths]
    numbers = sorted({name.at["C"] for name in names if "C" in name.at})
    if len(numbers) < 2 or not all("C" in name.at for name in names):
        return ()
    if channel >= len(numbers):
        raise InputError(
            f"{folder}: names number {len(numbers)} channels: --channel counts from 0, up to {len(numbers) - 1}"
        )
    return tuple(name.path for name in names if name.at["C"] == numbers[channel])


def _read(path: Path) -> _Named:
    name = stem(path.name)
    at: dict[str, int] = {}
    label, series, rest = "", False, name
    # From the end: of two numbers along one axis the last one counts, the other is part of the name.
    for mark in reversed(list(_MARK.finditer(name))):
        axis, end, following = _axis_of(mark), mark.end(3), mark[4] or ""
        if following and _MARK.match(following) is None:
            if axis != "C":
                continue
            # The wavelength of a channel follows its number: _w1DAPI, _w2CSU488.
            label, end = following, mark.end(3) + len(following)
        if axis == "S":
            series = True
        elif axis not in at:
            at[axis] = int(mark[3])
            rest = f"{rest[: mark.start()]}{{{axis}}}{rest[end:]}"
    return _Named(path, rest, at, label, series)


def _axis_of(mark: re.Match[str]) -> str:
    return _AXIS_OF[(mark[1] or mark[2]).lower()]


def _grouped(names: Iterable[_Named]) -> dict[str, list[_Named]]:
    groups: dict[str, list[_Named]] = defaultdict(list)
    for name in names:
        groups[name.key].append(name)
    return dict(groups)


def _without_counter(names: list[_Named]) -> dict[str, list[_Named]] | None:
    """Group names that differ by one running number besides those of the axes; None where it is not that."""
    fields = {tuple(_NUMBER.findall(name.rest)) for name in names}
    if len({len(field) for field in fields}) != 1:
        return None
    varying = [column for column in zip(*fields, strict=True) if len(set(column)) > 1]
    if len(varying) != 1 or len(set(varying[0])) < len(names):
        return None
    return _grouped(name._replace(rest=_NUMBER.sub("#", name.rest)) for name in names)


def _varying_axes(names: Sequence[_Named]) -> list[str]:
    """Axes other than time along which names have different numbers."""
    return [axis for axis in "ZC" if len({name.at.get(axis) for name in names}) > 1]


def _check_one_reading(folder: Path, groups: dict[str, list[_Named]]) -> None:
    """Refuse groups that differ by a number without an axis where nothing else counts time."""
    alike: dict[str, list[str]] = defaultdict(list)
    for rest, group in groups.items():
        if not any("T" in name.at for name in group) and not group[0].series:
            alike[_NUMBER.sub("#", rest)].append(rest)
    for rests in alike.values():
        if len(rests) > 1:
            files = [groups[rest][0].path.name for rest in rests]
            axes = _axes_of(groups[rests[0]])
            raise InputError(
                f"{folder}: {_some(files)} differ by a number that has no letter: either {len(rests)} points in time "
                f"of one stack along {axes}, or {len(rests)} stacks; put _t before that number for the first, _s for "
                "the second"
            )


def _by_skeleton(folder: Path, names: list[_Named]) -> list[NumberedStack | InputError]:
    """Files without axes in their names: one movie in natural order, unless the names show that they are not."""
    stems = {name.path: stem(name.path.name) for name in names}
    if any(name.series for name in names):
        return _by_series(folder, names)
    skeletons: dict[str, list[Path]] = defaultdict(list)
    for path, text in stems.items():
        skeletons[_NUMBER.sub("#", text.casefold())].append(path)
    several = [paths for paths in skeletons.values() if len(paths) > 1]
    if len(several) > 1:
        first, second = (paths[0].name for paths in several[:2])
        raise InputError(
            f"{folder}: holds {len(several)} kinds of names ({first}, {second}{', ...' if len(several) > 2 else ''}): "
            f"either {len(names)} frames of one movie (--layout frames), or {len(several)} stacks: name the files of "
            f"one at a time, as '{folder}/{_common(several[0])}'"
        )
    ordered = tuple(sorted(stems, key=lambda path: natural_key(path.name)))
    notes: tuple[str, ...] = ()
    for paths in several:
        fields = list(zip(*(_NUMBER.findall(stems[path]) for path in paths), strict=True))
        varying = [tuple(map(int, field)) for field in fields if len(set(field)) > 1]
        if len(varying) > 1 and _is_grid(varying):
            counts = [len(set(field)) for field in varying]
            raise InputError(
                f"{folder}: {_some([path.name for path in paths])} differ by {len(varying)} numbers without letters, "
                f"{' x '.join(map(str, counts))} of them: either {len(names)} frames of one movie (--layout frames), "
                "or a stack of several axes; write the axis before each number, as _t001_z01 or _t001_c0"
            )
        if len(varying) == 1:
            notes = _gaps("frame", varying[0])
    return [NumberedStack("", ordered, notes=notes)]


def _by_series(folder: Path, names: list[_Named]) -> list[NumberedStack | InputError]:
    groups: dict[str, list[_Named]] = defaultdict(list)
    for name in names:
        text = stem(name.path.name).casefold()
        marks = [mark[0] for mark in _MARK.finditer(text) if _axis_of(mark) == "S"]
        groups[" ".join(marks)].append(name)
    if all(len(group) == 1 for group in groups.values()):
        raise InputError(
            f"{folder}: {_some([name.path.name for name in names])} differ only by the number of a series or position: "
            f"either {len(names)} stacks of one image (--layout stacks), or {len(names)} frames of one movie "
            "(--layout frames)"
        )
    found: list[NumberedStack | InputError] = []
    for label, group in groups.items():
        (stack,) = _by_skeleton(folder, [name._replace(series=False) for name in group])
        if isinstance(stack, NumberedStack) and len(groups) > 1:
            text = _common_label([name.path for name in group]) or label
            stack = NumberedStack(text, stack.paths, notes=stack.notes)
        found.append(stack)
    return found


def _stack(folder: Path, label: str, group: list[_Named]) -> NumberedStack | InputError:
    """Files of one rest, placed along the axes that their names number."""
    numbers = {axis: sorted({name.at[axis] for name in group}) for axis in "TZC" if axis in group[0].at}
    axes = "".join(axis for axis, values in numbers.items() if len(values) > 1)
    places: dict[tuple[int, int, int], _Named] = {}
    for name in group:
        t, z, c = (numbers[axis].index(name.at[axis]) if axis in axes else 0 for axis in "TZC")
        if (t, z, c) in places:
            first = places[t, z, c].path.name
            return InputError(f"{folder}: {first} and {name.path.name} have the same numbers; remove one of them")
        places[t, z, c] = name
    wanted = 1
    for values in numbers.values():
        wanted *= len(values)
    if len(places) < wanted:
        return InputError(
            f"{folder}: {len(places)} of {wanted} files that {_sizes(numbers)} need are there; "
            f"{_missing(places, numbers)} is missing; add it, or leave out the rest of what is incomplete"
        )
    order = sorted(places)
    if not axes:
        return NumberedStack(_label(label), tuple(places[place].path for place in order))
    labels: dict[int, str] = {c: places[t, z, c].label for t, z, c in order}
    notes = [note for axis in axes for note in _gaps(_WORD[axis], [name.at[axis] for name in group])]
    return NumberedStack(
        label=_label(label),
        paths=tuple(places[place].path for place in order),
        axes=axes,
        positions=tuple(order),
        channel_names=tuple(labels.values()) if len(labels) > 1 and all(labels.values()) else (),
        notes=tuple(notes),
    )


_WORD = {"T": "time point", "Z": "plane", "C": "channel"}


def _gaps(what: str, numbers: Iterable[int]) -> tuple[str, ...]:
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


def _is_grid(fields: list[tuple[int, ...]]) -> bool:
    size = 1
    for field in fields:
        size *= len(set(field))
    return len(set(zip(*fields, strict=True))) == size


def _missing(places: dict[tuple[int, int, int], _Named], numbers: dict[str, list[int]]) -> str:
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


def _axes_of(names: Iterable[_Named]) -> str:
    found = {axis for name in names for axis in name.at}
    return ", ".join(axis for axis in "TZC" if axis in found)


def _label(rest: str) -> str:
    return re.sub(r"[-_ .]{2,}", "_", re.sub(r"\{[TZCtzc]\}", "", rest)).strip("-_ .")


def _common(paths: Sequence[Path]) -> str:
    """Pattern for a shell that catches files of one skeleton."""
    return _NUMBER.sub("*", paths[0].name)


def _common_label(paths: Sequence[Path]) -> str:
    """What the names of files have in common at their beginning."""
    texts = [stem(path.name) for path in paths]
    length = next(
        (i for i, letters in enumerate(zip(*texts, strict=False)) if len(set(letters)) > 1), min(map(len, texts))
    )
    return texts[0][:length].rstrip("0123456789").rstrip("-_ .") or texts[0][:length]


def _some(names: Sequence[str]) -> str:
    more = f", ... and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
