"""From what the user names to series of images: folders, files, globs; frames, stacks, or files that names place."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from xcorr_app.errors import InputError
from xcorr_app.io.declared import Limits
from xcorr_app.io.finding.file_names import NumberedStack
from xcorr_app.io.finding.inputs import Group, grouped_inputs
from xcorr_app.io.finding.numbered import files_of_channel, page_stacks_by_number, stacks_by_number
from xcorr_app.io.finding.scan import Channel, Scan, scan_file, scan_for
from xcorr_app.io.names import label, some, unique_names
from xcorr_app.io.series import Discovery, Failure, SeriesSpec, UnusableFile, paths_of
from xcorr_app.io.source import ImageFile

Layout = Literal["auto", "frames", "stacks"]

# Files of the run itself are beside the folders of the series.
_RESERVED = ("report.html", "run.json")
_NOTE = "{folder}: {count} images of other kinds were left out; name them to use them."
_THREADS = 4


def discover(
    inputs: Sequence[Path | str] | Path | str,
    layout: Layout = "auto",
    limits: Limits | None = None,
    scan: Scan = scan_file,
    *,
    channel: Channel | None = None,
    single: Literal["frames", "stacks"] = "frames",
) -> Discovery:
    """Find the series in folders, files and globs (``*``, ``?``, ``[...]``, ``**``).

    A folder of single-page files is one series in natural order, named after the folder; a folder of multi-page
    files is one stack a file. A folder without images stands for its sub-folders (symbolic links are not
    followed). Files given one by one are treated as a folder that holds just them. What cannot be used is
    reported and does not stop the rest.

    Under layout ``frames`` all pages of all files of a folder are one series, under ``stacks`` each file is a stack;
    ``auto`` tells by the number of pages and by the names: letters before a number name its axis (``_t000_c0_z1``), and
    such files are put together into stacks. `scan` checks one file: `scan_file`, or one that takes colour images too.
    `channel` is the one that is wanted of every stack, in files or as their names number it. `single` says what files
    of one image are: frames of a series, or each a stack, unless their names number channels.

    Raises InputError when nothing is found at all, or a folder mixes single-page and multi-page files, or names allow
    two readings, under ``auto``.
    """
    named = [inputs] if isinstance(inputs, (str, Path)) else list(inputs)
    groups, problems = grouped_inputs(named)
    failures = list(problems)
    found: list[SeriesSpec] = []
    notes = [_NOTE.format(count=group.left_out, folder=group.path) for group in groups if group.left_out]
    for group in groups:
        try:
            results = _series_of(group, layout, limits or Limits(), scan, channel, single)
        except InputError as error:
            if len(groups) == 1:
                raise
            results = [Failure(group.path, str(error))]
        failures += [result for result in results if isinstance(result, Failure)]
        found += [result for result in results if isinstance(result, SeriesSpec)]
    if not found and len(failures) == len(problems):
        raise InputError("; ".join(failure.message for failure in failures) or "no input was named")
    names = unique_names([spec.name for spec in found], _RESERVED)
    series = tuple(replace(spec, name=name, source=spec.name) for name, spec in zip(names, found, strict=True))
    kinds = {spec.layout for spec in series}
    return Discovery(
        "both" if len(kinds) > 1 else next(iter(kinds), "stacks"), series, tuple(failures), notes=tuple(notes)
    )


def _series_of(
    group: Group,
    layout: Layout,
    limits: Limits,
    scan: Scan,
    channel: Channel | None,
    single: Literal["frames", "stacks"],
) -> list[SeriesSpec | Failure]:
    """Series of a group, and what of it cannot be used. Raises InputError where the group has two readings."""
    notes: tuple[str, ...] = ()
    if channel is not None:
        scan = scan_for(channel)
        if (
            layout == "auto"
            and isinstance(channel, int)
            and (paths := files_of_channel(group.path, group.paths, channel))
        ):
            notes = (f"Channel {channel}, counted from 0, is that of {paths[0].name}.",)
            group, scan = replace(group, paths=paths), scan_file
    files = _sets_once(_scanned(group.paths, limits, scan))
    group = replace(group, paths=tuple(files))
    kind = _tell_layout(group, list(files.values())) if layout == "auto" and single == "frames" else layout
    if layout == "frames":
        stacks: list[NumberedStack | InputError] = [NumberedStack("", group.paths)]
    elif layout == "auto" and single == "stacks":
        # Those whose channels are files, as far as names leave no doubt.
        joined = page_stacks_by_number(group.path, group.paths)
        return _joined_or_each(group, files, [stack for stack in joined if "C" in stack.axes or not stack.axes])
    elif layout == "stacks" or (kind == "stacks" and len(group.paths) == 1):
        return _each(group, files)
    elif kind == "stacks":
        return _joined_or_each(group, files, page_stacks_by_number(group.path, group.paths))
    else:
        stacks = stacks_by_number(group.path, group.paths)
        if len(stacks) == 1 and isinstance(stacks[0], InputError):
            raise stacks[0]
    results: list[SeriesSpec | Failure] = []
    for stack in stacks:
        if isinstance(stack, InputError):
            results.append(Failure(group.path, str(stack)))
            continue
        spec = _spec(group, files, stack, notes)
        try:
            spec.open()
        except InputError as error:
            bad = _failures([files[path] for path in stack.paths])
            results += bad
            if len(bad) < len(stack.paths):
                results.append(Failure(group.path, str(error)))
        else:
            results.append(spec)
    return results


def _spec(group: Group, files: dict[Path, ImageFile], stack: NumberedStack, notes: tuple[str, ...] = ()) -> SeriesSpec:
    has_pages = any(files[path].page_count > 1 for path in stack.paths)
    return SeriesSpec(
        group.prefix + stack.label if stack.label else group.name,
        "numbered" if set(stack.axes) & set("ZC") or (stack.axes and has_pages) else "frames",
        tuple(files[path].path for path in stack.paths),
        tuple(files[path] for path in stack.paths),
        stack.positions,
        stack.channel_names,
        (*notes, *stack.notes),
    )


def _joined_or_each(
    group: Group, files: dict[Path, ImageFile], stacks: Sequence[NumberedStack]
) -> list[SeriesSpec | Failure]:
    """Files joined where their names say how and their own axes allow it; all others by themselves."""
    results: list[SeriesSpec | Failure] = []
    left = dict(files)
    notes: dict[Path, tuple[str, ...]] = {}
    for stack in stacks:
        if not stack.axes:
            notes |= dict.fromkeys(stack.paths, stack.notes)
            continue
        spec = _spec(group, files, stack)
        try:
            spec.open()
        except InputError:
            continue
        results.append(spec)
        for path in stack.paths:
            del left[path]
    return [*results, *_each(group, left, notes)]


def _sets_once(files: dict[Path, ImageFile]) -> dict[Path, ImageFile]:
    """Leave out files of an OME-TIFF set that another one stands for."""
    known: set[Path] = set()
    left: dict[Path, ImageFile] = {}
    for path, file in files.items():
        if path not in known:
            left[path] = file
        known |= set(paths_of(file))
    return left


def _each(
    group: Group,
    files: dict[Path, ImageFile],
    notes: Mapping[Path, tuple[str, ...]] = MappingProxyType({}),
) -> list[SeriesSpec | Failure]:
    return [
        Failure(path, str(file.error))
        if isinstance(file, UnusableFile)
        else SeriesSpec(group.prefix + label(path), "stacks", paths_of(file), (file,), notes=notes.get(path, ()))
        for path, file in files.items()
    ]


def _scanned(paths: Sequence[Path], limits: Limits, scan: Scan) -> dict[Path, ImageFile]:
    """Check files by several threads, of which most wait for the disk."""
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="xcorr-scan") as pool:
        return dict(zip(paths, pool.map(lambda path: _scan_or_note(path, limits, scan), paths), strict=True))


def _scan_or_note(path: Path, limits: Limits, scan: Scan) -> ImageFile:
    try:
        return scan(path, limits)
    except InputError as error:
        return UnusableFile(path, error)


def _failures(files: Sequence[ImageFile]) -> list[Failure]:
    return [Failure(file.path, str(file.error)) for file in files if isinstance(file, UnusableFile)]


def _tell_layout(group: Group, files: Sequence[ImageFile]) -> Literal["frames", "stacks"]:
    usable = [file for file in files if not isinstance(file, UnusableFile)]
    pages = [file.path.name for file in usable if file.page_count == 1]
    stacks = [file.path.name for file in usable if file.page_count > 1]
    if pages and stacks:
        raise InputError(
            f"{group.path}: mixes files of one page ({some(pages)}) and of several ({some(stacks)}); "
            "use --layout frames to make one series of all pages, or --layout stacks to take each file by itself"
        )
    return "frames" if pages else "stacks"
