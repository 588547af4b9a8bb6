"""Names in human order, names that are safe for an output folder, and names of images within files or folders.

The last, ``FILE.lif:/2``, ``FILE.h5:/group/data``, ``PLATE.zarr/A/1/0``, are what a user writes and an error names.
Paths that begin like ``s3:/`` are URLs, whose second stroke `pathlib` has taken.
"""

import functools
import re
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path

_DEVICE = re.compile(r"(?i)con|prn|aux|nul|(com|lpt)[0-9¹²³]")
"""What a file of Windows cannot be called, whatever its ending."""
_UNSAFE = re.compile(r'[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff/\\<>:"|?*]+')
_LONGEST_BYTES, _SHOWN = 100, 3
_MANY = 1 << 15
"""Names of a folder, which is sorted several times."""
FAMILIES = {
    "TIFF": (".tif", ".tiff", ".btf", ".tf2", ".tf8", ".lsm"),
    "PNG": (".png",),
    "BMP": (".bmp", ".dib"),
    "JPEG": (".jpg", ".jpeg"),
    "npy": (".npy",),
    "OME-Zarr": (".zarr",),
    "ND2": (".nd2",),
    "CZI": (".czi",),
    "LIF": (".lif",),
    "MRC": (".mrc", ".mrcs", ".st", ".map"),
    "HDF5": (".h5", ".hdf5", ".emd"),
    "video": (".avi", ".mp4"),
}
"""Endings of the names of images, by the kind that they promise."""
_FAMILY_OF = {suffix: kind for kind, suffixes in FAMILIES.items() for suffix in suffixes}
IMAGE_SUFFIXES = tuple(suffix for suffixes in FAMILIES.values() for suffix in suffixes)


@functools.lru_cache(maxsize=_MANY)
def natural_key(text: str) -> tuple[tuple[int, int, str], ...]:
    """Sort key that puts ``t2`` before ``t10``; runs of digits compare as numbers.

    The last element compares the text itself, so the order of ``t1`` and ``t01`` is fixed too.
    """
    parts = re.split(r"([0-9]+)", text)
    key = [
        (0, int(part), "") if (part.isascii() and part.isdigit()) else (1, 0, part.casefold()) for part in parts if part
    ]
    return (*key, (2, 0, text))


def natural_path_key(path: Path) -> tuple[tuple[tuple[int, int, str], ...], ...]:
    """Sort key of a path: folder by folder, each in natural order."""
    return tuple(natural_key(part) for part in path.parts)


def is_image_name(name: str) -> bool:
    """Tell whether a file name promises an image that can be read here; hidden files never do."""
    return not name.startswith(".") and name.lower().endswith(IMAGE_SUFFIXES)


def is_zarr_name(name: str) -> bool:
    """Tell whether the name of a folder promises an OME-Zarr image."""
    return not name.startswith(".") and name.lower().endswith(".zarr")


def family(name: str) -> str:
    """Kind of image that a file name promises."""
    return _FAMILY_OF[_ending(name)]


def stem(name: str) -> str:
    """Return a file name without its image suffix; both parts of ``.ome.tif`` go."""
    ending = _ending(name)
    if ending in _FAMILY_OF and len(name) > len(ending):
        name = name[: -len(ending)]
        return name[:-4] if name.lower().endswith(".ome") and len(name) > 4 else name
    return name


def _ending(name: str) -> str:
    """From the last dot on."""
    return name[name.rfind(".") :].lower() if "." in name else ""


def plain_name(text: str) -> str:
    """Return `text` as a file name on every system has it, however long.

    Separators, control characters and line breaks become ``_``; leading dots and surrounding spaces go, so
    neither ``..`` nor a hidden folder can result.
    """
    return unicodedata.normalize("NFC", _UNSAFE.sub("_", text)).strip().lstrip(". ").rstrip(". ").strip() or "stack"


def safe_name(text: str) -> str:
    """Return a name usable as one folder on every system: `plain_name`, shortened, and none of a device of Windows."""
    name = plain_name(text).encode()[:_LONGEST_BYTES].decode(errors="ignore").rstrip(". ")
    return f"{name}_" if _DEVICE.fullmatch(name.partition(".")[0]) else name


def unique_names(names: Iterable[str], reserved: Iterable[str] = ()) -> list[str]:
    """Make safe names distinct, ignoring case, by adding ``_2``, ``_3``, ... to the later ones."""
    taken = {name.casefold() for name in reserved}
    result = []
    for name in map(safe_name, names):
        candidate, number = name, 1
        while candidate.casefold() in taken:
            number += 1
            candidate = f"{name}_{number}"
        taken.add(candidate.casefold())
        result.append(candidate)
    return result


def some(names: Sequence[str]) -> str:
    """Name the first of several, and how many more there are."""
    more = f", ... and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


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
