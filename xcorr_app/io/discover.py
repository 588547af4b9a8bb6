"""From what the user names to series of images: folders, files, globs; one frame or one stack a file."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from xcorr_app.errors import InputError
from xcorr_app.io.found import Discovery, Failure, SeriesSpec
from xcorr_app.io.limits import Limits
from xcorr_app.io.natural import is_image_name, natural_path_key, stem, unique_names
from xcorr_app.io.png import SIGNATURE, scan_png
from xcorr_app.io.series import FramesSource, UnusableFile
from xcorr_app.io.source import ImageFile
from xcorr_app.io.tiff import opened
from xcorr_app.io.tiff_scan import scan_tiff

Layout = Literal["auto", "frames", "stacks"]
Scan = Callable[[Path, Limits], ImageFile]

# Files of the run itself are beside the folders of the series.
_RESERVED = ("report.html", "run.json")
_SHOWN = 3


@dataclass(frozen=True)
class _Group:
    """Files that were named together: a folder's, or those given explicitly from one folder."""

    path: Path
    name: str
    prefix: str
    paths: tuple[Path, ...]


def scan_file(path: Path, limits: Limits | None = None) -> ImageFile:
    """Check one file, whose kind is told by its content."""
    with opened(path) as descriptor:
        head = os.pread(descriptor, 8, 0)
    scan = scan_png if head == SIGNATURE else scan_tiff
    return scan(path, limits or Limits())


def series_of_file(path: Path, limits: Limits, scan: Scan = scan_file) -> SeriesSpec:
    """Check one file that was named by itself. Raises as `scan` does."""
    return SeriesSpec(stem(path.name), "stacks", (path,), (scan(path, limits),))


def discover(
    inputs: Sequence[Path | str] | Path | str,
    layout: Layout = "auto",
    limits: Limits | None = None,
    scan: Scan = scan_file,
) -> Discovery:
    """Find the series in folders, files and globs (``*``, ``?``, ``[...]``, ``**``).

    A folder of single-page files is one series in natural order, named after the folder; a folder of multi-page
    files is one stack a file. A folder without images stands for its sub-folders (symbolic links are not
    followed). Files given one by one are treated as a folder that holds just them. What cannot be used is
    reported and does not stop the rest.

    Under layout ``frames`` all pages of all files of a folder are one series, under ``stacks`` each file is a stack;
    ``auto`` tells by the number of pages. `scan` checks one file: `scan_file`, or one that takes colour images too.

    Raises InputError when nothing is found at all, or a folder mixes single-page and multi-page files under ``auto``.
    """
    named = [inputs] if isinstance(inputs, (str, Path)) else list(inputs)
    groups, problems = _groups(named)
    failures = list(problems)
    found: list[tuple[str, Literal["frames", "stacks"], tuple[ImageFile | UnusableFile, ...]]] = []
    for group in groups:
        files = tuple(_scan_or_note(path, limits or Limits(), scan) for path in group.paths)
        try:
            kind = layout if layout != "auto" else _tell_layout(group, files)
        except InputError as error:
            if len(groups) == 1:
                raise
            failures.append(Failure(group.path, str(error)))
            continue
        if kind == "frames":
            try:
                FramesSource(group.name, files)
            except InputError as error:
                failures += _failures(files)
                if len(_failures(files)) < len(files):
                    failures.append(Failure(group.path, str(error)))
            else:
                found.append((group.name, kind, files))
        else:
            failures += _failures(files)
            found += [
                (group.prefix + stem(file.path.name), kind, (file,))
                for file in files
                if not isinstance(file, UnusableFile)
            ]
    if not found and len(failures) == len(problems):
        raise InputError("; ".join(failure.message for failure in failures) or "no input was named")
    names = unique_names([name for name, _, _ in found], _RESERVED)
    series = tuple(
        SeriesSpec(name, kind, tuple(file.path for file in files), files)
        for name, (_, kind, files) in zip(names, found, strict=True)
    )
    kinds = {spec.layout for spec in series}
    return Discovery("both" if len(kinds) > 1 else next(iter(kinds), "stacks"), series, tuple(failures))


