"""Charts: valid SVG, the right marks, the same bytes, and nothing that upsets them."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from xml.etree import ElementTree as ET

import matplotlib as mpl
import numpy as np
import pytest

from tests.report.builders import row, unread
from xcorr_app.report.figures import (
    Units,
    agreement_chart,
    error_chart,
    score_chart,
    shift_chart,
    tiles_chart,
    trajectory_chart,
)
from xcorr_app.report.records import FrameRow

CASES = {
    "one frame": (row(0, dy=0.0, dx=0.0),),
    "two equal frames": (row(0, dy=0.0, dx=0.0), row(1, dy=0.0, dx=0.0)),
    "drift": tuple(row(frame) for frame in range(30)),
    "flags": (row(0), row(1, dy=9.0, flags=("edge",)), unread(2), row(3, flags=("disagrees",), difference=0.5)),
    "far away": (row(0, dy=1e9, dx=-1e9, score=-1e12), row(1, dy=0.0, score=1e12)),
    "no difference": tuple(row(frame, difference=0.0) for frame in range(3)),
    "infinite": (row(0, dy=math.inf), row(1, score=math.inf, difference=math.inf), row(2)),
    "one column unknown": (row(0, dx=math.nan), row(1, dx=math.nan)),
    "many frames": tuple(row(frame, flags=("edge",) if frame % 9 == 0 else ()) for frame in range(900)),
}


def marks(svg: bytes) -> int:
    """How many marks are drawn, those of ticks and legend included; letters are other elements."""
    reference = "{http://www.w3.org/1999/xlink}href"
    return sum(element.get(reference, "").startswith("#m") for element in ET.fromstring(svg).iter())  # noqa: S314


def draw(rows: Sequence[FrameRow]) -> list[bytes | None]:
    return [
        trajectory_chart(rows, frozenset()),
        shift_chart(rows, (10.0, 12.0)),
        score_chart(rows),
        agreement_chart(rows, 0.01),
        error_chart(rows),
    ]


@pytest.mark.parametrize("name", CASES)
def test_every_chart_draws_every_case(name: str) -> None:
    charts = draw(CASES[name])
    for svg in charts:
        assert svg is None or ET.fromstring(svg).tag.endswith("}svg")  # noqa: S314 (our own)
    drawn = [svg is not None for svg in charts]
    assert drawn == ([False, True, True, True, True] if name == "one column unknown" else [True] * 5)


@pytest.mark.parametrize("name", ["flags", "many frames"])
def test_same_rows_same_bytes_whatever_the_settings(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first = draw(CASES[name])
    monkeypatch.setattr(time, "time", lambda: 2e9)
    with mpl.rc_context({"font.size": 30, "lines.linewidth": 9, "svg.hashsalt": None}):
        assert draw(CASES[name]) == first


def test_nothing_measured_is_no_chart() -> None:
    rows = (unread(0), unread(1))
    assert trajectory_chart(rows, frozenset({0, 1})) is None
    assert shift_chart(rows, (8.0, 8.0)) is None
    assert score_chart(rows) is None
    assert agreement_chart(rows, 0.01) is None
    assert error_chart(rows) is None


def letters(svg: bytes | None) -> int:
    """How many letters and digits are drawn: one outline each, used by reference."""
    assert svg is not None
    reference = "{http://www.w3.org/1999/xlink}href"
    return sum(not element.get(reference, "#m").startswith("#m") for element in ET.fromstring(svg).iter())  # noqa: S314


def test_physical_axes_are_drawn_where_they_are_known() -> None:
    rows = CASES["drift"]
    plain = shift_chart(rows, (9.0, 9.0), Units())
    pixel, both = Units((0.25, "µm")), Units((0.25, "µm"), (2.0, "s"))
    assert letters(plain) < letters(shift_chart(rows, (9.0, 9.0), pixel)) < letters(shift_chart(rows, (9.0, 9.0), both))
    assert letters(trajectory_chart(rows, frozenset())) < letters(trajectory_chart(rows, frozenset(), both))
    for senseless in (0.0, -1.0, math.nan, math.inf):
        assert shift_chart(rows, (9.0, 9.0), Units((senseless, "µm"), (senseless, "s"))) == plain


def test_settings_of_the_caller_are_left_alone() -> None:
    before = dict(mpl.rcParams)
    shift_chart(CASES["drift"], (8.0, 8.0))
    assert dict(mpl.rcParams) == before


def test_flagged_frames_get_marks_of_their_own() -> None:
    plain = tuple(row(frame, dy=float(frame % 3)) for frame in range(10))
    flagged = tuple(row(frame, dy=float(frame % 3), flags=("edge",) if frame < 4 else ()) for frame in range(10))
    # A ring for each of four frames and one in the legend; two values a frame in the chart of shifts.
    for chart, rings in ((lambda rows: score_chart(rows), 4), (lambda rows: shift_chart(rows, (9.0, 9.0)), 8)):
        before, after = chart(plain), chart(flagged)
        assert before is not None
        assert after is not None
        assert marks(after) - marks(before) == rings + 1


def test_frames_not_moved_as_measured_do_not_set_the_view() -> None:
    rows = (*(row(frame) for frame in range(5)), row(5, dy=500.0, flags=("low-score",)))
    kept, seen = trajectory_chart(rows, frozenset({5})), trajectory_chart(rows, frozenset())
    assert kept != seen


def test_applied_shifts_are_drawn_where_they_are_not_those_measured() -> None:
    plain = tuple(row(frame) for frame in range(5))
    held = (*plain[:4], row(4, applied_dy=0.0))
    assert shift_chart(plain, (9.0, 9.0)) != shift_chart(held, (9.0, 9.0))


def test_disagreement_is_marked() -> None:
    rows: tuple[FrameRow, ...] = tuple(row(frame) for frame in range(5))
    beyond = (*rows[:4], row(4, flags=("disagrees",)))
    plain, marked = agreement_chart(rows, 0.01), agreement_chart(beyond, 0.01)
    assert plain is not None
    assert marked is not None
    assert marks(marked) == marks(plain) + 2  # the frame's ring and the legend's


def test_long_stacks_stay_small() -> None:
    random = np.random.default_rng(5)
    dy, dx = np.cumsum(random.normal(0, 0.05, (2, 10_000)), axis=1)
    score, difference = random.normal(0.9, 0.01, 10_000), 10 ** random.normal(-4, 0.3, 10_000)
    rows = [
        row(frame, dy=dy[frame], dx=dx[frame], score=score[frame], difference=difference[frame])
        for frame in range(10_000)
    ]
    for svg in draw(rows):
        assert svg is not None
        assert len(svg) < 120_000  # as lines and marks of their own: megabytes


def test_tiles_are_drawn_where_any_can_tell() -> None:
    some = ((0.0, 1.0, math.nan), (0.5, 0.25, 0.0))
    chart = tiles_chart(some)
    assert chart is not None
    assert ET.fromstring(chart).tag.endswith("svg")  # noqa: S314
    assert chart == tiles_chart(some) != tiles_chart(((0.0, 0.0, math.nan), (0.5, 0.25, 0.0)))
    assert tiles_chart(((math.nan, math.nan),)) is None
    assert tiles_chart(()) is None
