"""Where the parts of a chart lie, compared with what its axes say: lines, marks, ticks, legends."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.report.drawn import Drawn, near
from xcorr_app.report.axes import Axis
from xcorr_app.report.svg import WIDE, Chart

X, Y = Axis(0, 10, "across"), Axis(-1, 4, "up")
LEFT, TOP, WIDTH, HEIGHT = WIDE


def across(x: float) -> float:
    return LEFT + x / 10 * WIDTH


def down(y: float) -> float:
    return TOP + (4 - y) / 5 * HEIGHT


def test_a_line_goes_through_its_points_and_stops_where_there_is_none() -> None:
    chart = Chart(X, Y)
    x, y = np.array([0.0, 2.5, 5.0, 7.5, 10.0]), np.array([-1.0, 4.0, np.nan, 1.5, 0.0])
    chart.line(x, y, "#123456", width=1.5, dash="2 1", name="values")
    drawn = Drawn(chart.svg())
    near(drawn.points("line"), [(across(a), down(b)) for a, b in zip(x, y, strict=True) if a != 5])
    (path,) = drawn.paths("line")
    assert re.sub(r"[-\d. ]+", " ", path.get("d", "")) == "M h L M h L "
    assert (path.get("stroke"), path.get("stroke-width"), path.get("stroke-dasharray")) == ("#123456", "1.5", "2 1")
    assert drawn.legend() == {"values": (LEFT + 6, TOP - 14)}


def test_marks_lie_on_their_points() -> None:
    chart = Chart(X, Y)
    x, y = np.array([1.0, 4.0, 6.0]), np.array([0.0, np.nan, 2.0])
    chart.dots(x, y, "#111111", 3.0)
    chart.rings(x, y, "rings", 4.0)
    chart.crosses(x, "crosses")
    chart.mark(3.0, 3.0, "m-1 -1h2v2h-2z", "mark")
    chart.level(2.0, "#222222", "level")
    chart.note("said")
    drawn = Drawn(chart.svg())
    seen = [(across(1), down(0)), (across(6), down(2))]
    near(drawn.points("dots"), seen)
    near(drawn.points("ring"), seen)
    near(drawn.points("cross"), [(across(a), down(-1)) for a in x])
    near(drawn.points("mark"), [(across(3), down(3))])
    near(drawn.points("line"), [(across(0), down(2)), (across(10), down(2))])
    (ring,) = drawn.paths("ring")
    assert "m4 0a4 4 0 1 1-8 0a4 4 0 1 1 8 0" in re.sub(r" (?=-)", "", ring.get("d", ""))
    assert ring.get("fill") == "none"
    assert drawn.paths("mark")[0].get("fill") == "#000"
    # Each name in its own place, after as much room as those before it take.
    expected, at = {}, LEFT + 6.0
    for name in ("rings", "crosses", "mark", "level", "said"):
        expected[name] = (round(at), TOP - 14)
        at += 46 + 6.6 * len(name)
    assert drawn.legend() == expected


@pytest.mark.parametrize(
    ("low", "high", "number", "expected"),
    [
        (0.0, 10.0, 7, ["0", "2", "4", "6", "8", "10"]),
        (0.0, 10.0, 12, ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10"]),
        (-0.3, 0.3, 3, ["−0.2", "0.0", "0.2"]),
        (0.0, 0.5, 5, ["0.0", "0.1", "0.2", "0.3", "0.4", "0.5"]),
        (1e6, 5e6, 4, ["1e+06", "2e+06", "3e+06", "4e+06", "5e+06"]),
        (0.0, 4e-4, 4, ["0", "0.0001", "0.0002", "0.0003", "0.0004"]),
        (0.0, 5e5, 5, ["0", "100000", "200000", "300000", "400000", "500000"]),
        (1e17, 1e17 + 32, 4, None),
    ],
)
def test_round_values(low: float, high: float, number: int, expected: list[str] | None) -> None:
    ticks = Axis(low, high, "").ticks(number)
    if expected is not None:
        assert [text for _, text in ticks] == expected
    assert len(ticks) <= 4 * number + 1
