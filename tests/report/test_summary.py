"""Verdicts and tables of the report."""

import csv
import io
import math
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.report.builders import NAN, assessment, failed, row, stack, unread
from xcorr_app.errors import DamagedFileError
from xcorr_app.registration.assessment import BeforeAfter
from xcorr_app.registration.results.frame_table import COLUMNS, FrameRow, parse_shifts_csv, shifts_csv
from xcorr_app.report.records import FLAG_MEANINGS, StackReport
from xcorr_app.report.summary import summarise, verdict


def test_numbers_of_a_stack() -> None:
    rows = (
        row(0, dy=0.0, dx=0.0, score=1.0, difference=math.nan, fft_dy=math.nan, fft_dx=math.nan),
        row(1, dy=3.0, dx=-4.0, score=0.9, difference=0.002),
        row(2, dy=30.0, dx=40.0, score=0.2, difference=0.02, flags=("disagrees",), applied_dy=3.0, applied_dx=-4.0),
        unread(3),
    )
    summary = summarise(stack(rows=rows))
    assert (summary.frames, summary.flagged, summary.untrusted, summary.replaced) == (4, 2, 2, 2)
    assert (summary.verified, summary.disagreeing, summary.max_difference) == (2, 1, 0.02)
    # The largest shift is of those applied.
    assert (summary.largest_shift, summary.median_score, summary.level) == (5.0, 0.9, "failed")
    assert (
        summary.result
        == "2 of 4 frames flagged, 1 without a shift, 1 in disagreement with the FFT, 2 not moved as measured"
    )


def test_a_stack_without_any_number() -> None:
    summary = summarise(stack(rows=(unread(0), unread(1))))
    assert (summary.largest_shift, summary.median_score, summary.max_difference) == (None, None, None)
    assert (summary.verified, summary.level) == (0, "failed")


def test_a_stack_of_which_more_than_half_could_not_be_trusted_failed() -> None:
    doubted = [row(frame, flags=("ambiguous",), applied_dy=0.0, applied_dx=0.0) for frame in range(1, 4)]
    half = summarise(stack(rows=(row(0), row(1), *doubted[1:])))
    assert (half.level, half.is_untrusted, half.stack.unmoved) == ("doubtful", False, False)
    most = summarise(stack(rows=(row(0), *doubted)))
    assert (most.level, most.untrusted, most.stack.unmoved) == ("failed", 3, True)
    words = "3 of 4 frames could not be trusted; no frame was moved, so after equals before"
    assert most.result == f"failed: {words}"
    level, text = verdict([most, half])
    assert level == "failed"
    assert "most frames of 1 stack could not be trusted" in text
    remarked = summarise(stack(rows=tuple(row(frame, remarks=("low-score",)) for frame in range(4))))
    assert (remarked.level, remarked.untrusted, remarked.replaced) == ("good", 0, 0)


def test_nothing_is_good_that_got_no_better_and_resembles_the_reference_little() -> None:
    unlike = tuple(row(frame, remarks=("low-score",)) for frame in range(1, 4))
    for crispness, after, level in (
        (BeforeAfter(0.0526, 0.0527), 0.09, "doubtful"),
        (BeforeAfter(0.0046, 0.0523), 0.09, "good"),
        (BeforeAfter(0.0526, 0.0527), 0.01, "good"),
    ):
        # Correlation rises where noise is interpolated.
        known = assessment(
            correlation=BeforeAfter(0.526, 0.61), crispness=crispness, residual_shift=BeforeAfter(0.04, after)
        )
        found = summarise(stack(rows=(row(0), *unlike), reference_frame=0, assessment=known))
        assert (found.level, "nothing got better" in found.result) == (level, level == "doubtful")
    # Frames that resemble each other as their noise allows are shown to stand still.
    still = assessment(crispness=BeforeAfter(0.0526, 0.0526), residual_shift=BeforeAfter(0.04, 0.04))
    assert summarise(stack(assessment=still)).level == "good"


