"""The table of shifts: `shifts.csv` as text, and back."""

from __future__ import annotations

import csv
import functools
import io
import math
import re
from typing import TYPE_CHECKING

from xcorr_app.errors import ArgumentError, DamagedFileError
from xcorr_app.report.records import FrameRow

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

COLUMNS = (
    "frame,source,page,dy,dx,score,peak_ratio,fft_dy,fft_dx,difference,flags,sigma_y,sigma_x,applied_dy,applied_dx,"
    "remarks"
)
_WIDTH = COLUMNS.count(",") + 1
_FOUR, _THREE = ("%.6f" + ",%.6f" * others for others in (3, 2))
_NOT_VERIFIED = (None, None, None)
_NAN = "nan"
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
    lines = [COLUMNS]
    for row in rows:
        verified = row.fft_dy, row.fft_dx, row.difference
        measured = _written(_FOUR, (row.dy, row.dx, row.score, row.peak_ratio))
        checked = ",," if verified == _NOT_VERIFIED else _written(_THREE, verified)
        behind = _written(_FOUR, (row.sigma_y, row.sigma_x, row.applied_dy, row.applied_dx))
        flags, remarks = (_quoted("|".join(words)) if words else "" for words in (row.flags, row.remarks))
        lines.append(f"{row.frame},{_name(row.source)},{row.page},{measured},{checked},{flags},{behind},{remarks}")
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
    if len(fields) != _WIDTH:
        raise ArgumentError(f"{len(fields)} fields in place of {_WIDTH}")
    frame, source, page, dy, dx, score, ratio, fft_dy, fft_dx, difference, flags, *behind, remarks = fields
    sigma_y, sigma_x, applied_dy, applied_dx = (float(field or _NAN) for field in behind)
    return FrameRow(
        int(frame),
        source[1:] if source.startswith("'") and _MARKED.match(source) else source,
        int(page),
        float(dy or _NAN),
        float(dx or _NAN),
        float(score or _NAN),
        float(ratio or _NAN),
        float(fft_dy) if fft_dy else None,
        float(fft_dx) if fft_dx else None,
        float(difference) if difference else None,
        tuple(flags.split("|")) if flags else (),
        sigma_y,
        sigma_x,
        applied_dy,
        applied_dx,
        tuple(remarks.split("|")) if remarks else (),
    )


@functools.lru_cache(maxsize=64)
def _name(source: str) -> str:
    return _quoted(f"'{source}" if _FORMULA.match(source) else source)


def _written(form: str, values: tuple[float | None, ...]) -> str:
    """Numbers between commas; all at once, where each is there and none is a negative zero."""
    if None not in values:
        text = form % values
        if "n" not in text and "-0.000000" not in text:
            return text
    return ",".join(map(_number, values))


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
