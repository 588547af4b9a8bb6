"""The table of shifts: `shifts.csv` as text, and back."""

from __future__ import annotations

import csv
import io
import math
import re
from typing import TYPE_CHECKING

from xcorr_app.errors import ArgumentError, DamagedFileError
from xcorr_app.report.records import FrameRow

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

COLUMNS = (
    "frame,source,page,dy,dx,score,peak_ratio,fft_dy,fft_dx,difference,flags,sigma_y,sigma_x,applied_dy,applied_dx"
)
# What begins like this is computed by spreadsheets. Names that begin with an apostrophe get one more, to be told apart.
_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_MARKED = re.compile(r"'+[=+\-@\t\r]")


def shifts_csv(rows: Iterable[FrameRow]) -> str:
    r"""Write the table as text: a line of column names, then a line for each frame.

    Numbers have six decimals (pixels for shifts and differences) and are empty where there is none; flags are
    joined by ``|``; fields are quoted as in RFC 4180 where they need it; lines end with ``\n``. Bytes of a file
    name that are not valid text appear as escapes such as ``\udc80``, so that the table is always UTF-8. Names that a
    spreadsheet would take for a formula (``=1+2.tif``) have an apostrophe before them, which it does not show.
    """
    lines = [COLUMNS]
    for row in rows:
        numbers = (row.dy, row.dx, row.score, row.peak_ratio, row.fft_dy, row.fft_dx, row.difference)
        fields = [str(row.frame), _as_text(row.source), str(row.page), *map(_number, numbers), "|".join(row.flags)]
        fields += map(_number, (row.sigma_y, row.sigma_x, row.applied_dy, row.applied_dx))
        lines.append(",".join(map(_quoted, fields)))
    text = "\n".join(lines) + "\n"
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def parse_shifts_csv(text: str) -> tuple[FrameRow, ...]:
    """Read a table that `shifts_csv` wrote; what was not measured is nan, what was not verified None."""
    if not text.endswith("\n"):
        raise DamagedFileError("shifts.csv breaks off in its last line; run again to write a new one")
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows: list[FrameRow] = []
    try:
        header = next(reader)
        if header != COLUMNS.split(","):
            raise DamagedFileError(f"shifts.csv line 1: columns are {','.join(header)!r}, not {COLUMNS!r}")
        rows.extend(_row(fields) for fields in reader)
    except (csv.Error, ValueError) as error:
        message = f"shifts.csv line {reader.line_num}: {error}; run again to write a new one"
        raise DamagedFileError(message) from error
    return tuple(rows)


def _row(fields: Sequence[str]) -> FrameRow:
    if len(fields) != COLUMNS.count(",") + 1:
        raise ArgumentError(f"{len(fields)} fields in place of {COLUMNS.count(',') + 1}")
    dy, dx, score, peak_ratio = (float(field) if field else math.nan for field in fields[3:7])
    fft_dy, fft_dx, difference = (float(field) if field else None for field in fields[7:10])
    flags = tuple(fields[10].split("|")) if fields[10] else ()
    behind = (float(field) if field else math.nan for field in fields[11:15])
    return FrameRow(
        int(fields[0]),
        fields[1][1:] if _MARKED.match(fields[1]) else fields[1],
        int(fields[2]),
        dy,
        dx,
        score,
        peak_ratio,
        fft_dy,
        fft_dx,
        difference,
        flags,
        *behind,
    )


def _as_text(name: str) -> str:
    return f"'{name}" if _FORMULA.match(name) else name


def _number(value: float | None) -> str:
    if value is None or math.isnan(value):
        return ""
    text = f"{value:.6f}"
    return text.removeprefix("-") if text == "-0.000000" else text


def _quoted(field: str) -> str:
    # The csv module's writer leaves a lone carriage return unquoted before Python 3.13, and its reader then
    # takes it for the end of a line.
    if set(field) & set(',"\r\n'):
        return '"' + field.replace('"', '""') + '"'
    return field