def test_nothing_is_good_of_which_no_figure_shows_it() -> None:
    unknown = BeforeAfter(math.nan, math.nan)
    for crispness, residual, sampled, level in (
        (BeforeAfter(0.0997, 0.0997), BeforeAfter(0.52, 0.28), 4, "doubtful"),
        (BeforeAfter(0.0997, 0.12), BeforeAfter(0.52, 0.28), 4, "good"),
        (BeforeAfter(0.0997, 0.0997), BeforeAfter(0.52, 0.2), 4, "good"),
        (BeforeAfter(0.0997, 0.0997), BeforeAfter(0.19, 0.2), 4, "good"),
        (unknown, unknown, 4, "doubtful"),
        (unknown, unknown, 0, "good"),
    ):
        known = assessment(crispness=crispness, residual_shift=residual, sampled=sampled)
        found = summarise(stack(assessment=known))
        assert (found.level, "no figure shows" in found.result) == (level, level == "doubtful")
        told = [found.result == "good, hardly moved before", "2 stacks hardly moved before" in verdict([found] * 2)[1]]
        assert told == [residual == BeforeAfter(0.19, 0.2)] * 2


def test_the_reference_never_counts() -> None:
    pair = (row(0), row(1, flags=("uncertain",), applied_dy=0.0, applied_dx=0.0))
    found = summarise(stack(rows=pair, reference_frame=0))
    assert (found.level, found.corrected, found.compared) == ("failed", 0, 1)
    level, text = verdict([found])
    assert (level, text.partition(" frame")[0]) == ("failed", "0 of 1")
    assert "FFT" not in text


def test_a_single_image_is_told_in_its_own_words() -> None:
    alone = summarise(stack(rows=(row(0),), reference_frame=0))
    assert (alone.level, alone.result) == ("good", "one image: nothing to compare")
    assert verdict([alone]) == ("good", "one image: nothing to compare.")
    assert verdict([alone, summarise(stack())])[1].startswith("5 of 5 frames in 1 stack corrected; one image: nothing")


def test_verdicts() -> None:
    good, doubtful, broken = stack(), stack(rows=(row(0), row(1, flags=("edge",)))), failed()
    blind = stack(rows=(row(0), unread(1)))
    unverified = stack(
        rows=(row(0, difference=math.nan, fft_dy=math.nan, fft_dx=math.nan), row(1, difference=math.nan))
    )
    disagreeing = stack(rows=(row(0, flags=("disagrees",)),))
    sentence = "5 of 5 frames in 1 stack corrected; no frame flagged; 5 checked by an FFT, all within"
    cases: tuple[tuple[tuple[StackReport, ...], str, str], ...] = (
        ((good,), "good", sentence),
        ((good, doubtful), "doubtful", "6 of 7 frames in 2 stacks corrected; 1 frame flagged"),
        ((good, broken), "failed", "1 stack failed"),
        ((good, blind), "failed", "1 without a shift"),
        ((disagreeing,), "failed", "1 in disagreement with the FFT"),
        ((unverified,), "good", "none checked by an FFT"),
        ((), "failed", "No frame was measured."),
    )
    for stacks, level, words in cases:
        found, text = verdict([summarise(each) for each in stacks])
        assert (found, words in text) == (level, True)


def test_what_the_result_says_against_itself_is_a_doubt() -> None:
    for changes, words in (
        ({"correlation": BeforeAfter(0.9, 0.8)}, "the frames resemble their mean less than before"),
        ({"residual_shift": BeforeAfter(9.0, 2.9)}, "frames of the output registered again are off by 2.90 px"),
        ({"residual_shift": BeforeAfter(0.1, 0.4)}, "frames of the output registered again are off by 0.40 px"),
    ):
        summary = summarise(stack(assessment=assessment(**changes)))
        assert (summary.level, summary.result) == ("doubtful", words)
        level, text = verdict([summary])
        assert (level, f"; {words}; no frame flagged" in text) == ("doubtful", True)
        assert "figures of 2 stacks speak against the result" in verdict([summary, summary])[1]
    slight = {"correlation": BeforeAfter(0.9, 0.899), "residual_shift": BeforeAfter(9.0, 0.9)}
    assert summarise(stack(assessment=assessment(**slight))).level == "good"
    still = tuple(row(frame, applied_dy=0.0, applied_dx=0.0) for frame in range(3))
    known = assessment(residual_shift=BeforeAfter(0.0, 1.4))  # which were left where they are, as if they stood still
    assert summarise(stack(rows=still, assessment=known)).level == "doubtful"


HEADER = (
    "frame,source,page,dy,dx,score,peak_ratio,fft_dy,fft_dx,difference,flags,sigma_y,sigma_x,applied_dy,applied_dx,"
    "remarks,significance\n"
)


