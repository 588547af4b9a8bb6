"""The table of shifts: `shifts.csv` as text, and back; its columns are the fields of `FrameRow`."""

from __future__ import annotations

import csv
import functools
import io
import math
import re
from dataclasses import fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from xcorr_app.errors import ArgumentError, DamagedFileError
from xcorr_app.report.records import FrameRow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

# What begins like this is computed by spreadsheets. Names that begin with an apostrophe get one more, to be told apart.
_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_MARKED = re.compile(r"'+[=+\-@\t\r]")


def shifts_csv(rows: Iterable[FrameRow]) -> str:
    r"""Write the table as text: a line of column names, then a line for each frame.

    Numbers have six decimals (pixels for shifts and differences) and are empty where there is none; flags, and
    remarks, are joined by ``|``; fields are quoted as in RFC 4180 where they need it; lines end with ``\n``. Bytes of a
    file name that are not valid text appear as escapes such as ``\udc80``, so that the table is always UTF-8. Names
    that a spreadsheet would take for a formula (``=1+2.tif``) have an apostrophe before them, which it does not show.
    """
    values, writers = attrgetter(*_KINDS), [write for write, _ in _KINDS.values()]
    lines = (",".join([write(value) for write, value in zip(writers, values(row), strict=True)]) for row in rows)
    text = "\n".join([COLUMNS, *lines]) + "\n"
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def parse_shifts_csv(text: str) -> tuple[FrameRow, ...]:
    """Read a table that `shifts_csv` wrote; what was not measured is nan, what was not verified None."""
    if not text.endswith("\n"):
        raise DamagedFileError("shifts.csv breaks off in its last line; run again to write a new one")
    reader, readers = csv.reader(io.StringIO(text, newline=""), strict=True), [read for _, read in _KINDS.values()]
    rows: list[FrameRow] = []
    try:
        header = next(reader)
        if header != COLUMNS.split(","):
            raise DamagedFileError(f"shifts.csv line 1: columns are {','.join(header)!r}, not {COLUMNS!r}")
        for cells in reader:
            if len(cells) != len(readers):
                raise ArgumentError(f"{len(cells)} fields in place of {len(readers)}")
            rows.append(FrameRow(*(read(cell) for read, cell in zip(readers, cells, strict=True))))
    except (csv.Error, ValueError) as error:
        message = f"shifts.csv line {reader.line_num}: {error}; run again to write a new one"
        raise DamagedFileError(message) from error
    return tuple(rows)


def csv_text(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Any other table: its head, and its rows; bytes of names that are not valid text appear as escapes."""
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows([head, *rows])
    return text.getvalue().encode("utf-8", "backslashreplace").decode("utf-8")


def shown(value: float) -> str:
    """A number with six decimals; nothing where there is none."""
    return f"{value:.6f}" if math.isfinite(value) else ""


@functools.lru_cache(maxsize=64)
def _name(source: str) -> str:
    return _quoted(f"'{source}" if _FORMULA.match(source) else source)


def _name_in(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and _MARKED.match(cell) else cell


def _number(value: float | None) -> str:
    if value is None or math.isnan(value):
        return ""
    text = f"{value:.6f}"
    return "0.000000" if text == "-0.000000" else text


def _words(words: tuple[str, ...]) -> str:
    return _quoted("|".join(words)) if words else ""


def _words_in(cell: str) -> tuple[str, ...]:
    return tuple(cell.split("|")) if cell else ()


def _quoted(field: str) -> str:
    # The csv module's writer leaves a lone carriage return unquoted before Python 3.13, and its reader then
    # takes it for the end of a line.
    if set(field) & set(',"\r\n'):
        return '"' + field.replace('"', '""') + '"'
    return field


_OF_TYPES: dict[Any, tuple[Callable[[Any], str], Callable[[str], Any]]] = {
    "int": (str, int),
    "str": (_name, _name_in),
    "float": (_number, lambda cell: float(cell or "nan")),
    "float | None": (_number, lambda cell: float(cell) if cell else None),
    "tuple[str, ...]": (_words, _words_in),
}
"""How values of a type are written into a cell, and read from it."""
_KINDS = {each.name: _OF_TYPES[each.type] for each in fields(FrameRow)}
COLUMNS = ",".join(_KINDS)
