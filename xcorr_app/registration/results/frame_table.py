"""The table of frames: its columns are the fields of `FrameRow`, for Python, `shifts.csv` and the report."""

from __future__ import annotations

import csv
import functools
import io
import math
import re
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from xcorr_app.errors import ArgumentError, DamagedFileError
from xcorr_app.registration.quality import without_remarks
from xcorr_app.registration.results.doubtful_frames import DEFAULT_POLICY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

_UNMOVED = 1e-3
"""Pixels by which nothing is seen to move."""
_DECIMALS = 1e6
"""Steps of a pixel, or of what else a column holds, that numbers are rounded to."""

# What begins like this is computed by spreadsheets. Names that begin with an apostrophe get one more, to be told apart.
_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_MARKED = re.compile(r"'+[=+\-@\t\r]")


@dataclass(frozen=True)
class FrameRow:
    """One frame's line of the table of shifts.

    Attributes
    ----------
    frame : int
        Position in the stack, from 0.
    source, page : str, int
        File that the frame came from, and the page in it, from 0.
    dy, dx : float
        Pixels to add to the frame to land on the reference, rows down, columns right; nan where not measured.
    score, peak_ratio : float
        Similarity at the best shift, and ratio of the best peak to the second, inf where there is no second above zero;
        nan where not measured.
    fft_dy, fft_dx, difference : float
        Shift of the FFT reference in pixels and its distance from (dy, dx); nan where not verified.
    flags : tuple of str
        What is doubtful, in words of :mod:`xcorr_app.registration.quality`.
    remarks : tuple of str
        What else is said of it, in such words: no reason to look at it.
    sigma_y, sigma_x : float
        Predicted standard errors of (dy, dx) in pixels; inf where nothing is known of a peak, nan where there is none.
    applied_dy, applied_dx : float
        Pixels that the frame is moved by; nan where it is left out.
    significance : float
        Height of the peak above the rest of its plane, in standard deviations of that; nan where not known.
    """

    frame: int
    source: str
    page: int
    dy: float
    dx: float
    score: float
    peak_ratio: float
    fft_dy: float
    fft_dx: float
    difference: float
    flags: tuple[str, ...]
    sigma_y: float
    sigma_x: float
    applied_dy: float
    applied_dx: float
    remarks: tuple[str, ...] = ()
    significance: float = math.nan

    @property
    def as_measured(self) -> bool:
        """It is moved by its measured shift."""
        return (self.applied_dy, self.applied_dx) == (self.dy, self.dx)

    @property
    def is_flagged(self) -> bool:
        """Something about it is doubtful."""
        return bool(self.flags)

    @property
    def is_dropped(self) -> bool:
        """It is left out of the written stack."""
        return math.isnan(self.applied_dy)

    @property
    def is_moved(self) -> bool:
        """It is moved by more than a rounding error of the table."""
        return max(abs(self.applied_dy), abs(self.applied_dx)) >= _UNMOVED


def rows_of(
    result: Any, policy: str = DEFAULT_POLICY, origins: Sequence[tuple[str, int]] | None = None
) -> list[FrameRow]:
    """Make the lines of a `ShiftResult`, whose frames come from these files and pages; numbers have six decimals."""
    parts = (result.shifts, result.score, result.peak_ratio, result.fft_shifts, result.difference, result.sigma)
    # All at once: one by one, numbers of an array take longer than all else here. Zeros lose their sign.
    table = np.column_stack([*parts, result.applied(policy), result.significance]).astype(np.float64)
    numbers = (np.rint(table * _DECIMALS) / _DECIMALS + 0.0).tolist()
    places = origins or [("", t) for t in range(len(numbers))]
    words = map(without_remarks, result.flags)
    lines: Iterable[list[Any]] = (
        [t, *place, *known[:7], flags, *known[7:11], remarks, known[11]]
        for t, (place, known, (flags, remarks)) in enumerate(zip(places, numbers, words, strict=True))
    )
    return [FrameRow(*line) for line in lines]


def columns_of(rows: Sequence[FrameRow]) -> dict[str, Any]:
    """Columns of lines, words joined by ``|``."""
    columns = {name: [getattr(row, name) for row in rows] for name in _KINDS}
    return columns | {name: ["|".join(words) for words in columns[name]] for name in ("flags", "remarks")}


