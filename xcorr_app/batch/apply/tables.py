"""Which table of shifts, or file of fields, belongs to which stack, and what it says of its frames."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import numpy as np

from xcorr_app.batch.align.frames import SourceFrames
from xcorr_app.batch.apply.moves import Moves, of_fields, of_table
from xcorr_app.batch.apply.options import ApplyOptions
from xcorr_app.errors import InputError, ShapeError
from xcorr_app.io import Discovery
from xcorr_app.io.shift_table import ShiftTable, read_shift_table
from xcorr_app.registration.motion.result import MotionResult

_TABLES = ("motion.npz", "motion.csv", "shifts.csv")
"""In the folder of a stack's results; fields and motions go before the shifts of their means and middles."""


def table_files(options: ApplyOptions, discovery: Discovery) -> dict[str, Path]:
    """Name the table of every stack; of a folder of results, that in the folder of the stack's name.

    Raises InputError where there is no table, or none for any stack.
    """
    given = options.shifts
    if not given.is_dir():
        _read(given)
        return {spec.name: given for spec in discovery.series}
    if (own := _table_in(given)).is_file():
        return {spec.name: own for spec in discovery.series}
    found = {spec.name: _table_in(given / spec.name) for spec in discovery.series}
    if discovery.series and not any(path.is_file() for path in found.values()):
        there = sorted(path.parent.name for path in given.glob(f"*/{_TABLES[-1]}"))
        has = f"it has those of {', '.join(there[:5])}" if there else f"it holds no NAME/{_TABLES[-1]}"
        raise InputError(
            f"{given}: holds no shifts of {', '.join(sorted(found)[:5])}; {has}: "
            "give the output folder of xcorr align, or one table"
        )
    return found


def moves_of(table_file: Path, frames: SourceFrames, options: ApplyOptions) -> Moves:
    """What moves the frames of a stack."""
    if not table_file.is_file():
        raise InputError(f"{table_file}: does not exist, so there are no shifts for this stack")
    found = _read(table_file)
    if isinstance(found, MotionResult):
        return _of_fields(table_file, found, frames, options)
    table = found.scaled(options.scale)
    table = table.inverted() if options.invert else table
    names = [frames.origin(t)[0] for t in range(frames.count)]
    by_name = options.match == "name" or (options.match == "auto" and _names_agree(table, names))
    try:
        if by_name and not table.files:
            raise ShapeError("the table names no files: match by number")
        if by_name:
            return of_table(table.for_files(names, options.missing), "by file name", frames.shape)
        return of_table(table.for_frames(frames.count, options.missing), "by frame number", frames.shape)
    except ShapeError as error:
        hint = f"; --match {'number' if by_name else 'name'} and --missing interpolate are other ways"
        raise InputError(f"{table_file}: {error}{hint}") from error


def _read(path: Path) -> ShiftTable | MotionResult:
    """A table, or a result with fields."""
    if path.suffix.lower() == ".npz" and _holds_fields(path):
        return MotionResult.load(path)
    return read_shift_table(path)


def _holds_fields(path: Path) -> bool:
    with suppress(Exception), np.load(path, allow_pickle=False) as archive:
        return "field_shifts" in archive
    return False


def _of_fields(path: Path, result: MotionResult, frames: SourceFrames, options: ApplyOptions) -> Moves:
    if options.invert:
        raise InputError(f"{path}: holds fields, which have no inverse on their grid: leave --invert out")
    if options.match == "name":
        raise InputError(f"{path}: holds fields, which name no files: match by number")
    try:
        return of_fields(result, options.scale, frames.count, frames.shape)
    except ShapeError as error:
        raise InputError(f"{path}: {error}") from error


def _table_in(folder: Path) -> Path:
    return next((folder / name for name in _TABLES if (folder / name).is_file()), folder / _TABLES[-1])


def _names_agree(table: ShiftTable, names: list[str]) -> bool:
    """Whether each frame is a file of its own on both sides, by the same names in part at least."""
    distinct = len(names) > 1 and len(set(names)) == len(names) and len(set(table.files)) == len(table.files)
    return distinct and not set(names).isdisjoint(table.files)
