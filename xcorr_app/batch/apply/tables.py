"""Which table of shifts, or file of fields, belongs to which stack, and by what it moves its frames."""

import math
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from xcorr_app.batch.align.frames import SourceFrames
from xcorr_app.batch.apply.options import ApplyOptions
from xcorr_app.errors import InputError, ShapeError
from xcorr_app.io import Checksums, Discovery, SeriesSpec
from xcorr_app.io.names import plain_name
from xcorr_app.io.shift_table import ShiftTable, read_shift_table
from xcorr_app.pipeline.state import StackInputs, State
from xcorr_app.registration.motion.result import MotionResult
from xcorr_app.registration.warping.matrices import about_middle
from xcorr_app.registration.warping.warp import Warp, by_fields, by_matrices


@dataclass(frozen=True, eq=False)
class Moves:
    """Of every frame of one stack."""

    shifts: NDArray[np.float64]
    """(T, 2) pixels to add; NaN of frames that are left out."""
    matched: str
    """How frames found their shifts, in words."""
    largest: float
    """Pixels that a frame, its middle where it turns, or a part of it is moved by; NaN where none is."""
    warp: Warp | None = None
    """Warps frames that do not move as a whole; `shifts` only say then which are left out."""
    lacking: tuple[int, ...] = ()
    """Frames that the table does not have."""

    @property
    def kept(self) -> NDArray[np.bool_]:
        """(T,) which frames are not left out."""
        return np.asarray(np.isfinite(self.shifts).all(axis=1))


def of_table(moves: NDArray[np.float64], matched: str, shape: tuple[int, int]) -> Moves:
    """By shifts (T, 2) or matrices (T, 3, 3), NaN where there is none, of frames of a shape."""
    if moves.ndim == 2:
        return Moves(moves, matched, _largest(moves))
    middles = np.stack([about_middle(matrix, shape)[:2, 2] for matrix in moves])
    return Moves(-moves[:, :2, 2], matched, _largest(middles), by_matrices(moves))


def of_fields(result: MotionResult, scale: float, count: int, shape: tuple[int, int]) -> Moves:
    """By the fields of a measurement, for a stack of `count` frames of a shape, `scale` times that of those measured.

    Raises ShapeError where it is of another stack.
    """
    field = result.field
    assert field is not None  # noqa: S101 - the caller looked
    if len(field.shifts) != count:
        raise ShapeError(f"it has the fields of {len(field.shifts)} frames, the stack {count}")
    if any(abs(scale * before - now) >= 1 for before, now in zip(result.shape, shape, strict=True)):
        rows, columns = result.shape
        raise ShapeError(f"its fields are of frames of {rows} x {columns}, these have {shape[0]} x {shape[1]}; --scale")
    field = field.scaled(scale)
    applied = field.applied(result.trusted, result.doubtful)
    warp = by_fields(applied, (field.rows, field.columns))
    return Moves(applied.mean(axis=(1, 2)), "by frame number", _largest(applied.reshape(-1, 2)), warp)


def _largest(shifts: NDArray[np.float64]) -> float:
    lengths = np.hypot(*shifts.T)
    return float(np.nanmax(lengths)) if np.isfinite(lengths).any() else math.nan


_TABLES = ("motion.npz", "motion.csv", "shifts.csv")
"""In the folder of a stack's results; fields and motions go before the shifts of their means and middles."""
_SHOWN = 5


Tables: TypeAlias = dict[str, Path | InputError]
"""By the name of a stack, its table or why it has none."""


def table_files(options: ApplyOptions, discovery: Discovery) -> Tables:
    """Name the table of every stack; of a folder of results, that of the stack of the same source.

    Raises InputError where there is no table, or none for any stack.
    """
    given = options.shifts
    if not given.is_dir():
        _read(given)
        return {spec.name: given for spec in discovery.series}
    if (own := _table_in(given)).is_file():
        return {spec.name: own for spec in discovery.series}
    found = _paired(given, discovery.series)
    if discovery.series and all(isinstance(table, InputError) for table in found.values()):
        raise next(table for table in found.values() if isinstance(table, InputError))
    return found


