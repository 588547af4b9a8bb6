"""Results of a measurement in files: an archive that gives them back, or a table of the frames.

What is written and read are the fields of a :class:`xcorr_app.registration.results.results.ShiftResult`.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Callable
from dataclasses import astuple
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.errors import ArgumentError, DamagedFileError, InputError, OutputError
from xcorr_app.registration.results.frame_table import array_of, parse_shifts_csv, rows_of, shifts_csv
from xcorr_app.registration.stack.contrast import Contrast

Result = TypeVar("Result")

_ARRAYS = (
    "shifts",
    "score",
    "peak_ratio",
    "fft_shifts",
    "difference",
    "non_finite",
    "sigma",
    "significance",
    "tiles",
)
_OPTIONAL = ("closure", "wrong", "defects", "counted", "read_applied")


def save(result: Any, path: Path) -> None:
    """Write a result as its method of this name says."""
    suffix = path.suffix.lower()
    if suffix == ".csv":
        write_whole(path, shifts_csv(rows_of(result)).encode())
    elif suffix == ".npz":
        words = words_of(result) | {
            "window": astuple(result.window),
            "engine": result.engine,
            "contrast": None if result.contrast is None else str(result.contrast),
            "left_out": result.left_out,
        }
        known = {name: getattr(result, name) for name in (*_ARRAYS, *_OPTIONAL)} | {"applied": result.applied()}
        write_whole(path, archive_of(words, {name: array for name, array in known.items() if array is not None}))
    else:
        raise ArgumentError(f"{path}: results are written to .npz or .csv")


def words_of(result: Any) -> dict[str, Any]:
    """What any result of frames says in words."""
    return {
        "flags": result.flags,
        "reference": result.reference,
        "notes": result.notes,
        "unreadable": {str(frame): reason for frame, reason in result.unreadable.items()},
    }


def archive_of(words: dict[str, Any], arrays: dict[str, Any]) -> bytes:
    """Content of an archive that `read_archive` reads; the same result gives the same bytes."""
    content = io.BytesIO()
    np.savez_compressed(content, words=np.array(json.dumps(words)), **arrays)
    return content.getvalue()


def parsed_words(words: dict[str, Any]) -> dict[str, Any]:
    """Undo `words_of`, of words from a file."""
    return {
        "flags": tuple(tuple(map(str, flags)) for flags in words["flags"]),
        "reference": str(words["reference"]),
        "notes": tuple(map(str, words["notes"])),
        "unreadable": {int(frame): str(reason) for frame, reason in words["unreadable"].items()},
    }


def load(path: Path) -> dict[str, Any]:
    """Read the fields of a result, as its method of this name says."""
    if path.suffix.lower() == ".csv":
        return _of_table(path)
    return read_archive(path, _result_of, "no result of a measurement")


def read_archive(path: Path, parse: Callable[[Any], Result], what: str) -> Result:
    """Read an .npz file by `parse`; one that is not as it should be holds `what`."""
    if not path.is_file():
        raise InputError(f"{path}: {'is no file' if path.exists() else 'does not exist'}")
    if not zipfile.is_zipfile(path):
        raise DamagedFileError(f"{path}: holds {what}: it is no .npz archive; xc.load_shifts reads tables of shifts")
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            return parse(archive)
    except Exception as error:  # whatever a parser raises, it is the file's
        raise DamagedFileError(f"{path}: holds {what} ({error})") from error


def _of_table(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise InputError(f"{path}: {'is no file' if path.exists() else 'does not exist'}")
    try:
        rows = parse_shifts_csv(path.read_bytes().decode())
    except (DamagedFileError, UnicodeDecodeError) as error:
        raise DamagedFileError(f"{path}: is no table of shifts as `xcorr align` writes it: {error}") from error
    if not rows or [row.frame for row in rows] != list(range(len(rows))):
        raise DamagedFileError(f"{path}: is no table of shifts: its frames are not numbered from 0")
    shifts = array_of(rows, "dy", "dx")
    each = {name: array_of(rows, name)[:, 0] for name in ("score", "peak_ratio", "difference", "significance")}
    reach = np.ceil(np.nan_to_num(np.abs(shifts)).max(axis=0)).astype(int)
    return dict(
        shifts=shifts,
        **each,
        flags=tuple(row.flags + row.remarks for row in rows),
        fft_shifts=array_of(rows, "fft_dy", "fft_dx"),
        non_finite=np.zeros(len(rows), np.int64),
        window=ShiftWindow.symmetric(*reach.tolist()),
        engine="unknown",
        reference="unknown",
        notes=(f"Read from {path.name}.",),
        unreadable={},
        sigma=array_of(rows, "sigma_y", "sigma_x"),
        tiles=np.full((len(rows), 0, 0), np.nan, np.float32),
        read_applied=array_of(rows, "applied_dy", "applied_dx"),
    )


def _result_of(archive: Any) -> dict[str, Any]:
    words: dict[str, Any] = json.loads(archive["words"].item())
    arrays = {name: archive[name] for name in _ARRAYS}
    frames = len(arrays["shifts"])
    if arrays["shifts"].shape != (frames, 2) or any(len(array) != frames for array in arrays.values()):
        raise ValueError("its arrays are of different lengths")
    return dict(
        **arrays,
        **parsed_words(words),
        window=ShiftWindow(*words["window"]),
        engine=str(words["engine"]),
        **{name: archive.get(name) for name in _OPTIONAL},
        left_out=bool(words.get("left_out")),
        contrast=None if words.get("contrast") is None else Contrast.parse(words["contrast"]),
    )


def write_whole(path: Path, content: bytes) -> None:
    """Write a file whole, or not at all."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        partial.write_bytes(content)
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise OutputError(f"{path}: cannot be written ({error.strerror})") from error
