"""What ``--resume`` keeps of an aligned stack: beside its table, the plain values and pictures of its report."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from xcorr_app.io.checksum import checksum_of
from xcorr_app.pipeline.state import State
from xcorr_app.registration.assessment import Assessment
from xcorr_app.report.pictures import Pictures
from xcorr_app.report.records import Bends, StackReport
from xcorr_app.report.table import parse_shifts_csv

_PICTURES = ".npz"


def keep(report: StackReport, out: Path) -> dict[str, Any]:
    """Store a report's pictures, and return the values that belong into the stack's record."""
    pictures = None
    if report.pictures is not None:
        path = State(out).attachment(report.name, _PICTURES)
        report.pictures.save(path)
        pictures = checksum_of(path).hexdigest()
    return {
        "report": {
            "description": report.description,
            "reference": report.reference,
            "max_shift": report.max_shift,
            "pixel_size": report.pixel_size,
            "unit": report.unit,
            "tolerance": report.tolerance,
            "notes": report.notes,
            "tiles": report.tiles and _without_nan(report.tiles),
            "bends": None if report.bends is None else report.bends.as_record(),
            "pictures": pictures,
            "assessment": None if report.assessment is None else report.assessment.as_record(),
            "interval": report.interval,
            "is_quick": report.is_quick,
            "left_out": report.left_out,
            "reference_frame": report.reference_frame,
            "advice": report.advice,
            "turns": report.turns and _without_nan(report.turns),
        }
    }


def restore(name: str, record: dict[str, Any], out: Path) -> StackReport | None:
    """Make the report of a stack from its record; None where that cannot be used, so that the stack is recomputed."""
    try:
        known = record["report"]
        path = State(out).attachment(name, _PICTURES)
        if known["pictures"] is not None and checksum_of(path).hexdigest() != known["pictures"]:
            return None
        return StackReport(
            name=name,
            description=known["description"],
            rows=parse_shifts_csv((out / name / "shifts.csv").read_text(encoding="utf-8")),
            pictures=Pictures.load(path) if known["pictures"] else None,
            reference=known["reference"],
            max_shift=tuple(known["max_shift"]),
            pixel_size=None if known["pixel_size"] is None else tuple(known["pixel_size"]),
            unit=known["unit"],
            tolerance=known["tolerance"],
            notes=tuple(known["notes"]),
            failure=None,
            assessment=None if known["assessment"] is None else Assessment.from_record(known["assessment"]),
            interval=None if known["interval"] is None else (known["interval"][0], known["interval"][1]),
            tiles=_with_nan(known["tiles"]),
            bends=None if known["bends"] is None else Bends.from_record(known["bends"]),
            is_quick=known["is_quick"],
            left_out=known["left_out"],
            reference_frame=known["reference_frame"],
            advice=known["advice"],
            turns=_turns(known["turns"]),
        )
    except (OSError, ValueError, LookupError, TypeError, AttributeError, OverflowError):
        return None


def _without_nan(table: tuple[tuple[float, ...], ...]) -> list[list[float | None]]:
    return [[None if math.isnan(value) else value for value in row] for row in table]


def _turns(kept: list[list[float | None]] | None) -> tuple[tuple[float, float], ...] | None:
    table = _with_nan(kept)
    return None if table is None else tuple((row[0], row[1]) for row in table)


def _with_nan(kept: list[list[float | None]] | None) -> tuple[tuple[float, ...], ...] | None:
    if kept is None:
        return None
    return tuple(tuple(math.nan if value is None else value for value in row) for row in kept)
