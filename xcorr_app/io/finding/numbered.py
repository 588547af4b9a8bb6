"""What the numbers in file names say: which files belong together, and their places along time, depth and channels.

Numbers without letters have no axis. Where names allow two readings the files are refused, with both.
"""

import math
import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from xcorr_app.errors import InputError
from xcorr_app.io.finding.file_names import (
    MARK,
    NUMBER,
    NamedFile,
    NumberedStack,
    axis_of,
    gaps,
    may_be_wells,
    read_names,
    stack_of,
)
from xcorr_app.io.names import natural_key, some, stem

_MAX_CHANNELS = 16
"""More numbers of channels than that, and no others, may well count frames."""
_WELLS = "{names}: taken for wells of a plate, a stack each; channels of one stack are named _c1 or _ch1."


def stacks_by_number(folder: Path, paths: Sequence[Path]) -> list[NumberedStack | InputError]:
    """Sort single-image files of one folder into stacks; a stack whose files are not complete is an InputError.

    Raises InputError where the names allow two readings.
    """
    if len(paths) < 2:
        return [NumberedStack("", tuple(paths))]
    names = read_names(paths)
    groups = _grouped(names)
    marked = [name for name in names if name.at]
    if len(marked) == len(names):
        if len(groups) == len(names):
            groups = _without_counter(names) or groups
        if len(groups) < len(names):
            _check_one_reading(folder, groups)
            several = len(groups) > 1
            return [stack_of(folder, group[0].rest if several else "", group) for group in groups.values()]
    placed = _varying_axes(marked)
    if placed and (len(marked) == len(names) or len(groups) < len(names)):
        odd = [name.path.name for name in names if not name.at] or [name.path.name for name in names]
        raise InputError(
            f"{folder}: numbers in names count {' and '.join(placed)}, but not so that {some(odd)} fit in: either all "
            "are frames of one movie (--layout frames), or parts of stacks: give every file _t, _z and _c numbers, or "
            "move those that do not belong there"
        )
    return _by_skeleton(folder, names)


def page_stacks_by_number(folder: Path, paths: Sequence[Path]) -> list[NumberedStack]:
    """Sort files with several pages into stacks where their names leave no doubt; each by itself where they do."""
    names = read_names(paths)
    groups = _grouped(names)
    found: list[NumberedStack] = []
    for group in groups.values():
        stack: NumberedStack | InputError | None = None
        notes: tuple[str, ...] = ()
        if len(group) > 1 and may_be_wells(group):
            notes = (_WELLS.format(names=some([name.path.name for name in group])),)
        elif len(group) > 1 and all(name.at for name in group):
            stack = stack_of(folder, group[0].rest, group)
        alone = [NumberedStack("", (name.path,), notes=notes) for name in group]
        found += [stack] if isinstance(stack, NumberedStack) else alone
    return found


def files_of_channel(folder: Path, paths: Sequence[Path], channel: int) -> tuple[Path, ...]:
    """Files whose names have the number of one channel, counted from 0 upwards; none where names number no channels."""
    names = read_names(paths)
    numbers = sorted({name.at["C"] for name in names if "C" in name.at})
    if len(numbers) < 2 or not all("C" in name.at for name in names):
        return ()
    if may_be_wells(names):
        raise InputError(
            f"{folder}: {some([name.path.name for name in names])} are either channels of one stack, or wells of a "
            "plate: name the file of the channel by itself for the first, use --layout stacks for the second"
        )
    if channel >= len(numbers):
        raise InputError(
            f"{folder}: names number {len(numbers)} channels: --channel counts from 0, up to {len(numbers) - 1}"
        )
    return tuple(name.path for name in names if name.at["C"] == numbers[channel])


def _grouped(names: Iterable[NamedFile]) -> dict[str, list[NamedFile]]:
    groups: dict[str, list[NamedFile]] = defaultdict(list)
    for name in names:
        groups[name.key].append(name)
    return dict(groups)


def _without_counter(names: list[NamedFile]) -> dict[str, list[NamedFile]] | None:
    """Group names that differ by one running number besides those of the axes; None where it is not that."""
    fields = {tuple(NUMBER.findall(name.rest)) for name in names}
    if len({len(field) for field in fields}) != 1:
        return None
    varying = [column for column in zip(*fields, strict=True) if len(set(column)) > 1]
    if len(varying) != 1 or len(set(varying[0])) < len(names):
        return None
    return _grouped(name._replace(rest=NUMBER.sub("#", name.rest)) for name in names)