def cells_of(rows: Sequence[FrameRow], names: Iterable[str]) -> Iterator[tuple[str, ...]]:
    """Cells of some columns, line by line, as files have them."""
    columns = [_KINDS[name][0](list(map(attrgetter(name), rows))) for name in names]
    return zip(*columns, strict=True)


def array_of(rows: Sequence[FrameRow], *names: str) -> NDArray[np.float64]:
    """Array (T, number of names) of columns of numbers."""
    return np.array(list(map(attrgetter(*names), rows)), np.float64).reshape(-1, len(names))


def shifts_csv(rows: Iterable[FrameRow]) -> str:
    r"""Write the table as text: a line of column names, then a line for each frame.

    Numbers have six decimals (pixels for shifts and differences) and are empty where there is none; flags, and
    remarks, are joined by ``|``; fields are quoted as in RFC 4180 where they need it; lines end with ``\n``. Bytes of a
    file name that are not valid text appear as escapes such as ``\udc80``, so that the table is always UTF-8. Names
    that a spreadsheet would take for a formula (``=1+2.tif``) have an apostrophe before them, which it does not show.
    """
    text = "\n".join([COLUMNS, *map(",".join, cells_of(list(rows), _KINDS))]) + "\n"
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def parse_shifts_csv(text: str) -> tuple[FrameRow, ...]:
    """Read a table that `shifts_csv` wrote; what was not measured or verified is nan."""
    if not text.endswith("\n"):
        raise DamagedFileError("it breaks off in its last line")
    reader, readers = csv.reader(io.StringIO(text, newline=""), strict=True), [read for _, read in _KINDS.values()]
    rows: list[FrameRow] = []
    try:
        header = next(reader)
        if header != COLUMNS.split(","):
            raise DamagedFileError(f"line 1: columns are {','.join(header)!r}, not {COLUMNS!r}")
        for cells in reader:
            if len(cells) != len(readers):
                raise ArgumentError(f"{len(cells)} fields in place of {len(readers)}")
            rows.append(FrameRow(*(read(cell) for read, cell in zip(readers, cells, strict=True))))
    except (csv.Error, ValueError) as error:
        raise DamagedFileError(f"line {reader.line_num}: {error}") from error
    return tuple(rows)


def csv_text(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Any other table: its head, and its rows; bytes of names that are not valid text appear as escapes."""
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows([head, *rows])
    return text.getvalue().encode("utf-8", "backslashreplace").decode("utf-8")


@functools.lru_cache(maxsize=64)
def _name(source: str) -> str:
    return _quoted(f"'{source}" if _FORMULA.match(source) else source)


def _name_in(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and _MARKED.match(cell) else cell


def _numbers(column: Sequence[float]) -> list[str]:
    text = "%.6f\n" * len(column) % tuple(column)  # all at once: there may be many
    return text.replace("-0.000000\n", "0.000000\n").replace("nan\n", "\n").split("\n")[:-1]


def _flags(column: Sequence[tuple[str, ...]]) -> list[str]:
    return [_quoted("|".join(words)) if words else "" for words in column]


def _words_in(cell: str) -> tuple[str, ...]:
    words = tuple(cell.split("|")) if cell else ()
    if set(cell) & set("\r\n") or not all(word.strip() for word in words):
        raise ArgumentError(f"{cell!r} are not flags, which are words with '|' between them")
    return words


def _quoted(field: str) -> str:
    # The csv module's writer leaves a lone carriage return unquoted before Python 3.13, and its reader then
    # takes it for the end of a line.
    if set(field) & set(',"\r\n'):
        return '"' + field.replace('"', '""') + '"'
    return field


_OF_TYPES: dict[Any, tuple[Callable[[Sequence[Any]], Iterable[str]], Callable[[str], Any]]] = {
    "int": (functools.partial(map, str), int),
    "str": (functools.partial(map, _name), _name_in),
    "float": (_numbers, lambda cell: float(cell or "nan")),
    "tuple[str, ...]": (_flags, _words_in),
}
"""How values of a type are written into the cells of a column, and read from one."""
_KINDS = {each.name: _OF_TYPES[each.type] for each in fields(FrameRow)}
COLUMNS = ",".join(_KINDS)
