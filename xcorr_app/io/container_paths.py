"""Images within a file or folder that holds several: ``FILE.lif:/2``, ``FILE.h5:/group/data``, ``PLATE.zarr/A/1/0``.

Such a path is what a user writes and what an error names. Paths that begin like ``s3:/`` are URLs, whose second stroke
`pathlib` has taken.
"""

from __future__ import annotations

import re
from pathlib import Path

from xcorr_app.io.finding.natural_order import is_image_name, stem

_URL = re.compile(r"([a-z][a-z0-9+.-]+(?:::[a-z][a-z0-9+.-]+)*):/+(?=[^/])")
"""One letter alone would be a drive."""
_INNER = ":"
ZARR = ".zarr"


def url_of(path: Path) -> str | None:
    """The URL that a path was made of, or None; something of that name on the disk goes before."""
    match = _URL.match(str(path))
    if match is None or is_image_name(match[1]) or Path(path.parts[0]).exists():
        return None
    strokes = ":///" if match[1].rpartition("::")[2] in ("file", "local") else "://"
    return match[1] + strokes + str(path)[match.end() :]


def split_inner(path: Path) -> tuple[Path, str]:
    """A file, and the name of an image within it; empty where none is named."""
    if f"{_INNER}/" in str(path) and not path.exists() and url_of(path) is None:
        for number, part in enumerate(path.parts[:-1]):
            if part.endswith(_INNER) and len(part) > 1:
                file = Path(*path.parts[:number], part[: -len(_INNER)])
                if file.is_file():
                    return file, "/".join(path.parts[number + 1 :])
    return path, ""


def inner_path(path: Path, inner: str) -> Path:
    """Path of an image within a file."""
    return Path(f"{path}{_INNER}/{inner}")


def label(path: Path) -> str:
    """What an image is called: the name of its file, and where it is within."""
    for number, part in reversed(list(enumerate(path.parts[:-1]))):
        holder = part.removesuffix(_INNER)
        if (part != holder and (number > 0 or is_image_name(holder))) or holder.lower().endswith(ZARR):
            return "_".join([stem(holder), *path.parts[number + 1 :]])
    return stem(path.name)
