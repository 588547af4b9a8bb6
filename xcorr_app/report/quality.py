"""How good the result is, in the few figures that a stack's section of the report begins with."""

import math
from dataclasses import dataclass

from xcorr_app.registration.assessment import BeforeAfter
from xcorr_app.report.records import StackReport
from xcorr_app.report.summary import StackSummary, count, grouped


@dataclass(frozen=True)
class Figure:
    """One number of how good the result is, in words: its name, what it was, what it is, and what that means."""

    name: str
    before: str
    after: str
    remark: str
    level: str = ""


def figures(stack: StackReport, summary: StackSummary) -> tuple[Figure, ...]:
    """How good the result is, before and after; empty where that was not looked at."""
    known = stack.assessment
    if known is None or summary.is_lone:
        return ()
    same, level = stack.unmoved, "failed" if summary.is_no_better else ""
    corrected = Figure(
        "Frames corrected",
        "",
        f"{grouped(summary.corrected)} of {grouped(summary.compared)}",
        f"{100 * summary.trusted / max(summary.compared, 1):.0f} % have a shift that can be trusted"
        + (", too few to move any" if summary.trusted > summary.corrected else ""),
        "failed"
        if summary.is_no_better
        else "good"
        if summary.corrected == summary.compared and summary.level == "good"
        else "doubtful",
    )
    ratio = known.crispness.after / known.crispness.before if known.crispness.before > 0 else math.nan
    compared = "of each frame with the mean of the others"
    if stack.left_out:
        compared += "; what was left out for measuring is part of it, and lowers it where frames move away from it"
    shown = [
        corrected,
        _figure("Correlation with the mean", known.correlation, 3, compared, same, level),
        _figure(
            "Crispness of the mean",
            known.crispness,
            3,
            f"{ratio:.2f} times; gradient energy, without noise" if math.isfinite(ratio) else "gradient energy",
            same,
            level,
        ),
    ]
    residual = known.residual_shift
    if math.isnan(residual.after):
        remark = f"could not be measured: {count(known.sampled, 'frame')} tried"
    else:
        remark = f"rms; {known.registered_again} of {known.sampled} frames tried, registered again"
    shown.append(_figure("Residual shift (px)", residual, 3, remark, same, level))
    if stack.turns is not None and summary.largest_turn is not None:
        scales = [scale for _, scale in stack.turns if math.isfinite(scale)]
        remark = f"scale from {min(scales):.5g} to {max(scales):.5g}" if scales else ""
        shown.append(Figure("Largest turn (degrees)", "", f"{summary.largest_turn:.3f}", remark))
    if known.closure is not None:
        shown.append(Figure("Closure (px)", "", f"{known.closure:.3f}", "rms error of sums of shifts around loops"))
    return tuple(shown)


def _figure(name: str, pair: BeforeAfter, places: int, remark: str, same: bool, level: str) -> Figure:
    before, after = (f"{value:.{places}f}".replace("-", "−") if math.isfinite(value) else "–" for value in pair)
    if same:
        return Figure(name, "", after, "after equals before: no frame was moved", level)
    return Figure(name, before, after, remark)