def _groups(inputs: Sequence[Path | str]) -> tuple[list[_Group], list[Failure]]:
    """Sort inputs into groups of files; inputs that lead nowhere become failures."""
    groups: list[_Group] = []
    problems: list[Failure] = []
    single: dict[Path, list[Path]] = {}
    for text in inputs:
        try:
            for path in _expand(text):
                if path.is_dir():
                    groups += _folder_groups(path)
                else:
                    single.setdefault(path.parent, []).append(path)
        except InputError as error:
            problems.append(Failure(Path(text), str(error)))
        except (OSError, ValueError) as error:
            # A circle of links, a name too long, a null character.
            problems.append(Failure(Path(text), f"{text!s}: cannot be looked up ({error})"))
    for folder, paths in single.items():
        name = stem(paths[0].name) if len(paths) == 1 else _folder_name(folder)
        groups.append(_Group(folder, name, "", tuple(paths)))
    return _without_repeats(groups), problems


def _expand(text: Path | str) -> list[Path]:
    path = Path(text)
    try:
        path.stat()
    except FileNotFoundError:
        pass
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    else:
        return [path]
    if not glob.has_magic(str(text)):
        raise InputError(f"{path}: does not exist; check the spelling and the current folder")
    # A glob catches much that nobody meant: only images and folders count.
    matches = [Path(match) for match in glob.iglob(str(text), recursive=True)]  # noqa: PTH207 - absolute ones too
    wanted = [match for match in matches if is_image_name(match.name) or match.is_dir()]
    if not wanted:
        raise InputError(f"{path}: no image or folder has a name of that form")
    return sorted(wanted, key=natural_path_key)


def _folder_groups(folder: Path) -> list[_Group]:
    images, subfolders = _list_folder(folder)
    name = _folder_name(folder)
    if images:
        suffixes = {path.suffix.lower() == ".png" for path in images}
        if len(suffixes) > 1:
            raise InputError(f"{folder}: holds both TIFF and PNG files; name the ones you mean, as {folder}/*.tif")
        return [_Group(folder, name, "", tuple(images))]
    groups = []
    for subfolder in subfolders:
        images, _ = _list_folder(subfolder)
        if images:
            groups.append(_Group(subfolder, subfolder.name, f"{subfolder.name}_", tuple(images)))
    if not groups:
        raise InputError(f"{folder}: holds no TIFF or PNG file, nor do the folders in it")
    return groups


def _list_folder(folder: Path) -> tuple[list[Path], list[Path]]:
    """Images and true sub-folders of a folder, in natural order; hidden ones and other files do not count."""
    images, subfolders = [], []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if not entry.name.startswith("."):
                        subfolders.append(Path(entry.path))
                elif is_image_name(entry.name) and not _leads_to_folder(entry):
                    images.append(Path(entry.path))
    except OSError as error:
        raise InputError(f"{folder}: cannot be listed ({error.strerror})") from error
    return sorted(images, key=natural_path_key), sorted(subfolders, key=natural_path_key)


def _leads_to_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False  # a link in a circle: kept, so that it is reported when it cannot be read


def _folder_name(folder: Path) -> str:
    return folder.resolve().name or "stack"


def _without_repeats(groups: list[_Group]) -> list[_Group]:
    """Leave out files that were named before, sort each group, drop groups that have become empty."""
    seen: set[str] = set()
    result = []
    for group in groups:
        paths = []
        for path in group.paths:
            identity = os.path.realpath(path)
            if identity not in seen:
                seen.add(identity)
                paths.append(path)
        if paths:
            ordered = tuple(sorted(paths, key=natural_path_key))
            result.append(_Group(group.path, group.name, group.prefix, ordered))
    return result


def _scan_or_note(path: Path, limits: Limits, scan: Scan) -> ImageFile | UnusableFile:
    try:
        return scan(path, limits)
    except InputError as error:
        return UnusableFile(path, error)


def _failures(files: Sequence[ImageFile | UnusableFile]) -> list[Failure]:
    return [Failure(file.path, str(file.error)) for file in files if isinstance(file, UnusableFile)]


def _tell_layout(group: _Group, files: Sequence[ImageFile | UnusableFile]) -> Literal["frames", "stacks"]:
    usable = [file for file in files if not isinstance(file, UnusableFile)]
    pages = [file for file in usable if file.page_count == 1]
    stacks = [file for file in usable if file.page_count > 1]
    if pages and stacks:
        raise InputError(
            f"{group.path}: mixes {_some(pages, 'single-page')} and {_some(stacks, 'multi-page')}; "
            "use --layout frames to make one series of all pages, or --layout stacks to take each file by itself"
        )
    return "frames" if pages else "stacks"


def _some(files: Sequence[ImageFile], what: str) -> str:
    names = ", ".join(file.path.name for file in files[:_SHOWN])
    more = f", ... and {len(files) - _SHOWN} more" if len(files) > _SHOWN else ""
    return f"{len(files)} {what} file{'s' if len(files) > 1 else ''} ({names}{more})"
