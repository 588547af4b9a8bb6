"""The files that a user names: folders, files and globs, sorted into groups that lie together."""

import glob
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from xcorr_app.errors import InputError
from xcorr_app.io.finding.scan import described_others
from xcorr_app.io.formats import images_of
from xcorr_app.io.names import family, is_image_name, is_zarr_name, label, natural_path_key, split_inner, url_of
from xcorr_app.io.ome_zarr.zarr_image import images_within as zarr_images
from xcorr_app.io.ome_zarr.zarr_image import is_zarr
from xcorr_app.io.series import Failure

_USUAL = ("TIFF", "PNG")
_OF_ONE_IMAGE = (*_USUAL, "BMP", "JPEG", "npy")
"""Images of the kinds in `_USUAL` are meant where others lie beside them: previews, arrays of other programs."""


@dataclass(frozen=True)
class Group:
    """Files that were named together: a folder's, or those given explicitly from one folder."""

    path: Path
    name: str
    prefix: str
    paths: tuple[Path, ...]
    left_out: int = 0
    """Images of other kinds beside them."""


def grouped_inputs(inputs: Sequence[Path | str]) -> tuple[list[Group], list[Failure]]:
    """Sort inputs into groups of files; inputs that lead nowhere become failures."""
    groups: list[Group] = []
    problems: list[Failure] = []
    single: dict[Path, list[Path]] = {}
    for text in inputs:
        try:
            for path in _expand(text):
                if path.is_dir() and not is_zarr(path):
                    groups += _folder_groups(path)
                else:
                    found = each_image(path)
                    if len(found) > 1:
                        groups += [Group(path, label(image), "", (image,)) for image in found]
                    else:
                        single.setdefault(path.parent, []).append(path)
        except InputError as error:
            problems.append(Failure(Path(text), str(error)))
        except (OSError, ValueError) as error:
            # A circle of links, a name too long, a null character.
            problems.append(Failure(Path(text), f"{text!s}: cannot be looked up ({error})"))
    for folder, paths in single.items():
        name = label(paths[0]) if len(paths) == 1 else _folder_name(folder)
        groups.append(Group(folder, name, "", tuple(paths)))
    return _without_repeats(groups), problems


def _expand(text: Path | str) -> list[Path]:
    path = Path(text)
    try:
        path.stat()
    except FileNotFoundError:
        if url_of(path) is not None or split_inner(path)[1]:
            return [path]
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
        raise InputError(f"{path}: no image or folder has a name of that form" + described_others(matches))
    return sorted(wanted, key=natural_path_key)


def _folder_groups(folder: Path) -> list[Group]:
    images, subfolders, others = _list_folder(folder)
    inner = [(subfolder, _list_folder(subfolder)[0]) for subfolder in subfolders] if not _usual(images) else []
    if images and not any(_usual(found) for _, found in inner):
        return _groups(folder, _folder_name(folder), "", images)
    groups = [
        group
        for subfolder, found in inner
        if found
        for group in _groups(subfolder, subfolder.name, f"{subfolder.name}_", found)
    ]
    if not groups:
        raise InputError(
            f"{folder}: holds no TIFF or PNG file (nor BMP, JPEG, .npy, OME-Zarr), nor do the folders in it"
            + described_others(others)
        )
    return groups


def _groups(folder: Path, name: str, prefix: str, images: list[Path]) -> list[Group]:
    """Images of one kind, those of files that hold several by themselves; TIFF or PNG go before other kinds."""
    wanted = _usual(images) or images
    kinds = sorted({family(path.name) for path in wanted})
    if len(kinds) > 1:
        ending = wanted[0].suffix
        raise InputError(
            f"{folder}: holds both {' and '.join(reversed(kinds))} files; name the ones you mean, as {folder}/*{ending}"
        )
    within = {path: each_image(path) for path in wanted}
    plain = tuple(path for path in wanted if len(within[path]) < 2)
    groups = [Group(folder, name, prefix, plain, len(images) - len(wanted))] if plain else []
    return groups + [
        Group(path, prefix + label(image), prefix, (image,))
        for path in wanted
        for image in within[path][1:] and within[path]
    ]


def _usual(images: list[Path]) -> list[Path]:
    return [path for path in images if family(path.name) in _USUAL]


def _list_folder(folder: Path) -> tuple[list[Path], list[Path], list[Path]]:
    """Images and true sub-folders of a folder, in natural order, and other files; hidden ones do not count."""
    images, subfolders, others = [], [], []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False) and not is_zarr_name(entry.name):
                    if not entry.name.startswith("."):
                        subfolders.append(Path(entry.path))
                elif is_image_name(entry.name) and (is_zarr_name(entry.name) or not _leads_to_folder(entry)):
                    images.append(Path(entry.path))
                else:
                    others.append(Path(entry.path))
    except OSError as error:
        raise InputError(f"{folder}: cannot be listed ({error.strerror})") from error
    return sorted(images, key=natural_path_key), sorted(subfolders, key=natural_path_key), others


def _leads_to_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False  # a link in a circle: kept, so that it is reported when it cannot be read


def each_image(path: Path) -> list[Path]:
    """Paths of the images of a file or plate; the path itself where it holds one, or cannot be read."""
    if is_image_name(path.name) and family(path.name) in _OF_ONE_IMAGE:
        return [path]
    try:
        if is_zarr(path):
            return zarr_images(path)
        return images_of(path)
    except InputError:
        return [path]  # what is wrong with it is told when it is scanned


def _folder_name(folder: Path) -> str:
    return folder.resolve().name or "stack"


def _without_repeats(groups: list[Group]) -> list[Group]:
    """Leave out files that were named before, sort each group, drop groups that have become empty."""
    seen: set[str] = set()
    result = []
    for group in groups:
        paths = []
        for path in group.paths:
            if (identity := os.path.realpath(path)) not in seen:
                seen.add(identity)
                paths.append(path)
        if paths:
            ordered = tuple(sorted(paths, key=natural_path_key))
            result.append(replace(group, paths=ordered))
    return result
