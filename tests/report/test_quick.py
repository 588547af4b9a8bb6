"""A section without pictures: one chart."""

import math
from dataclasses import replace

import pytest

from tests.report import builders
from xcorr_app.report.html import render_report, stack_view
from xcorr_app.report.page_budget import ALONE, has_own_pages, room_for


def test_a_quick_section_has_no_pictures_even_where_there_are_some():
    stack = builders.stack(pictures=builders.pictures(), is_quick=True)
    view = stack_view(1, stack)
    assert (len(view.charts), view.pairs, view.thumbnails) == (1, (), ())
    page = render_report(builders.run(stack))
    assert "Shift of each frame" in page
    assert "Kymograph" not in page


def test_of_many_stacks_pictures_are_smaller_and_what_was_drawn_is_all_that_is_kept():
    assert room_for(1) is ALONE
    assert [has_own_pages(number) for number in (1, 3, 4, 500)] == [False, False, True, True]
    assert room_for(1).side > room_for(10).side > room_for(500).side
    stack = builders.stack(pictures=builders.pictures((600, 500)))
    large, small = stack_view(1, stack), stack_view(1, stack, room_for(500))
    assert len(small.pairs[0].before.source) < len(large.pairs[0].before.source) / 4
    assert large.stack.pictures is small.stack.pictures is None


def test_sections_drawn_before_give_the_same_page():
    drawn = builders.stack("a", pictures=builders.pictures(flagged=(2,)))
    run = builders.run(drawn, builders.failed(), builders.stack("c"), builders.stack("d", is_quick=True))
    views = {number: stack_view(number + 1, stack) for number, stack in enumerate(run.stacks)}
    assert render_report(run, views) == render_report(run)


@pytest.mark.share(3)
@pytest.mark.parametrize(("stacks", "limit"), [(1, 1_000_000), (10, 1_000_000), (500, 10_000_000)])
def test_a_page_of_many_stacks_of_noise_stays_small(stacks, limit):
    rows = tuple(builders.row(t, dy=math.sin(t), dx=math.cos(2 * t), flags=("ambiguous",)) for t in range(400))
    thumbnails = builders.pictures((512, 512), 1, tuple(range(24))).thumbnails
    preview = builders.preview(24, (224, 224))
    pictures = replace(builders.pictures((512, 512), 400), thumbnails=thumbnails, preview=preview)
    stack = builders.stack("noise", rows, pictures=pictures, assessment=builders.assessment())
    view = stack_view(1, stack, room_for(stacks))
    page = render_report(builders.run(*[view.stack] * stacks), dict.fromkeys(range(stacks), view))
    # A single stack shows every frame; pure noise, in which nothing is the same as beside it, is the worst there is.
    assert len(page.encode()) < limit * (2 if stacks == 1 else 1)


def test_what_a_brief_section_leaves_out_is_a_link_away():
    stack = builders.stack("a b", pictures=builders.pictures())
    view = stack_view(1, stack, room_for(500), "a%20b/report.html")
    page = render_report(builders.run(stack), {0: view})
    assert '<a href="a%20b/report.html">' in page
    assert (len(view.charts), len(view.pairs), view.movie) == (1, 1, None)
    assert "Kymograph" not in page
    assert "<summary>All 5 frames" not in page
