"""A section without pictures: one drawing, made of text."""

import base64
import math
import xml.etree.ElementTree as ET

from tests.report import builders
from xcorr_app.report.html import render_report, stack_view
from xcorr_app.report.quick import quick_chart

SVG = "{http://www.w3.org/2000/svg}"


def points_of(chart):
    text = base64.b64decode(chart.source.partition(",")[2]).decode()
    lines = ET.fromstring(text).findall(f"{SVG}polyline")  # noqa: S314 - our own
    return [[tuple(map(float, pair.split(","))) for pair in line.get("points").split()] for line in lines]


def test_lines_go_up_with_the_shift_and_along_with_the_frame():
    rows = tuple(builders.row(frame, dy=float(frame), dx=-2.0 * frame) for frame in range(4))
    down, across = points_of(quick_chart(builders.stack(rows=rows)))
    assert len(down) == len(across) == 4
    assert [x for x, _ in down] == sorted(x for x, _ in down) == [x for x, _ in across]
    # Up on the page is a smaller y.
    assert [y for _, y in down] == sorted((y for _, y in down), reverse=True)
    assert [y for _, y in across] == sorted(y for _, y in across)
    assert math.isclose(across[3][1] - across[0][1], 2 * (down[0][1] - down[3][1]), abs_tol=0.2)


def test_frames_without_a_shift_are_left_out_and_long_stacks_thinned():
    rows = (builders.row(0), builders.unread(1), builders.row(2))
    assert [len(line) for line in points_of(quick_chart(builders.stack(rows=rows)))] == [2, 2]
    many = tuple(builders.row(frame) for frame in range(9001))
    assert max(len(line) for line in points_of(quick_chart(builders.stack(rows=many)))) <= 2000
    assert quick_chart(builders.stack(rows=(builders.unread(0),))).source is None


def test_a_quick_section_has_no_pictures_even_where_there_are_some():
    stack = builders.stack(pictures=builders.pictures(), is_quick=True)
    view = stack_view(1, stack)
    assert (len(view.charts), view.pairs, view.thumbnails) == (1, (), ())
    page = render_report(builders.run(stack))
    assert "Shift of each frame" in page
    assert "Kymograph" not in page
