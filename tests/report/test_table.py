"""shifts.csv: exact text, and the way back."""

from __future__ import annotations

import csv
import io
import math
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.report.builders import NAN, row, unread
from xcorr_app.errors import DamagedFileError
from xcorr_app.registration.results.frame_table import COLUMNS, FrameRow, parse_shifts_csv, shifts_csv
from xcorr_app.report.records import FLAG_MEANINGS

HEADER = (
    "frame,source,page,dy,dx,score,peak_ratio,fft_dy,fft_dx,difference,flags,sigma_y,sigma_x,applied_dy,applied_dx,"
    "remarks,significance\n"
)


def test_text_is_exactly_this() -> None:
    rows = [
        row(0, dy=0.0, dx=-0.0, score=1.0, peak_ratio=math.inf, fft_dy=NAN, fft_dx=NAN, difference=NAN),
        row(1, dy=-1.23456789, dx=1e-9, score=0.5, fft_dy=-1.2, fft_dx=-4e-7, difference=0.25),
        unread(2),
        row(3, source='a "b", c.tif', flags=("edge", "uncertain"), sigma_x=math.inf, applied_dy=1.4, applied_dx=-0.7),
        row(4, remarks=("low-score",), significance=12.5),
    ]
    assert shifts_csv(rows) == HEADER + (
        "0,cells.tif,0,0.000000,0.000000,1.000000,inf,,,,,0.010000,0.020000,0.000000,0.000000,,\n"
        "1,cells.tif,1,-1.234568,0.000000,0.500000,2.500000,-1.200000,0.000000,0.250000,,0.010000,0.020000,-1.234568,0.000000,,\n"
        "2,cells.tif,2,,,,,,,,unreadable,,,0.000000,0.000000,,\n"
        '3,"a ""b"", c.tif",3,1.500000,-0.750000,0.950000,2.500000,1.500000,-0.749000,0.001000,edge|uncertain,'
        "0.010000,inf,1.400000,-0.700000,,\n"
        "4,cells.tif,4,2.000000,-1.000000,0.950000,2.500000,2.000000,-0.999000,0.001000,,0.010000,0.020000,2.000000,"
        "-1.000000,low-score,12.500000\n"
    )


def test_no_rows_is_a_header() -> None:
    assert shifts_csv([]) == HEADER == COLUMNS + "\n"
    assert parse_shifts_csv(HEADER) == ()


def test_names_that_are_not_text_can_be_written() -> None:
    text = shifts_csv([row(0, source="\udcffname.tif")])
    assert b"\\udcffname.tif" in text.encode("utf-8")


finite = st.floats(-1e6, 1e6)
measured = finite | st.just(math.nan)
names = st.text(st.characters(exclude_categories=["Cs"]))
flag_sets = st.lists(st.sampled_from(sorted(FLAG_MEANINGS)), unique=True).map(tuple)
frame_rows = st.builds(
    FrameRow,
    st.integers(0, 10**9),
    names,
    st.integers(0, 10**9),
    *[measured] * 7,
    flag_sets,
    *[measured] * 4,
    st.just(()),
    measured,
)


def same(left: Any, right: Any) -> bool:
    """Equal, but for what six decimals cannot hold."""
    if isinstance(left, float) and isinstance(right, float):
        return (math.isnan(left) and math.isnan(right)) or abs(left - right) <= 5.1e-7
    return bool(left == right)


anywhere = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""A busy machine is no fault of what is tested."""


@anywhere
@given(st.lists(frame_rows, max_size=4))
def test_round_trip(rows: list[FrameRow]) -> None:
    text = shifts_csv(rows)
    back = parse_shifts_csv(text)
    assert len(back) == len(rows)
    for read, written in zip(back, rows, strict=True):
        assert all(same(a, b) for a, b in zip(vars(read).values(), vars(written).values(), strict=True))
    assert shifts_csv(back) == text


@anywhere
@given(st.lists(frame_rows, min_size=1, max_size=3), st.data())
def test_text_that_breaks_off_never_reads_as_other_numbers(rows: list[FrameRow], data: st.DataObject) -> None:
    text = shifts_csv(rows)
    cut = text[: data.draw(st.integers(0, len(text) - 1))]
    try:
        read = parse_shifts_csv(cut)
    except DamagedFileError:
        return
    assert shifts_csv(read) == cut  # whole lines of it


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "breaks off"),
        ("frame,dy,dx\n0,1,2\n", "line 1"),
        (HEADER + "0,cells.tif,0,1.0\n", "line 2.*4 fields"),
        (HEADER + "0,cells.tif,0,one,0,0,0,0,0,0,,0,0,0,0,,\n", "line 2.*one"),
        (HEADER + '0,"cells.tif,0,1,0,0,0,0,0,0,\n', "line 2"),
        (HEADER + "0,cells.tif,0,1,0,0,0,0,0,0,edge||flat,0,0,0,0,,\n", "line 2.*flag"),
    ],
)
def test_other_text_is_refused(text: str, reason: str) -> None:
    with pytest.raises(DamagedFileError, match=reason):
        parse_shifts_csv(text)


@pytest.mark.parametrize(
    "name", ["=1+2.tif", "+a", "-b", "@c", "\td", "'=e", "''-f", "'g", "h=1", "=HYPERLINK(1,2)", "\r=x"]
)
def test_names_are_no_formulas(name: str) -> None:
    text = shifts_csv([row(0, source=name)])
    cell = list(csv.reader(io.StringIO(text, newline="")))[1][1]
    assert cell[0] not in "=+-@\t\r"
    assert parse_shifts_csv(text)[0].source == name
