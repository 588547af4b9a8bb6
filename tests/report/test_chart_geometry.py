"""Where shifts, scores, errors, tiles and fields lie in the charts of the report."""

from __future__ import annotations

import dataclasses
import math
import re
from typing import Any

import numpy as np
import pytest

from tests.report.builders import row, unread
from tests.report.drawn import Drawn, near
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
from xcorr_app.report.svg import BETWEEN, SQUARE, WIDE, colour_of

LEFT, TOP, WIDTH, HEIGHT = WIDE


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