def test_text_is_exactly_this() -> None:
    rows = [
        row(0, dy=0.0, dx=-0.0, score=1.0, peak_ratio=math.inf, fft_dy=NAN, fft_dx=NAN, difference=NAN),
        row(1, dy=-1.23456789, dx=1e-9, score=0.5, fft_dy=-1.2, fft_dx=-4e-7, difference=0.25),
        unread(2),
        row(3, source='a "b", c.tif', flags=("edge", "uncertain"), sigma_x=math.inf, applied_dy=1.4, applied_dx=-0.7),
        row(4, remarks=("low-score",), significance=12.5),
    ]
    assert shifts_csv(rows) == HEADER + (
        "0,cells.tif,0,0.000000,0.000000,1.000000,inf,,,,,0.010000,0.020000,0.000000,0.000000,,\n"
        "1,cells.tif,1,-1.234568,0.000000,0.500000,2.500000,-1.200000,0.000000,0.250000,,0.010000,0.020000,-1.234568,0.000000,,\n"
        "2,cells.tif,2,,,,,,,,unreadable,,,0.000000,0.000000,,\n"
        '3,"a ""b"", c.tif",3,1.500000,-0.750000,0.950000,2.500000,1.500000,-0.749000,0.001000,edge|uncertain,'
        "0.010000,inf,1.400000,-0.700000,,\n"
        "4,cells.tif,4,2.000000,-1.000000,0.950000,2.500000,2.000000,-0.999000,0.001000,,0.010000,0.020000,2.000000,"
        "-1.000000,low-score,12.500000\n"
    )
    assert shifts_csv([]) == HEADER == COLUMNS + "\n"
    assert b"\\udcffname.tif" in shifts_csv([row(0, source="\udcffname.tif")]).encode("utf-8")  # which is no text


finite = st.floats(-1e6, 1e6)
measured = finite | st.just(math.nan)
names = st.text(st.characters(exclude_categories=["Cs"]))
flag_sets = st.lists(st.sampled_from(sorted(FLAG_MEANINGS)), unique=True).map(tuple)
frame_rows = st.builds(
    FrameRow,
    st.integers(0, 10**9),
    names,
    st.integers(0, 10**9),
    *[measured] * 7,
    flag_sets,
    *[measured] * 4,
    st.just(()),
    measured,
)


def same(left: Any, right: Any) -> bool:
    """Equal, but for what six decimals cannot hold."""
    if isinstance(left, float) and isinstance(right, float):
        return (math.isnan(left) and math.isnan(right)) or abs(left - right) <= 5.1e-7
    return bool(left == right)


anywhere = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""A busy machine is no fault of what is tested."""


@anywhere
@given(st.lists(frame_rows, max_size=4))
def test_round_trip(rows: list[FrameRow]) -> None:
    text = shifts_csv(rows)
    back = parse_shifts_csv(text)
    assert len(back) == len(rows)
    for read, written in zip(back, rows, strict=True):
        assert all(same(a, b) for a, b in zip(vars(read).values(), vars(written).values(), strict=True))
    assert shifts_csv(back) == text


@anywhere
@given(st.lists(frame_rows, min_size=1, max_size=3), st.data())
def test_text_that_breaks_off_never_reads_as_other_numbers(rows: list[FrameRow], data: st.DataObject) -> None:
    text = shifts_csv(rows)
    cut = text[: data.draw(st.integers(0, len(text) - 1))]
    try:
        read = parse_shifts_csv(cut)
    except DamagedFileError:
        return
    assert shifts_csv(read) == cut  # whole lines of it


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "breaks off"),
        ("frame,dy,dx\n0,1,2\n", "line 1"),
        (HEADER + "0,cells.tif,0,1.0\n", "line 2.*4 fields"),
        (HEADER + "0,cells.tif,0,one,0,0,0,0,0,0,,0,0,0,0,,\n", "line 2.*one"),
        (HEADER + '0,"cells.tif,0,1,0,0,0,0,0,0,\n', "line 2"),
        (HEADER + "0,cells.tif,0,1,0,0,0,0,0,0,edge||flat,0,0,0,0,,\n", "line 2.*flag"),
    ],
)
def test_other_text_is_refused(text: str, reason: str) -> None:
    with pytest.raises(DamagedFileError, match=reason):
        parse_shifts_csv(text)


@pytest.mark.parametrize(
    "name", ["=1+2.tif", "+a", "-b", "@c", "\td", "'=e", "''-f", "'g", "h=1", "=HYPERLINK(1,2)", "\r=x"]
)
def test_names_are_no_formulas(name: str) -> None:
    text = shifts_csv([row(0, source=name)])
    cell = list(csv.reader(io.StringIO(text, newline="")))[1][1]
    assert cell[0] not in "=+-@\t\r"
    assert parse_shifts_csv(text)[0].source == name
