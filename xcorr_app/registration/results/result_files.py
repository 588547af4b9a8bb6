"""Results of a measurement in files: an archive that gives them back, or a table of the frames.

An archive holds the fields of a result: those that are arrays as such, the others (`_READ`) as words of JSON.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Callable
from dataclasses import MISSING, astuple, fields
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.errors import ArgumentError, DamagedFileError, InputError, OutputError
from xcorr_app.registration.results.doubtful_frames import check_policy
from xcorr_app.registration.results.frame_table import array_of, parse_shifts_csv, rows_of, shifts_csv
from xcorr_app.registration.stack.prefilter import Contrast

Result = TypeVar("Result")

_READ: dict[str, Callable[[Any], Any]] = {
    "flags": lambda frames: tuple(tuple(map(str, flags)) for flags in frames),
    "reference": str,
    "notes": lambda notes: tuple(map(str, notes)),
    "unreadable": lambda reasons: {int(frame): str(reason) for frame, reason in reasons.items()},
    "window": lambda limits: ShiftWindow(*limits),
    "engine": str,
    "contrast": lambda text: None if text is None else Contrast.parse(text),
    "left_out": bool,
    "model": str,
    "shape": lambda sides: (int(sides[0]), int(sides[1])),
    "doubtful": lambda policy: check_policy(str(policy)),
}
"""How fields that are no arrays are read from words; `decision` is not kept."""


def save(result: Any, path: Path) -> None:
    """Write a `ShiftResult` as its method of this name says."""
    suffix = path.suffix.lower()
    if suffix == ".csv":
        write_whole(path, shifts_csv(rows_of(result)).encode())
    elif suffix == ".npz":
        write_whole(path, archive_of(result, {"applied": result.applied()}))
    else:
        raise ArgumentError(f"{path}: results are written to .npz or .csv")


def archive_of(result: Any, more: dict[str, Any]) -> bytes:
    """Content of an archive that `load_archive` reads, and `more` arrays; the same result gives the same bytes."""
    values = {each.name: getattr(result, each.name) for each in fields(result)}
    words = {name: values[name] for name in _READ if name in values}
    words["unreadable"] = {int(frame): reason for frame, reason in result.unreadable.items()}
    text = json.dumps(words, default=lambda value: astuple(value) if isinstance(value, ShiftWindow) else str(value))
    arrays: dict[str, Any] = {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
    content = io.BytesIO()
    np.savez_compressed(content, words=np.array(text), **arrays, **more)
    return content.getvalue()


def load_archive(
    kind: type[Result], path: Path, what: str, more: Callable[[Any], dict[str, Any]] = lambda _: {}
) -> Result:
    """Read a result of this kind; a file that is not as it should be holds `what`. `more` reads fields of its own."""
    _check_is_there(path)
    if not zipfile.is_zipfile(path):
        raise DamagedFileError(f"{path}: holds {what}: it is no .npz archive; xc.load_shifts reads tables of shifts")
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            words: dict[str, Any] = json.loads(archive["words"].item())
            found = {name: read(words[name]) for name, read in _READ.items() if name in words}
            found |= {each.name: archive[each.name] for each in fields(kind) if each.name in archive}  # type: ignore[arg-type]
            found |= more(archive)
            needed = [each.name for each in fields(kind) if each.default is MISSING]  # type: ignore[arg-type]
            columns = [found[name] for name in needed if isinstance(found[name], np.ndarray)]
            if any(len(column) != len(found["flags"]) for column in columns):
                raise ValueError("its arrays are of different lengths")
            return kind(**found)
    except Exception as error:  # whatever is raised, it is the file's
        raise DamagedFileError(f"{path}: holds {what} ({error})") from error


def _check_is_there(path: Path) -> None:
    if not path.is_file():
        raise InputError(f"{path}: {'is no file' if path.exists() else 'does not exist'}")


def load_table(path: Path) -> dict[str, Any]:
    """Read the fields of a `ShiftResult` from a table of frames; what it has no column for is not known."""
    _check_is_there(path)
    try:
        rows = parse_shifts_csv(path.read_bytes().decode())
    except (DamagedFileError, UnicodeDecodeError) as error:
        raise DamagedFileError(f"{path}: is no table of shifts as `xcorr align` writes it: {error}") from error
    if not rows or [row.frame for row in rows] != list(range(len(rows))):
        raise DamagedFileError(f"{path}: is no table of shifts: its frames are not numbered from 0")
    shifts = array_of(rows, "dy", "dx")
    each = {name: array_of(rows, name)[:, 0] for name in ("score", "peak_ratio", "significance")}
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


def write_whole(path: Path, content: bytes) -> None:
    """Write a file whole, or not at all."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        partial.write_bytes(content)
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise OutputError(f"{path}: cannot be written ({error.strerror})") from error