def _varying_axes(names: Sequence[NamedFile]) -> list[str]:
    """Axes other than time along which names have different numbers."""
    return [axis for axis in "ZC" if len({name.at.get(axis) for name in names}) > 1]


def _check_one_reading(folder: Path, groups: dict[str, list[NamedFile]]) -> None:
    """Refuse groups that differ by a number without an axis where nothing counts time, and channels that may."""
    for group in groups.values():
        channels = {name.at.get("C") for name in group}
        if len(channels) == len(group) > _MAX_CHANNELS:
            raise InputError(
                f"{folder}: {some([name.path.name for name in group])} differ by {len(channels)} numbers of channels "
                f"alone: either one image of {len(channels)} channels, or {len(channels)} frames of one movie "
                "(--layout frames); put _t before the number for the second"
            )
    alike: dict[str, list[str]] = defaultdict(list)
    for rest, group in groups.items():
        if not any("T" in name.at for name in group) and not group[0].series:
            alike[NUMBER.sub("#", rest)].append(rest)
    for rests in alike.values():
        if len(rests) > 1:
            files = [groups[rest][0].path.name for rest in rests]
            axes = _axes_of(groups[rests[0]])
            raise InputError(
                f"{folder}: {some(files)} differ by a number that has no letter: either {len(rests)} points in time "
                f"of one stack along {axes}, or {len(rests)} stacks; put _t before that number for the first, _s for "
                "the second"
            )


def _by_skeleton(folder: Path, names: list[NamedFile]) -> list[NumberedStack | InputError]:
    """Files without axes in their names: one movie in natural order, unless the names show that they are not."""
    stems = {name.path: stem(name.path.name) for name in names}
    if any(name.series for name in names):
        return _by_series(folder, names)
    skeletons: dict[str, list[Path]] = defaultdict(list)
    for path, text in stems.items():
        skeletons[NUMBER.sub("#", text.casefold())].append(path)
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
        fields = list(zip(*(NUMBER.findall(stems[path]) for path in paths), strict=True))
        varying = [tuple(map(int, field)) for field in fields if len(set(field)) > 1]
        if len(varying) > 1 and _is_grid(varying):
            counts = [len(set(field)) for field in varying]
            raise InputError(
                f"{folder}: {some([path.name for path in paths])} differ by {len(varying)} numbers without letters, "
                f"{' x '.join(map(str, counts))} of them: either {len(names)} frames of one movie (--layout frames), "
                "or a stack of several axes; write the axis before each number, as _t001_z01 or _t001_c0"
            )
        if len(varying) == 1:
            notes = gaps("frame", varying[0])
    odd = [path.name for paths in skeletons.values() if len(paths) == 1 for path in paths]
    if several and odd:
        notes = (*notes, f"Named unlike the others, and taken as frames in the order of names: {some(odd)}.")
    return [NumberedStack("", ordered, notes=notes)]


def _by_series(folder: Path, names: list[NamedFile]) -> list[NumberedStack | InputError]:
    groups: dict[str, list[NamedFile]] = defaultdict(list)
    for name in names:
        text = stem(name.path.name).casefold()
        marks = [mark[0] for mark in MARK.finditer(text) if axis_of(mark) == "S"]
        groups[" ".join(marks)].append(name)
    if all(len(group) == 1 for group in groups.values()):
        raise InputError(
            f"{folder}: {some([name.path.name for name in names])} differ only by the number of a series or position: "
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


def _is_grid(fields: list[tuple[int, ...]]) -> bool:
    return len(set(zip(*fields, strict=True))) == math.prod(len(set(field)) for field in fields)


def _axes_of(names: Iterable[NamedFile]) -> str:
    found = {axis for name in names for axis in name.at}
    return ", ".join(axis for axis in "TZC" if axis in found)


def _common(paths: Sequence[Path]) -> str:
    """Pattern for a shell that catches files of one skeleton."""
    return NUMBER.sub("*", paths[0].name)


def _common_label(paths: Sequence[Path]) -> str:
    """What the names of files have in common at their beginning."""
    text = os.path.commonprefix([stem(path.name) for path in paths])  # noqa: RUF071 - letter by letter
    return text.rstrip("0123456789").rstrip("-_ .") or text
