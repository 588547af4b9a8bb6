"""OME-Zarr folders and URLs: told from others, opened, and the images that plates and collections hold.

Source: OME-NGFF 0.4 and 0.5, https://ngff.openmicroscopy.org. URLs are opened through fsspec, with whatever
file systems are installed for it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xcorr_app.errors import InputError
from xcorr_app.io.container_paths import url_of
from xcorr_app.io.optional import library
from xcorr_app.io.parsing import parsing

if TYPE_CHECKING:
    from collections.abc import Iterator

_MARKS = ("zarr.json", ".zgroup", ".zarray", ".zattrs")
_LARGEST_PLATE = 100_000


def is_zarr(path: Path) -> bool:
    """Tell whether a path leads to a zarr group or array: a folder with its marks, or a URL."""
    return url_of(path) is not None or (path.is_dir() and any((path / mark).is_file() for mark in _MARKS))


def open_node(path: Path) -> Any:
    """Open a zarr group or array for reading."""
    zarr = library("zarr", "zarr", path)
    try:
        return zarr.open(url_of(path) or str(path), mode="r")
    except ImportError as error:  # the file system of a URL
        raise InputError(f"{path}: cannot be opened ({error})") from error
    except (FileNotFoundError, zarr.errors.GroupNotFoundError, zarr.errors.NodeNotFoundError) as error:
        raise InputError(f"{path}: holds no zarr group; check the spelling ({error})") from error


def attributes_of(node: Any) -> dict[str, Any]:
    """OME attributes of a group, wherever its version keeps them; empty where there are none."""
    attributes = dict(node.attrs)
    found = attributes.get("ome", attributes)
    return found if isinstance(found, dict) else {}


def images_within(path: Path) -> list[Path]:
    """Paths of the images of a plate (every field of view) or of a collection; the path itself of anything else."""
    with parsing(path, "cannot be opened as OME-Zarr"):
        node = open_node(path)
        attributes = attributes_of(node)
        if "plate" in attributes:
            found = list(_fields(path, attributes["plate"]))
            if not found:
                raise InputError(f"{path}: is a plate without a field of view")
            return found
        if "bioformats2raw.layout" in attributes and "multiscales" not in attributes:
            names = sorted((name for name in node.group_keys() if name.isdecimal()), key=int)
            return [path / name for name in names] or [path]
    return [path]


def _fields(path: Path, plate: dict[str, Any]) -> Iterator[Path]:
    count = 0
    for well in plate["wells"]:
        place = path / _inside(well["path"])
        for image in attributes_of(open_node(place))["well"]["images"]:
            count += 1
            if count > _LARGEST_PLATE:
                raise InputError(f"{path}: has more than {_LARGEST_PLATE} fields of view; name a well")
            yield place / _inside(image["path"])


def _inside(text: str) -> str:
    """A path of an attribute, which must not lead out of its group."""
    if not isinstance(text, str) or text.startswith("/") or ".." in text.split("/"):
        raise ValueError(f"{json.dumps(text)[:80]} is no path within the group")
    return text
