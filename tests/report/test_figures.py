"""Charts: valid SVG, the right marks, the same bytes, and nothing that upsets them."""

import math
import re
from collections.abc import Sequence
from xml.etree import ElementTree as ET

import pytest

from tests.report.builders import row, unread
from xcorr_app.report.figures import (
    error_chart,
    score_chart,
    shift_chart,
    trajectory_chart,
)
from xcorr_app.report.records import FrameRow
from xcorr_app.report.svg import WIDTH

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


def element(svg: str | None, kind: str) -> str:
    """The path of the marks of a kind, all of them one after the other; empty where there are none."""
    assert svg is not None
    found = [path.get("d", "") for path in ET.fromstring(svg).iter() if path.get("class") == kind]  # noqa: S314
    return "".join(found)


def marks(svg: str | None, kind: str) -> list[tuple[float, float]]:
    """Places of the marks of a kind."""
    return [(float(x), float(y)) for x, y in re.findall(r"M(\S+?) (-?[\d.]+)", element(svg, kind))]


def words(svg: str | None) -> list[str]:
    assert svg is not None
    return [text.text or "" for text in ET.fromstring(svg).iter() if text.tag == "text"]  # noqa: S314


def draw(rows: Sequence[FrameRow]) -> list[str | None]:
    return [
        trajectory_chart(rows, frozenset()),
        shift_chart(rows, (10.0, 12.0)),
        score_chart(rows),
        error_chart(rows),
    ]


@pytest.mark.parametrize("name", CASES)
def test_every_chart_draws_every_case(name: str) -> None:
    charts = draw(CASES[name])
    for svg in charts:
        assert svg is None or ET.fromstring(svg).tag == "svg"  # noqa: S314 (our own)
    drawn = [svg is not None for svg in charts]
    assert drawn == ([False, True, True, True] if name == "one column unknown" else [True] * 4)


def test_points_lie_where_their_axes_say() -> None:
    rows = tuple(row(frame, dy=2.0 * frame, dx=-1.0 * frame) for frame in range(4))
    places = marks(shift_chart(rows, (90.0, 90.0)), "dots")
    down, across = places[:4], places[4:]
    assert len(across) == 4
    assert [x for x, _ in down] == sorted(x for x, _ in down) == [x for x, _ in across]
    # Up on the page is a smaller y.
    assert [y for _, y in down] == sorted((y for _, y in down), reverse=True)
    assert math.isclose(across[3][1] - across[0][1], (down[0][1] - down[3][1]) / 2, abs_tol=0.2)
    # The trajectory goes down and to the left, as the image does.
    trajectory = marks(trajectory_chart(rows, frozenset()), "dots")
    assert [x for x, _ in trajectory] == sorted((x for x, _ in trajectory), reverse=True)
    assert [y for _, y in trajectory] == sorted(y for _, y in trajectory)


def test_a_frame_that_was_not_measured_is_a_gap_and_a_cross() -> None:
    rows = (row(0), row(1), unread(2), row(3), row(4))
    chart = shift_chart(rows, (9.0, 9.0))
    # Two lines in two parts each.
    assert (len(marks(chart, "cross")), len(marks(chart, "line")), "not measured" in words(chart)) == (1, 4 + 2, True)


def test_flagged_frames_get_marks_of_their_own() -> None:
    plain = tuple(row(frame, dy=float(frame % 3)) for frame in range(10))
    flagged = tuple(row(frame, dy=float(frame % 3), flags=("edge",) if frame < 4 else ()) for frame in range(10))
    # Two values a frame in the chart of shifts.
    for chart, rings in ((lambda rows: score_chart(rows), 4), (lambda rows: shift_chart(rows, (9.0, 9.0)), 8)):
        assert marks(chart(plain), "ring") == []
        assert len(marks(chart(flagged), "ring")) == rings


def test_a_remark_is_no_flag() -> None:
    plain, remarked = (tuple(row(frame, remarks=words) for frame in range(5)) for words in ((), ("low-score",)))
    assert draw(remarked) == draw(plain)
    doubtful = (*remarked[:4], row(4, flags=("edge",), remarks=("low-score",)))
    assert [len(marks(chart, "ring")) for chart in draw(doubtful)[:3]] == [1, 2, 1]


def test_the_legend_fits_the_width_of_a_chart():
    """With all that it can hold: both shifts, frames that are flagged, and the edge of the search window."""
    svg = shift_chart([row(frame, dy=9.0, dx=11.0, flags=("edge",)) for frame in range(3)], (12.0, 12.0))
    *_, (start, name) = re.findall(r'<g transform="translate\((\d+) \d+\)">.*?<text[^>]*>([^<]*)</text></g>', str(svg))
    assert name == "window"
    assert int(start) + 32 + 8 * len(name) <= WIDTH  # of letters as wide as browsers draw them without Arial
