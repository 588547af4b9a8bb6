"""Where the parts of a chart lie, compared with what their axes say."""

from __future__ import annotations

import dataclasses
import math
import re
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from tests.report.builders import row, unread
from xcorr_app.report.axes import Axis
from xcorr_app.report.figures import (
    Units,
    agreement_chart,
    bends_chart,
    error_chart,
    score_chart,
    shift_chart,
    tiles_chart,
    trajectory_chart,
)
from xcorr_app.report.records import Bends
from xcorr_app.report.svg import BETWEEN, SQUARE, WIDE, Chart, colour_of

X, Y = Axis(0, 10, "across"), Axis(-1, 4, "up")
LEFT, TOP, WIDTH, HEIGHT = WIDE


class Drawn:
    """A chart that was read again."""

    def __init__(self, svg: bytes | None) -> None:
        assert svg is not None
        self.root = ET.fromstring(svg)  # noqa: S314 (our own)

    def paths(self, kind: str) -> list[ET.Element]:
        return [each for each in self.root.iter() if each.get("class") == kind]

    def points(self, kind: str) -> list[list[float]]:
        """Places of a kind, in the order in which they are drawn."""
        text = "".join(each.get("d", "") for each in self.paths(kind))
        return [[float(x), float(y)] for x, y in re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", text)]

    def texts(self) -> list[tuple[str, float, float]]:
        """What is written upright, and where."""
        found = [each for each in self.root.iter() if each.tag.endswith("}text") and each.get("x")]
        return [(each.text or "", float(each.get("x", 0)), float(each.get("y", 0))) for each in found]

    def place(self, text: str) -> tuple[float, float]:
        return next((x, y) for found, x, y in self.texts() if found == text)

    def beside(self, x: float) -> dict[str, float]:
        """Height of what is written at a place across."""
        return {text: y for text, at, y in self.texts() if abs(at - x) < 0.06}

    def above(self, y: float) -> dict[str, float]:
        """Place of what is written at a height."""
        return {text: x for text, x, at in self.texts() if abs(at - y) < 0.06}

    def turned(self) -> dict[str, tuple[float, float]]:
        """Places of what is written along an axis that stands."""
        found = {}
        for each in self.root.iter():
            place = re.match(r"translate\((\S+) (\S+)\) rotate\(-90\)", each.get("transform", ""))
            if place:
                found[each.text or ""] = (float(place[1]), float(place[2]))
        return found

    def tiles(self) -> list[tuple[list[float], str]]:
        return [([float(each.get(k, "nan")) for k in ("x", "y", "width", "height")], each.get("fill", ""))
                for each in self.paths("tile")]  # fmt: skip

    def legend(self) -> dict[str, tuple[float, float]]:
        found = {}
        for group in self.root.iter():
            place = re.fullmatch(r"translate\((\S+) (\S+)\)", group.get("transform", ""))
            if place:
                name = next(each.text or "" for each in group.iter() if each.tag.endswith("}text"))
                found[name] = (float(place[1]), float(place[2]))
        return found


def near(found: Any, expected: Any, within: float = 0.06) -> None:
    np.testing.assert_allclose(np.array(found, dtype=float), np.array(expected, dtype=float), atol=within)


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


ROWS = tuple(row(t, dy=0.4 * t, dx=-1.0 * t) for t in range(5))
"""Rows from 0 to 1.6 and columns from 0 to -4."""


def framed(frames: float, box: Any = WIDE) -> Any:
    """Place of frames, with half a frame on each side."""
    return lambda frame: box[0] + (frame + 0.5) / frames * box[2]


def spanned(low: float, high: float, box: Any = WIDE) -> Any:
    half, middle = 0.55 * max(high - low, 0.5), (low + high) / 2
    return lambda value: box[1] + (middle + half - value) / (2 * half) * box[3]


def test_the_way_of_a_scene_lies_in_a_square() -> None:
    drawn = Drawn(trajectory_chart(ROWS, frozenset()))
    left, top, side, _ = SQUARE
    half = 0.56 * 4

    def place(r: Any) -> tuple[float, float]:
        return left + (r.dx + 2 + half) / (2 * half) * side, top + (r.dy - 0.8 + half) / (2 * half) * side

    near(drawn.points("line"), [place(r) for r in ROWS])
    near(drawn.points("dots"), [place(r) for r in ROWS])
    near(drawn.points("mark"), [place(ROWS[0]), place(ROWS[-1])])
    assert list(drawn.legend()) == ["start", "end"]
    assert {each.get("stroke-width") for each in drawn.paths("dots")} == {"6"}
    heights = drawn.beside(left - 7)
    near(
        list(heights.values()),
        [top + (float(t.replace("−", "-")) - 0.8 + half) / (2 * half) * side + 4 for t in heights],
    )
    assert drawn.turned()["dy (pixels, downwards)"] == (16, top + side / 2)
    assert drawn.place("dx (pixels, to the right)") == (left + side / 2, top + side + 38)


def test_a_scene_that_stands_still_is_a_point_in_half_a_pixel() -> None:
    drawn = Drawn(trajectory_chart(tuple(row(t, dy=1.0, dx=2.0) for t in range(3)), frozenset()))
    left, top, side, _ = SQUARE
    near(drawn.points("line"), [(left + side / 2, top + side / 2)] * 3)
    labels = [float(text) for text in drawn.beside(left - 7)]
    assert 0.72 <= min(labels) < max(labels) <= 1.28


def test_frames_that_are_not_moved_as_measured_are_rings_or_a_note() -> None:
    rows = (*ROWS, row(5, dy=1.0, dx=-2.0, flags=("edge",)), row(6, dy=50.0, dx=0.0, flags=("edge",)))
    drawn = Drawn(trajectory_chart(rows, frozenset({5, 6})))
    left, top, side, _ = SQUARE
    near(drawn.points("ring"), [(left + side / 2, top + (0.2 + 2.24) / 4.48 * side)])
    assert len(drawn.points("line")) == 5
    assert list(drawn.legend()) == ["flagged", "1 flagged beyond this view", "start", "end"]
    inside = Drawn(trajectory_chart(rows[:-1], frozenset({5})))
    assert list(inside.legend()) == ["flagged", "start", "end"]
    outside = Drawn(trajectory_chart((*ROWS, rows[-1]), frozenset({6})))
    assert list(outside.legend()) == ["1 flagged beyond this view", "start", "end"]
    aside = Drawn(trajectory_chart((*ROWS, row(5, dy=0.0, dx=99.0, flags=("edge",))), frozenset({5})))
    assert list(aside.legend()) == ["1 flagged beyond this view", "start", "end"]


def test_shifts_by_frame() -> None:
    drawn = Drawn(shift_chart((*ROWS, unread(5)), (100.0, 100.0)))
    x, y = framed(6), spanned(-4, 1.6)
    measured = [(x(r.frame), y(r.dy)) for r in ROWS] + [(x(r.frame), y(r.dx)) for r in ROWS]
    near(drawn.points("line")[:10], measured)
    near(drawn.points("dots"), measured)
    near(drawn.points("cross"), [(x(5), TOP + HEIGHT)])
    assert [each.get("stroke-dasharray") for each in drawn.paths("line")[:2]] == [None, "6 3"]
    assert list(drawn.legend()) == ["dy (rows)", "dx (columns)", "not measured"]
    assert list(drawn.above(TOP + HEIGHT + 17)) == ["0", "1", "2", "3", "4", "5"]


def test_the_edges_of_the_window_are_drawn_where_shifts_come_near() -> None:
    def levels(window: tuple[float, float]) -> list[tuple[str | None, list[float]]]:
        drawn = Drawn(shift_chart(ROWS, window))
        heights = re.compile(r" (-?[\d.]+)(?=h|L|$)")
        lines = drawn.paths("line")[2:]
        return [(line.get("stroke"), [float(y) for y in heights.findall(line.get("d", ""))]) for line in lines]

    assert levels((2.4, 5.8)) == []  # 1.6 and 4 are just below 0.7 of them
    (low, high) = levels((2.2, 100.0))
    assert low[0] == high[0] == "#0072B2"
    y = spanned(-4, 2.2)
    near([low[1][0], high[1][0]], [y(-2.2), y(2.2)])
    (low, high) = levels((100.0, 5.0))
    assert low[0] == high[0] == "#D55E00"
    y = spanned(-5, 5)
    near([low[1][0], high[1][0]], [y(-5), y(5)])
    assert levels((0.0, 0.0)) == []


def test_applied_and_flagged_shifts_by_frame() -> None:
    rows = (*ROWS[:4], row(4, dy=9.0, dx=3.0, applied_dy=1.2, applied_dx=-3.5, flags=("edge",)))
    drawn = Drawn(shift_chart(rows, (100.0, 100.0)))
    x, y = framed(5), spanned(-3.5, 9.0)
    near(drawn.points("ring"), [(x(4), y(9.0)), (x(4), y(3.0))])
    applied = [(x(r.frame), y(r.applied_dy)) for r in rows] + [(x(r.frame), y(r.applied_dx)) for r in rows]
    near(drawn.points("line")[10:], applied)
    assert [each.get("stroke-dasharray") for each in drawn.paths("line")[2:]] == ["1.5 3"] * 2


def test_shifts_in_units_have_axes_of_their_own() -> None:
    drawn = Drawn(shift_chart(ROWS, (100.0, 100.0), Units((0.5, "µm"), (2.0, "s"))))
    left, top, width, _height = BETWEEN
    x, y = framed(5, BETWEEN), spanned(-4, 1.6, BETWEEN)
    near(drawn.points("line")[:5], [(x(r.frame), y(r.dy)) for r in ROWS])
    heights = drawn.beside(left + width + 6)
    near(list(heights.values()), [y(float(t.replace("−", "-")) / 0.5) + 4 for t in heights])
    places = {text: at for text, at in drawn.above(top - 5).items() if text != "s"}
    near(list(places.values()), [x(float(t.replace("−", "-")) / 2.0) for t in places])
    assert len(heights) > 3
    assert len(places) > 3
    only = Drawn(shift_chart(ROWS, (100.0, 100.0), Units(interval=(2.0, "s"))))
    assert not only.beside(left + width + 6)
    square = Drawn(trajectory_chart(ROWS, frozenset(), Units((0.5, "µm"))))
    heights = square.beside(SQUARE[0] + SQUARE[2] + 6)
    near(
        list(heights.values()), [40 + (float(t.replace("−", "-")) / 0.5 - 0.8 + 2.24) / 4.48 * 250 + 4 for t in heights]
    )


def test_scores_by_frame() -> None:
    rows = tuple(row(t, score=score, flags=("edge",) if t == 1 else ()) for t, score in enumerate((0.9, 0.55, 0.8)))
    drawn = Drawn(score_chart((*rows, unread(3))))
    x, top = framed(4), 1 + 0.03 * 0.5

    def y(score: float) -> float:
        return TOP + (top - score) / (top - 0.5) * HEIGHT

    near(drawn.points("line"), [(x(r.frame), y(r.score)) for r in rows])
    near(drawn.points("ring"), [(x(1), y(0.55))])
    near(drawn.points("cross"), [(x(3), TOP + HEIGHT)])
    # What is no correlation has an axis of its own.
    for scores in ((2.0, 7.0), (-5.0, 0.5), (0.5, 7.0)):
        plain = Drawn(score_chart([row(t, score=score) for t, score in enumerate(scores)]))
        y_plain = spanned(*scores)
        near(plain.points("line"), [(framed(2)(t), y_plain(score)) for t, score in enumerate(scores)])


def decade(low: float, high: float) -> Any:
    return lambda value: TOP + math.log10(high / value) / math.log10(high / low) * HEIGHT


def test_errors_by_frame() -> None:
    rows = [row(t, sigma_y=sigma, sigma_x=2 * sigma) for t, sigma in enumerate((0.0, 0.02, 0.03, 0.3))]
    rows[3] = dataclasses.replace(rows[3], flags=("uncertain",))
    rows.append(row(4, sigma_y=1e-5, sigma_x=0.03, flags=("edge",)))
    drawn = Drawn(error_chart(rows))
    known = np.array([0.02, 0.03, 0.3, 1e-5, 0.04, 0.06, 0.6, 0.03])
    low = 10 ** math.floor(math.log10(max(1e-5, float(np.median(known)) / 30)) - 0.05)
    assert low == 1e-3
    x, y = framed(5), decade(low, 1.0)
    sigma_y = [(x(t), y(v)) for t, v in ((1, 0.02), (2, 0.03), (3, 0.3), (4, 1e-5))]
    sigma_x = [(x(t), y(v)) for t, v in ((1, 0.04), (2, 0.06), (3, 0.6), (4, 0.03))]
    near(drawn.points("line"), sigma_y + sigma_x)
    near(drawn.points("ring"), [(x(3), y(0.6))])
    heights = drawn.beside(LEFT - 7)
    assert list(heights) == ["10⁻³", "0.01", "0.1", "1"]
    near(list(heights.values()), [TOP + (1 - k / 3) * HEIGHT + 4 for k in range(4)])
    # The few that have next to no error and the few that have much do not decide where the axis begins.
    uneven = [row(t, sigma_y=sigma, sigma_x=sigma) for t, sigma in enumerate((1e-5, 0.02, 0.02, 40.0))]
    assert next(iter(Drawn(error_chart(uneven)).beside(LEFT - 7))) == "10⁻⁴"
    # The ends leave room for what lies near to a power of ten.
    ends = Drawn(error_chart([row(t, sigma_y=0.01, sigma_x=0.1) for t in range(2)])).beside(LEFT - 7)
    assert list(ends) == ["10⁻³", "0.01", "0.1", "1"]
    assert error_chart([row(0, sigma_y=0.0, sigma_x=0.1)]) is None


def test_differences_by_frame() -> None:
    rows = [row(t, difference=value) for t, value in enumerate((0.002, 0.0, 0.02))]
    rows[2] = dataclasses.replace(rows[2], flags=("disagrees",))
    rows.append(row(3, difference=None, flags=("disagrees",)))
    drawn = Drawn(agreement_chart(rows, 0.01))
    floor = 10.0 ** (math.floor(math.log10(0.002)) - 1)
    x, y = framed(4), decade(0.7 * floor, 0.08)
    near(drawn.points("dots"), [(x(0), y(0.002)), (x(1), y(floor)), (x(2), y(0.02))])
    near(drawn.points("ring"), [(x(2), y(0.02))])
    near([point[1] for point in drawn.points("line")], [y(floor)] * 2 + [y(0.01)] * 2)
    assert list(drawn.legend()) == ["≤ 1e-04 px", "tolerance", "flagged"]
    plain = Drawn(agreement_chart(rows[:1], 0.0))
    near(plain.points("dots"), [(framed(1)(0), decade(0.7 * floor, 0.008)(0.002))])
    assert plain.legend() == {}
    nothing = Drawn(agreement_chart([row(0, difference=0.0)], 0.0))
    near(nothing.points("dots"), [(framed(1)(0), decade(0.07, 4.0)(0.1))])
    tiny = Drawn(agreement_chart([row(0, difference=1e-15)], 0.0))
    assert list(tiny.legend()) == ["≤ 1e-10 px"]


def test_tiles_lie_as_in_the_picture() -> None:
    drawn = Drawn(tiles_chart(((0.0, 1.0, math.nan), (0.5, 0.25, 0.0))))
    left, top, side, _ = SQUARE
    one = side / 3
    places = [(left + j * one, top + i * one, one, one) for i in range(2) for j in range(3)]
    near([place for place, _ in drawn.tiles()], places, 0.11)
    expected = [colour_of(0.0), colour_of(1.0), "#e4e4e4", colour_of(0.5), colour_of(0.25), colour_of(0.0)]
    assert [colour for _, colour in drawn.tiles()] == expected
    assert list(drawn.above(top + 2 * one + 17)) == ["0", "1", "2", "3"]
    heights = drawn.beside(left - 7)
    assert list(heights) == ["0", "1", "2"]
    near(list(heights.values()), [top + i * one + 4 for i in range(3)])
    assert list(drawn.beside(448))[:2] == ["0.0", "0.2"]
    assert tiles_chart(((math.nan, 0.5),)) is not None


def bends(rows: Any, columns: Any, seed: int = 0) -> Bends:
    rng = np.random.default_rng(seed)
    arrows = rng.normal(size=(len(rows), len(columns), 2))
    size = rng.uniform(0.5, 2, (len(rows), len(columns)))
    return Bends(
        rows=tuple(rows),
        columns=tuple(columns),
        frame=7,
        arrows=tuple(tuple((float(a), float(b)) for a, b in line) for line in arrows),
        size=tuple(tuple(float(value) for value in line) for line in size),
    )


def test_bends_are_tiles_around_nodes_and_arrows_from_them() -> None:
    rows, columns = (3.0, 10.0, 24.0), (5.0, 15.0, 35.0, 65.0)
    given = bends(rows, columns)
    drawn = Drawn(bends_chart(given))
    left, top, side, _ = SQUARE
    scale = side / 60
    edges_y, edges_x = (3.0, 6.5, 17.0, 24.0), (5.0, 10.0, 25.0, 50.0, 65.0)
    expected = [
        (left + (edges_x[j] - 5) * scale, top + (edges_y[i] - 3) * scale,
         (edges_x[j + 1] - edges_x[j]) * scale, (edges_y[i + 1] - edges_y[i]) * scale)
        for i in range(3) for j in range(4)
    ]  # fmt: skip
    near([place for place, _ in drawn.tiles()], expected, 0.11)
    size = np.array(given.size)
    assert [colour for _, colour in drawn.tiles()] == [colour_of(float(v / size.max())) for v in size.ravel()]
    arrows = np.array(given.arrows)
    longest = np.hypot(arrows[..., 0], arrows[..., 1]).max()
    along = arrows * 0.9 * max(21 / 2, 60 / 3) / longest
    points = []
    for i, y in enumerate(rows):
        for j, x in enumerate(columns):
            dy, dx = along[i, j]
            for forth, aside in ((0, 0), (1, 0), (0.7, 0.2), (1, 0), (0.7, -0.2)):
                at_x, at_y = x + forth * dx - aside * dy, y + forth * dy + aside * dx
                points.append((left + (at_x - 5) * scale, top + (at_y - 3) * scale))
    near(drawn.points("line"), points)
    assert drawn.paths("line")[0].get("stroke-width") == "1.4"
    assert list(drawn.legend()) == [f"longest arrow: {longest:.2g} pixels, frame 7"]
    assert drawn.turned()["median distance from the mean shift (pixels)"] == (422, 165)
    near(
        [float(text) for text in drawn.beside(448)],
        [(48 + 234 + 4 - y) / 234 * size.max() for y in drawn.beside(448).values()],
        0.01,
    )
    heights = drawn.beside(left - 7)
    near(list(heights.values()), [top + (float(text) - 3) * scale + 4 for text in heights])
    places = dict(drawn.above(top + 21 * scale + 17).items())
    near(list(places.values()), [left + (float(text) - 5) * scale for text in places])


def test_of_many_nodes_every_second_has_an_arrow() -> None:
    given = bends(np.arange(9.0), np.arange(0, 130.0, 10))
    drawn = Drawn(bends_chart(given))
    assert len(drawn.tiles()) == 9 * 13
    assert len(drawn.points("line")) == 5 * 5 * 7
    all_of_them = Drawn(bends_chart(bends(np.arange(12.0), np.arange(12.0))))
    assert len(all_of_them.points("line")) == 5 * 144


def test_without_bends_there_is_no_chart_and_of_none_no_arrow_is_long() -> None:
    given = bends((0.0, 8.0), (0.0, 8.0))
    nothing = ((math.nan, math.nan), (math.nan, math.nan))
    assert bends_chart(dataclasses.replace(given, size=nothing)) is None
    broken = (((0.0, math.nan), (0.0, 0.0)), given.arrows[1])
    assert bends_chart(dataclasses.replace(given, arrows=broken)) is None
    zero = dataclasses.replace(given, arrows=(((0.0, 0.0),) * 2,) * 2, size=((0.0, 0.0), (0.0, 0.0)))
    drawn = Drawn(bends_chart(zero))
    left, top, _side, _ = SQUARE
    near(drawn.points("line")[:5], [(left, top)] * 5)
    assert {colour for _, colour in drawn.tiles()} == {colour_of(0.0)}
    one = Drawn(bends_chart(bends((4.0,), (6.0,))))
    assert len(one.tiles()) == 1


def test_many_frames_are_drawn_thin() -> None:
    rows = [row(t, score=0.9, flags=("edge",) if t == 3 else ()) for t in range(801)]
    few = rows[:800]
    for chart, thin, thick in ((score_chart, "0.8", "1.6"), (lambda r: shift_chart(r, (1e6, 1e6)), "0.8", "1.6")):
        assert Drawn(chart(rows)).paths("line")[0].get("stroke-width") == thin
        assert Drawn(chart(few)).paths("line")[0].get("stroke-width") == thick
        assert not Drawn(chart(rows)).paths("dots")
        assert Drawn(chart(few)).paths("dots")[0].get("stroke-width") == "3.6"
        assert "a3 3 0" in Drawn(chart(rows)).paths("ring")[0].get("d", "")
        assert "a5.5 5.5 0" in Drawn(chart(few)).paths("ring")[0].get("d", "")
    for size, of in (("4", rows), ("6", few)):
        assert Drawn(trajectory_chart(of, frozenset())).paths("dots")[0].get("stroke-width") == size
    for size, of in (("3", rows), ("5", few)):
        assert Drawn(agreement_chart(of, 0.01)).paths("dots")[0].get("stroke-width") == size
    # Frames far apart have a margin of their share.
    x = Drawn(score_chart(rows)).points("line")
    near([x[0][0], x[-1][0]], [LEFT + 16 / 832 * WIDTH, LEFT + 816 / 832 * WIDTH])
    assert Drawn(score_chart(rows, points=100)).paths("line")[0].get("stroke-width") == "0.8"
    assert Drawn(score_chart(rows[:150], points=100)).paths("line")[0].get("stroke-width") == "0.8"


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


@pytest.mark.parametrize(
    ("rows", "columns"), [((0.0, 40.0), (0.0, 10.0)), ((0.0, 10.0, 20.0), (0.0, 36.0, 50.0, 60.0))]
)
def test_the_longest_arrow_spans_most_of_the_wider_gap(rows, columns) -> None:
    drawn = Drawn(bends_chart(bends(rows, columns)))
    side = SQUARE[2]
    scale = side / max(rows[-1], columns[-1])
    gap = max(rows[-1] / (len(rows) - 1), columns[-1] / (len(columns) - 1))
    points = np.array(drawn.points("line")).reshape(-1, 5, 2)
    lengths = np.hypot(*(points[:, 1] - points[:, 0]).T)
    assert lengths.max() == pytest.approx(0.9 * gap * scale, abs=0.2)