def moves_of(table_file: Path | InputError, frames: SourceFrames, options: ApplyOptions) -> Moves:
    """What moves the frames of a stack."""
    if isinstance(table_file, InputError):
        raise table_file
    found = _read(table_file)
    if isinstance(found, MotionResult):
        asked = {"--invert": options.invert, "--match name": options.match == "name"}
        if ignored := [word for word, given in asked.items() if given]:
            raise InputError(
                f"{table_file}: holds fields, which have no inverse and name no files: match by number, no {ignored[0]}"
            )
        try:
            return of_fields(found, options.scale, frames.count, frames.shape)
        except ShapeError as error:
            raise InputError(f"{table_file}: {error}") from error
    table = found.scaled(options.scale)
    table = table.inverted() if options.invert else table
    names = [name for name, _ in frames.origins()]
    by_name = options.match == "name" or (options.match == "auto" and _names_agree(table, names))
    try:
        if by_name and not table.files:
            raise ShapeError("the table names no files")
        if by_name:
            moves, listed = table.for_files(names, options.missing), set(table.files)
            lacking = [number for number, name in enumerate(names) if name not in listed]
        else:
            moves = table.for_frames(frames.count, options.missing)
            lacking = np.setdiff1d(np.arange(frames.count), table.frames).tolist()
    except ShapeError as error:
        hint = "; --match number goes by the numbers of frames" if by_name else ""
        raise InputError(f"{table_file}: {error}{hint}") from error
    matched = "by file name" if by_name else "by frame number"
    return replace(of_table(moves, matched, frames.shape), lacking=tuple(lacking))


def _paired(given: Path, series: Sequence[SeriesSpec]) -> Tables:
    """Tables of a folder of results by what their stacks were made of, as the records there have it.

    Folders that no record speaks of were made by others, and are called what their stacks are.
    """
    tables = {path.name: table for path in sorted(given.iterdir()) if (table := _table_in(path)).is_file()}
    recorded = State(given).inputs()
    known = {name: StackInputs(name, {}) for name in tables} | recorded
    of_source: dict[str, dict[str, StackInputs]] = {}
    for name, of in known.items():
        of_source.setdefault(plain_name(of.source), {})[name] = of
    asked: dict[str, list[SeriesSpec]] = {}
    for spec in series:
        asked.setdefault(plain_name(spec.source), []).append(spec)
    found: Tables = {}
    for source, specs in asked.items():
        same = of_source.get(source, {})
        pairs = {specs[0].name: next(iter(same))} if len(specs) == len(same) == 1 else _disambiguated(specs, same)
        for spec in specs:
            name = pairs.get(spec.name, "")
            in_doubt = {} if name else {other: of for other, of in same.items() if other in tables}
            has = [of.source for other, of in known.items() if other in tables]
            found[spec.name] = tables.get(name) or _no_table(given, spec, has, in_doubt)
    return found


def _disambiguated(specs: Sequence[SeriesSpec], known: Mapping[str, StackInputs]) -> dict[str, str]:
    """Stacks and tables, by their names, of one source that have the same files, or files in a folder of one name."""
    pairs: dict[str, str] = {}
    here = {spec.name: StackInputs(spec.source, Checksums(spec.paths).finished()) for spec in specs} if known else {}
    for mark in (_content, _folders):
        of_spec = {name: mark(of) for name, of in here.items() if name not in pairs}
        of_known = {name: mark(of) for name, of in known.items() if of.inputs and name not in pairs.values()}
        for spec, own in of_spec.items():
            same = [name for name, other in of_known.items() if other == own]
            if len(same) == 1 and list(of_spec.values()).count(own) == 1:
                pairs[spec] = same[0]
    return pairs


def _content(of: StackInputs) -> list[str]:
    return sorted(of.inputs.values())


def _folders(of: StackInputs) -> list[str]:
    return sorted({Path(os.path.abspath(path)).parent.name for path in of.inputs})  # noqa: PTH100 - links stay


def _no_table(given: Path, spec: SeriesSpec, has: list[str], in_doubt: Mapping[str, StackInputs]) -> InputError:
    """Say why no table, or which of several, is a stack's."""
    if in_doubt:
        places = ", ".join(f"{given / name} of {next(iter(of.inputs), of.source)}" for name, of in in_doubt.items())
        return InputError(
            f"{spec.paths[0]}: cannot be told from other stacks named {spec.source}, of which there are shifts in "
            f"{places}; give one of these folders and one stack"
        )
    there = f"it has those of {', '.join(has[:_SHOWN])}" if has else f"it holds no NAME/{_TABLES[-1]}"
    return InputError(
        f"{given}: holds no shifts of {spec.source}; {there}: give the output folder of xcorr align, or one table"
    )


def _read(path: Path) -> ShiftTable | MotionResult:
    """A table, or a result with fields."""
    if path.suffix.lower() == ".npz" and _holds_fields(path):
        return MotionResult.load(path)
    return read_shift_table(path)


def _holds_fields(path: Path) -> bool:
    with suppress(Exception), np.load(path, allow_pickle=False) as archive:
        return "field_shifts" in archive
    return False


def _table_in(folder: Path) -> Path:
    return next((folder / name for name in _TABLES if (folder / name).is_file()), folder / _TABLES[-1])


def _names_agree(table: ShiftTable, names: list[str]) -> bool:
    """Whether each frame is a file of its own on both sides, by the same names in part at least."""
    distinct = len(names) > 1 and len(set(names)) == len(names) and len(set(table.files)) == len(table.files)
    return distinct and not set(names).isdisjoint(table.files)
