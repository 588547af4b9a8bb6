"""What a run hands to people: the table of shifts, and one page that shows how far to trust it."""

from xcorr_app.report.html import render_report
from xcorr_app.report.pictures import Pictures, block_mean
from xcorr_app.report.records import FLAG_MEANINGS, FrameRow, RunReport, StackReport
from xcorr_app.report.summary import StackSummary, summarise, verdict
from xcorr_app.report.table import COLUMNS, parse_shifts_csv, shifts_csv

__all__ = [
    "COLUMNS",
    "FLAG_MEANINGS",
    "FrameRow",
    "Pictures",
    "RunReport",
    "StackReport",
    "StackSummary",
    "block_mean",
    "parse_shifts_csv",
    "render_report",
    "shifts_csv",
    "summarise",
    "verdict",
]
