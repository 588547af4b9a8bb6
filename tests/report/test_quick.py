"""A section without pictures: one chart."""

from tests.report import builders
from xcorr_app.report.html import SMALLEST_SIDE, picture_side, render_report, stack_view


def test_a_quick_section_has_no_pictures_even_where_there_are_some():
    stack = builders.stack(pictures=builders.pictures(), is_quick=True)
    view = stack_view(1, stack)
    assert (len(view.charts), view.pairs, view.thumbnails) == (1, (), ())
    page = render_report(builders.run(stack))
    assert "Shift of each frame" in page
    assert "Kymograph" not in page


def test_of_many_stacks_pictures_are_smaller_and_what_was_drawn_is_all_that_is_kept():
    assert picture_side(1) > picture_side(100) > picture_side(2000) == SMALLEST_SIDE
    stack = builders.stack(pictures=builders.pictures((600, 500)))
    large, small = stack_view(1, stack), stack_view(1, stack, SMALLEST_SIDE)
    assert len(small.pairs[0].before.source) < len(large.pairs[0].before.source) / 4
    assert large.stack.pictures is small.stack.pictures is None


def test_sections_drawn_before_give_the_same_page():
    drawn = builders.stack("a", pictures=builders.pictures(flagged=(2,)))
    run = builders.run(drawn, builders.failed(), builders.stack("c"), builders.stack("d", is_quick=True))
    views = {number: stack_view(number + 1, stack) for number, stack in enumerate(run.stacks)}
    assert render_report(run, views) == render_report(run)
