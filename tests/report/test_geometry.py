"""Where the parts of a chart lie, compared with what its axes say: lines, marks, ticks, legends."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.report.drawn import Drawn, near
from xcorr_app.report.axes import Axis
from xcorr_app.report.svg import SQUARE, WIDE, Chart, colour_of

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


def test_tiles_fill_their_rectangles() -> None:
    chart = Chart(X, Y)
    chart.tile(2, 1, "#abcdef")
    chart.tile(0, -1, "#fedcba", (5.0, 2.5))
    downwards = Chart(X, Y, downwards=True)
    downwards.tile(2, 1, "#abcdef", (3.0, 2.0))
    found = Drawn(downwards.svg()).tiles()
    near(found[0][0], (across(2), TOP + 2 / 5 * HEIGHT, 3 / 10 * WIDTH, 2 / 5 * HEIGHT))
    assert found[0][1] == "#abcdef"
    assert [colour for _, colour in Drawn(chart.svg()).tiles()] == ["#abcdef", "#fedcba"]
    near(Drawn(chart.svg()).tiles()[0][0], (across(2), down(1), WIDTH / 10, -HEIGHT / 5))


def test_a_colour_bar_says_which_values_its_colours_are() -> None:
    chart = Chart(X, Y, SQUARE)
    chart.colour_bar(Axis(0, 2, "size"), 0.5)
    drawn = Drawn(chart.svg())
    heights = drawn.beside(430 + 13 + 5)
    assert list(heights) == ["0.0", "0.5", "1.0", "1.5", "2.0"]
    near(list(heights.values()), [48 + (1 - k / 4) * 234 + 4 for k in range(5)])
    assert drawn.turned()["size"] == (422, 48 + 117)
    stops = [(float(each.get("offset", 0)), each.get("stop-color")) for each in drawn.root.iter() if each.get("offset")]
    assert stops == [(k / 8, colour_of(0.5 * k / 8)) for k in range(9)]
    gradient = next(each for each in drawn.root.iter() if each.get("id") == "g")
    assert [gradient.get(k) for k in ("x1", "x2", "y1", "y2")] == ["0", "0", "1", "0"]
    bar = next(each for each in drawn.root.iter() if each.get("fill") == "url(#g)")
    assert [bar.get(k) for k in ("x", "y", "width", "height")] == ["430", "48", "13", "234"]


def test_colours_go_from_violet_to_yellow() -> None:
    assert [colour_of(k / 8) for k in range(9)] == [
        "#440154", "#472d7b", "#3b528b", "#2c728e", "#21918c", "#28ae80", "#5ec962", "#addc30", "#fde725"
    ]  # fmt: skip
    assert colour_of(1 / 16) == "#461768"
    assert (colour_of(-1), colour_of(2)) == (colour_of(0), colour_of(1))


def test_far_outside_points_stay_within_numbers_that_can_be_drawn() -> None:
    chart = Chart(X, Y)
    chart.line(np.array([-1e9, 1e9]), np.array([1e9, -1e9]), "#000000", width=1)
    near(
        Drawn(chart.svg()).points("line"),
        [(LEFT - 10 * WIDTH, TOP - 10 * HEIGHT), (LEFT + 11 * WIDTH, TOP + 11 * HEIGHT)],
    )


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
