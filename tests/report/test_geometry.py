"""Where the parts of a chart lie, compared with what its axes say: lines, marks, ticks, legends."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.report.drawn import Drawn, near
from xcorr_app.report.axes import Axis
from xcorr_app.report.svg import BETWEEN, SQUARE, WIDE, Chart, colour_of

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


def test_values_beside_the_axes() -> None:
    drawn = Drawn(Chart(X, Y).svg())
    near(list(drawn.above(TOP + HEIGHT + 17).values()), [across(x) for x in range(0, 11, 2)])
    assert list(drawn.above(TOP + HEIGHT + 17)) == ["0", "2", "4", "6", "8", "10"]
    heights = drawn.beside(LEFT - 7)
    assert list(heights) == ["−1", "0", "1", "2", "3", "4"]
    near(list(heights.values()), [down(y) + 4 for y in range(-1, 5)])
    assert drawn.place("across") == (LEFT + WIDTH / 2, TOP + HEIGHT + 38)
    assert drawn.turned() == {"up": (16, TOP + HEIGHT / 2)}
    lines = next(each.get("d", "") for each in drawn.root.iter() if each.get("stroke") == "#e4e4e4")
    near([float(x) for x in re.findall(rf"M([\d.]+) {TOP}v{HEIGHT}", lines)], [across(x) for x in range(0, 11, 2)])
    near([float(y) for y in re.findall(rf"M{LEFT} ([\d.]+)h{WIDTH}", lines)], [down(y) for y in range(-1, 5)])
    turned = Drawn(Chart(X, Y, downwards=True).svg()).beside(LEFT - 7)
    near(list(turned.values()), [TOP + (y + 1) / 5 * HEIGHT + 4 for y in range(-1, 5)])
    assert drawn.root.get("viewBox") == "0 0 520 340"
    within = next(each for each in drawn.root.iter() if each.tag.endswith("}clipPath"))[0]
    near([within.get(k) for k in ("x", "y", "width", "height")], (LEFT - 6, TOP - 6, WIDTH + 12, HEIGHT + 12))


@pytest.mark.parametrize("downwards", [False, True])
def test_a_second_axis_lies_as_the_first_does(downwards: bool) -> None:
    chart = Chart(X, Y, BETWEEN, downwards=downwards)
    chart.second_axis("y", Y.in_units(0.5, "µm"))
    chart.second_axis("x", X.in_units(3.0, "s"))
    chart.note("said")
    drawn = Drawn(chart.svg())
    left, top, width, height = BETWEEN
    heights = drawn.beside(left + width + 6)
    assert list(heights) == ["−0.5", "0.0", "0.5", "1.0", "1.5", "2.0"]
    shares = np.arange(6) / 5
    near(list(heights.values()), top + (shares if downwards else 1 - shares) * height + 4)
    places = {text: x for text, x in drawn.above(top - 5).items() if text != "s"}
    assert list(places) == ["0", "5", "10", "15", "20", "25", "30"]
    near(list(places.values()), [left + k / 6 * width for k in range(7)])
    assert drawn.place("s") == (left + width + 12, top - 5)
    assert drawn.turned()["µm"] == (left + width + 52, top + height / 2)
    assert drawn.legend() == {"said": (left + 6, top - 24)}


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


def test_dots_are_coloured_by_their_order() -> None:
    chart = Chart(X, Y)
    order = np.array([5.0, 7.0, 15.0])
    chart.coloured_dots(np.array([1.0, 2.0, 3.0]), np.array([0.0, 1.0, 2.0]), order, 4)
    drawn = Drawn(chart.svg())
    groups = np.rint((order - 5) / 10 * 31)
    assert [each.get("stroke") for each in drawn.paths("dots")] == [colour_of(0.85 * g / 31) for g in groups]
    assert {each.get("stroke-width") for each in drawn.paths("dots")} == {"4"}
    near(drawn.points("dots"), [(across(k), down(k - 1)) for k in (1, 2, 3)])
    # Frames are whole numbers.
    heights = drawn.beside(448)
    assert list(heights) == ["6", "8", "10", "12", "14"]
    near(list(heights.values()), [48 + (15 - k) / 10 * 234 + 4 for k in range(6, 15, 2)])
    assert drawn.turned()["frame"] == (422, 165)
    near_frames = Chart(X, Y)
    near_frames.coloured_dots(np.array([1.0, 2.0]), np.zeros(2), np.array([0.0, 2.0]), 4)
    assert list(Drawn(near_frames.svg()).beside(448)) == ["0", "1", "2"]
    one = Chart(X, Y)
    one.coloured_dots(np.array([1.0, 2.0]), np.zeros(2), np.array([3.0, 3.0]), 4)
    assert "frame" not in Drawn(one.svg()).turned()
    assert [each.get("stroke") for each in Drawn(one.svg()).paths("dots")] == [colour_of(0)]


def test_far_outside_points_stay_within_numbers_that_can_be_drawn() -> None:
    chart = Chart(X, Y)
    chart.line(np.array([-1e9, 1e9]), np.array([1e9, -1e9]), "#000000", width=1)
    near(
        Drawn(chart.svg()).points("line"),
        [(LEFT - 10 * WIDTH, TOP - 10 * HEIGHT), (LEFT + 11 * WIDTH, TOP + 11 * HEIGHT)],
    )


def test_of_more_marks_than_there_is_room_for_one_in_two_pixels_is_drawn() -> None:
    chart = Chart(Axis(0, 1000, ""), Y, points=120)
    x = np.linspace(0, 1000, 5001)
    chart.dots(x, np.zeros(x.size), "#000000", 1)
    found = np.array(Drawn(chart.svg()).points("dots"))
    assert 40 <= len(found) <= 50
    assert np.ptp(found[:, 0]) > 0.95 * WIDTH
    upright = Chart(X, Y, points=120)
    upright.dots(np.full(5001, 5.0), np.linspace(0, 0.4, 5001), "#000000", 1)
    assert 10 <= len(Drawn(upright.svg()).points("dots")) <= 12  # of 20 pixels
    few = Chart(Axis(0, 1000, ""), Y, points=120)
    few.dots(x[:50], np.zeros(50), "#000000", 1)
    assert len(Drawn(few.svg()).points("dots")) == 50


def test_of_more_points_than_there_is_room_for_a_line_keeps_both_ends_and_gaps() -> None:
    y = np.sin(np.arange(1000.0))
    y[317], y[742], y[500:503] = 3.9, -2.5, np.nan
    chart = Chart(Axis(0, 1000, ""), Y, points=100)
    chart.line(np.arange(1000.0), y, "#000000", width=1)
    drawn = Drawn(chart.svg())
    found = np.array(drawn.points("line"))
    assert 80 <= len(found) <= 100
    for at in (317, 742):
        assert np.abs(found - (LEFT + at / 1000 * WIDTH, down(y[at]))).max(axis=1).min() < 0.06
    assert (np.diff(found[:, 0]) >= 0).all()
    assert drawn.paths("line")[0].get("d", "").count("M") == 2
    exact = Chart(Axis(0, 1000, ""), Y, points=100)
    exact.line(np.arange(100.0), y[:100], "#000000", width=1)
    assert len(Drawn(exact.svg()).points("line")) == 100


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


def test_whole_values_and_decades() -> None:
    assert [text for _, text in Axis(0, 2.5, "", whole=True).ticks()] == ["0", "1", "2"]
    assert [text for _, text in Axis(1e-6, 1e6, "", is_log=True).ticks(4)] == ["10⁻⁶", "10⁻³", "1", "1000", "10⁶"]
    assert [text for _, text in Axis(1e-3, 1e5, "", is_log=True).ticks(9)] == [
        "10⁻³", "0.01", "0.1", "1", "10", "100", "1000", "10000", "10⁵"
    ]  # fmt: skip
