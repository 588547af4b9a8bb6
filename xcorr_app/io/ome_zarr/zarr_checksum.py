"""One checksum of a folder of chunks, or of what a server says of one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import xxhash

from xcorr_app.errors import InputError
from xcorr_app.io.opened import opened
from xcorr_app.io.optional import library
from xcorr_app.system import read_at

if TYPE_CHECKING:
    from collections.abc import Iterator

_BLOCK = 1 << 22


def folder_checksum(folder: Path) -> str:
    """XXH3-128 of the names and contents of all files of a folder, in the order of their names."""
    digest = xxhash.xxh3_128()
    for path in files_below(folder):
        name = str(path.relative_to(folder)).encode()
        with opened(path) as descriptor:
            size = os.fstat(descriptor).st_size
            digest.update(b"%d %d " % (len(name), size) + name)
            position = 0
            while block := read_at(descriptor, _BLOCK, position):
                digest.update(block)
                position += len(block)
    return digest.hexdigest()


def files_below(folder: Path) -> Iterator[Path]:
    """Every file of a folder and those in it, in one order."""
    for root, folders, names in os.walk(folder):
        folders.sort()
        yield from (Path(root, name) for name in sorted(names))


def remote_checksum(path: Path, url: str) -> str:
    """Checksum of the names, sizes and dates or tags that a server lists; pixels are not fetched for it."""
    fsspec = library("fsspec", "zarr", path)
    try:
        system, root = fsspec.core.url_to_fs(url)
        found = system.find(root, detail=True) if hasattr(system, "find") else {}
    except Exception as error:  # every file system has exceptions of its own
        raise InputError(f"{path}: cannot be listed ({error})") from error
    keys = ("size", "ETag", "etag", "md5Hash", "mtime", "LastModified", "created")
    lines = [f"{name} {[str(entry.get(key)) for key in keys]}" for name, entry in sorted(found.items())]
    return xxhash.xxh3_128_hexdigest("\n".join(lines).encode())
