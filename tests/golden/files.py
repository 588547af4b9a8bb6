"""Damaged files of every kind: what is read of each, or how it is refused, word by word.

The sound files are kept as bytes, since what libraries write changes with their versions.
"""

from __future__ import annotations

import base64
import json
import random
import tempfile
import zlib
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

from tests.fuzz.mutators import mutate
from tests.fuzz.targets import LIMITS, TARGETS
from xcorr_app.errors import XcorrError
from xcorr_app.io import scan_file

SOUND = Path(__file__).parent / "sound_files.json"
_COUNT = 250
_KINDS = (
    "plain", "plain-big-endian", "bigtiff", "strips", "tiles", "shaped", "imagej", "lsm", "rgb", "packbits", "png",
    "bmp", "bmp-colour", "csv-matrix", "csv-taps", "csv-shifts",
)  # fmt: skip
"""Kinds that the program parses by itself from the first byte to the last."""
_SOUND = (
    *_KINDS, "float", "ome", "rgb-ome", "deflate", "lzw", "zstd", "lzma", "lerc", "png-in-tiff", "jpeg-in-tiff",
    "jpeg2000", "jpegxl", "jpegxr", "png-colour", "jpeg", "jpeg-colour", "npy",
)  # fmt: skip


def keep_sound_files() -> None:
    """Write those that are not kept yet."""
    known = json.loads(SOUND.read_text()) if SOUND.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        for name in _SOUND:
            if name not in known:
                known[name] = base64.b64encode(TARGETS[name].make(Path(folder))).decode()
    SOUND.write_text(json.dumps(known, indent=1) + "\n")


@cache
def _sound() -> dict[str, str]:
    return dict(json.loads(SOUND.read_text()))


def _met(name: str) -> list[str]:
    target, content = TARGETS[name], base64.b64decode(_sound()[name])
    known = target.fields(content)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"damaged{target.suffix}"
        found = [_outcome(target.read, path, content)]
        for number in range(_COUNT):
            rng = random.Random(f"{name} golden {number}")  # noqa: S311 - the same files every time
            outcome = _outcome(target.read, path, mutate(content, known, rng)[0])
            # What a library of codecs says changes with its versions.
            found.append(outcome.split()[0] if name == "png" and "Error" in outcome else outcome)
    return found


def _scanned(name: str) -> Any:
    """What is said of a sound file before its pixels are read."""
    target = TARGETS[name]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"sound{target.suffix}"
        path.write_bytes(base64.b64decode(_sound()[name]))
        file = scan_file(path, LIMITS, colour="rgb" in name or "colour" in name)
        return {"metadata": file.metadata, "samples": file.samples}


def _outcome(read: Callable[[Path], Any], path: Path, content: bytes) -> str:
    path.write_bytes(content)
    try:
        found = read(path)
    except XcorrError as error:
        said = str(error).replace(str(path.parent), "")
        return f"{type(error).__name__} {zlib.crc32(said.encode()):08x}"
    if found is None:
        return "read"
    return f"{found.dtype} {found.shape} {zlib.crc32(found.tobytes()):08x}"


def cases() -> dict[str, Callable[[], Any]]:
    """Every kind by its name."""
    images = [name for name in _SOUND if not name.startswith("csv")]
    return {f"damaged-{name}": partial(_met, name) for name in _KINDS} | {
        f"scanned-{name}": partial(_scanned, name) for name in images
    }
