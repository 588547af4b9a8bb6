"""A stack in one line, and a run in one sentence: for the terminal and for the head of the report."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from xcorr_app.registration.quality import LOW_SCORE, UNREADABLE, is_trusted
from xcorr_app.registration.results.frame_table import array_of
from xcorr_app.report.records import StackReport

Level = Literal["good", "doubtful", "failed"]

_LARGE_RESIDUAL = 1.0
"""Pixels that remain after registration beyond which something is wrong with it."""
_MORE_RESIDUAL = 0.2
"""Pixels by which the residual shift may be larger than what it was before."""
_UNLIKE = "the frames resemble their mean less than before"
_NOTHING = "nothing got better, and the frames resemble the reference less than their noise explains"
_UNSHOWN = "no figure shows that it got better, nor that it stands still"
_STOOD = "hardly moved before"
_LONE = "one image: nothing to compare"
_BETTER = 0.98
"""Crispness of the mean before over that after, below which it is called better."""
_LESS_RESIDUAL = 0.5
"""Share of the shifts that may be left where frames are called nearer to each other."""
_STILL = 0.2
"""Root mean squared length of its shifts, in pixels, up to which a stack stands still."""
_LOWER = 0.005
"""By how much the correlation with the mean may fall."""


@dataclass(frozen=True)
class StackSummary:
    """One stack in numbers; None stands where there is nothing to give a number of.

    Attributes
    ----------
    stack : StackReport
        The stack.
    frames, compared, flagged, unlike, unmeasured, unreadable, untrusted, replaced, verified, disagreeing : int
        How many frames there are, and are compared with another image, which a frame that is the reference is not;
        carry a flag; resemble the reference less than their noise explains; have no shift; could not be read; have
        no shift to trust; were not moved by what was measured; were compared with the FFT reference; and differ from
        it by more than the tolerance.
    largest_shift : float or None
        Length of the longest shift applied to a frame that has one, in pixels.
    median_score : float or None
        Median of the scores.
    max_difference : float or None
        Largest difference from the FFT reference, in pixels.
    largest_turn : float or None
        Largest angle by which a frame is turned, in degrees; None where none is.
    """

    stack: StackReport
    frames: int
    compared: int
    flagged: int
    unlike: int
    unmeasured: int
    unreadable: int
    untrusted: int
    replaced: int
    verified: int
    disagreeing: int
    largest_shift: float | None
    median_score: float | None
    max_difference: float | None
    largest_turn: float | None = None

    @property
    def corrected(self) -> int:
        """How many frames were moved by a shift to trust; none where most have none, so that all were left in place."""
        return 0 if self.is_untrusted and self.stack.unmoved else self.trusted

    @property
    def trusted(self) -> int:
        """How many frames have a shift to trust."""
        return self.compared - self.untrusted

    @property
    def is_lone(self) -> bool:
        """There is a single image."""
        return self.frames == 1 and self.stack.failure is None

    @property
    def quality(self) -> str:
        """How good the result is, in words; empty where that was not looked at."""
        known = self.stack.assessment
        if known is None:
            return ""
        if self.stack.unmoved:
            return "no frame was moved, so after equals before"
        before, after = known.correlation
        parts = [f"correlation with the mean {before:.3f} → {after:.3f}"] if math.isfinite(before + after) else []
        if math.isfinite(known.residual_shift.after):
            parts.append(f"residual shift {known.residual_shift.after:.3f} px")
        return ", ".join(parts)

    @property
    def objections(self) -> tuple[str, ...]:
        """What the frames themselves say against the result, registered or not."""
        known = self.stack.assessment
        if known is None or (
            self.stack.unmoved and (self.is_untrusted or not known.residual_shift.after > _LARGE_RESIDUAL)
        ):
            return ()
        found = []
        # What stands still in frames that move is lost where they are moved back, as it should be.
        if known.correlation.after < known.correlation.before - _LOWER and not self.stack.left_out:
            found.append(_UNLIKE)
        before, after = known.residual_shift
        if after > _LARGE_RESIDUAL or after > before + _MORE_RESIDUAL:
            found.append(f"frames of the output registered again are off by {after:.2f} px")
        if not found and not self.is_better:
            if 2 * self.unlike > self.compared:
                found.append(_NOTHING)
            elif known.sampled and not before <= _STILL:
                found.append(_UNSHOWN)
        return tuple(found)

    @property
    def is_better(self) -> bool:
        """Their mean is crisper, or the frames lie nearer to each other: no interpolation does that by itself."""
        known = self.stack.assessment
        if known is None:
            return True
        (before, after), (was, is_now) = known.crispness, known.residual_shift
        return before < _BETTER * after or is_now < _LESS_RESIDUAL * was

    @property
    def stood_still(self) -> bool:
        """The frames hardly moved against each other before, and lie no nearer to each other now."""
        known = None if self.stack.unmoved else self.stack.assessment
        before, after = (math.nan, math.nan) if known is None else known.residual_shift
        return before <= _STILL and after >= _LESS_RESIDUAL * before

    @property
    def is_untrusted(self) -> bool:
        """More than half of the frames that are compared have no shift to trust."""
        return 2 * self.untrusted > self.compared

    @property
    def is_no_better(self) -> bool:
        """Most of its frames cannot be trusted, and they lie no better than before."""
        return self.is_untrusted and (self.stack.unmoved or bool({_UNLIKE, _NOTHING} & set(self.objections)))

    @property
    def level(self) -> Level:
        """How the stack fared: "failed" for a disagreement or a result no better than none, "doubtful" for flags.

        A low score is a remark: a movie of few photons has hardly anything else. A few frames of one value, as of a
        closed shutter, are flagged: the others are none the worse for them.
        """
        if self.stack.failure is not None or self.disagreeing or self.unreadable or self.is_no_better:
            return "failed"
        return "doubtful" if self.flagged or self.objections else "good"

    @property
    def result(self) -> str:
        """The same in words."""
        if self.stack.failure is not None:
            return f"failed: {self.stack.failure}"
        if self.is_lone and not self.flagged:
            return _LONE
        parts = [f"{'failed: ' if self.is_no_better else ''}{self.distrust}"] if self.is_untrusted else []
        parts += self.objections
        if self.flagged and not (self.is_untrusted and self.flagged <= self.untrusted):
            parts.append(f"{grouped(self.flagged)} of {count(self.frames, 'frame')} flagged")
        elif not parts:
            parts.append(f"good, {_STOOD}" if self.stood_still else "good")
        if self.unmeasured:
            parts.append(f"{grouped(self.unmeasured)} without a shift")
        if self.disagreeing:
            parts.append(f"{grouped(self.disagreeing)} in disagreement with the FFT")
        if self.replaced and not self.stack.unmoved:
            parts.append(f"{grouped(self.replaced)} not moved as measured")
        return ", ".join(parts)

    @property
    def distrust(self) -> str:
        """How many frames could not be trusted, and whether the output is as good as the input for it."""
        lost = f"{grouped(self.untrusted)} of {count(self.compared, 'frame')} could not be trusted"
        return f"{lost}; no frame was moved, so after equals before" if self.stack.unmoved else lost


def summarise(stack: StackReport) -> StackSummary:
    """Count and rank the rows of one stack."""
    rows, flags = stack.rows, [row.flags for row in stack.rows]
    number, dy, *applied, difference, score = array_of(
        rows, "frame", "dy", "applied_dy", "applied_dx", "difference", "score"
    ).T
    lost, others = np.isnan(dy), number != stack.reference_frame
    doubted = lost | np.array([bool(words) and not is_trusted(words) for words in flags], dtype=bool)
    lengths, differences, scores = (
        values[np.isfinite(values)] for values in (np.hypot(*applied)[~lost], difference, score)
    )
    return StackSummary(
        stack=stack,
        frames=len(rows),
        compared=int(others.sum()),
        unlike=sum(LOW_SCORE in row.remarks and row.frame != stack.reference_frame for row in rows if row.remarks),
        flagged=len(flags) - flags.count(()),
        unmeasured=int(lost.sum()),
        unreadable=sum(UNREADABLE in words for words in flags if words),
        untrusted=int((others & doubted).sum()),
        replaced=len(stack.replaced),
        verified=differences.size,
        disagreeing=sum("disagrees" in words for words in flags if words),
        largest_shift=float(lengths.max()) if lengths.size else None,
        median_score=float(np.median(scores)) if scores.size else None,
        max_difference=float(differences.max()) if differences.size else None,
        largest_turn=None if stack.turns is None else max((abs(a) for a, _ in stack.turns if a == a), default=None),
    )


def verdict(summaries: Sequence[StackSummary]) -> tuple[Level, str]:
    """How the whole run fared, and the sentence that says so."""

    def total(name: str, of: Sequence[StackSummary] = summaries) -> int:
        return sum(int(getattr(summary, name)) for summary in of)

    failed = sum(summary.stack.failure is not None for summary in summaries)
    if not total("frames"):
        return "failed", "No frame was measured" + (f": {count(failed, 'stack')} failed." if failed else ".")
    flagged, disagreeing, unmeasured, untrusted, verified, lone = map(
        total, ("flagged", "disagreeing", "unmeasured", "is_untrusted", "verified", "is_lone")
    )
    replaced = total("replaced", [summary for summary in summaries if not summary.stack.unmoved])
    several = [summary for summary in summaries if not summary.is_lone]
    corrected, compared, stacks = total("corrected", several), total("compared", several), len(several) - failed
    parts = (
        [f"{grouped(corrected)} of {count(compared, 'frame')} in {count(stacks, 'stack')} corrected"] if stacks else []
    )
    if lone:
        parts.append(_LONE if lone == 1 else f"{grouped(lone)} single images: nothing to compare")
    alone = summaries[0] if len(summaries) == 1 else None
    if alone is not None and alone.quality and not alone.is_lone and not (alone.is_untrusted and alone.stack.unmoved):
        parts.append(alone.quality)
    objected = sum(bool(summary.objections) for summary in summaries)
    if failed:
        parts.append(f"{count(failed, 'stack')} failed")
    if alone is not None and alone.is_untrusted:
        parts.append(alone.distrust)
    elif untrusted:
        parts.append(f"most frames of {count(untrusted, 'stack')} could not be trusted")
    if objected:
        parts += (
            [f"figures of {count(objected, 'stack')} speak against the result"] if alone is None else alone.objections
        )
    still = sum(summary.stood_still and summary.level == "good" for summary in summaries)
    if still:
        parts.append(_STOOD if alone is not None else f"{count(still, 'stack')} {_STOOD}")
    if (alone is None or not alone.is_untrusted or flagged > alone.untrusted) and (flagged or stacks):
        parts.append(f"{count(flagged, 'frame')} flagged" if flagged else "no frame flagged")
    if unmeasured:
        parts.append(f"{grouped(unmeasured)} without a shift")
    if replaced:
        parts.append(f"{grouped(replaced)} not moved as measured")
    if disagreeing:
        parts.append(f"{grouped(disagreeing)} in disagreement with the FFT")
    elif verified and stacks and all(summary.level == "good" for summary in summaries):
        within = "all within" if verified > 1 else "within"
        parts.append(f"{grouped(verified)} checked by an FFT, {within} the tolerance")
    elif not verified and stacks and unmeasured < total("frames"):
        parts.append("none checked by an FFT")
    levels = {summary.level for summary in summaries}
    level: Level = "failed" if "failed" in levels else "doubtful" if "doubtful" in levels else "good"
    return level, "; ".join(parts) + "."


def count(number: int, thing: str) -> str:
    """``1 frame``, ``2 frames``, ``10 000 frames``."""
    return f"{grouped(number)} {thing}{'' if number == 1 else 's'}"


def grouped(number: int) -> str:
    """Write a whole number with its thousands apart."""
    return f"{number:,}".replace(",", "\N{NO-BREAK SPACE}")
