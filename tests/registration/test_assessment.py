"""How good a registration is: sums against their definitions, what counts, and what the figures say of known scenes."""

import math

import numpy as np
import pytest

from tests.registration.scenes import drifting, noise
from xcorr_app import apply_shifts, assess, estimate_shifts
from xcorr_app.registration import assessment
from xcorr_app.registration.assessment import assessment_of
from xcorr_app.registration.assessment_sums import AssessmentSums, SharedArea, extents_of, shared_area
from xcorr_app.registration.estimate import estimate_from
from xcorr_app.registration.settings import Settings


def standardised(stack, before=None):
    """Frames less their mean, over their standard deviation before they were moved."""
    frames = np.asarray(stack, dtype=np.float64)
    deviation = np.asarray(stack if before is None else before, dtype=np.float64).std(axis=(1, 2), keepdims=True)
    return (frames - frames.mean(axis=(1, 2), keepdims=True)) / deviation


def pooled_correlation(stack):
    """The definition over all pixels of all frames at once."""
    z = standardised(stack)
    others = (z.sum(axis=0) - z) / (len(z) - 1)
    return (z * others).sum() / np.sqrt((z**2).sum() * (others**2).sum())


def crispness(stack, before=None):
    z = standardised(stack, before)
    even, odd = (np.gradient(z[start::2].mean(axis=0)) for start in (0, 1))
    return np.sqrt(max(0.0, sum((one * other).mean() for one, other in zip(even, odd, strict=True))))


def sums_of(xp, before, after, area, chunks, members=None):
    sums = AssessmentSums(SharedArea(area, np.ones(len(before), dtype=bool) if members is None else members))
    for start, stop in zip((0, *np.cumsum(chunks)), np.cumsum(chunks), strict=False):
        sums.add(xp.asarray(before[start:stop]), xp.asarray(after[start:stop]))
    return sums


@pytest.fixture
def pair(rng):
    """A stack that drifts, and one that does not: frames of their own brightness, odd sizes."""
    drift = np.cumsum(rng.normal(0, 1, (11, 2)), axis=0)
    gain, offset = rng.uniform(0.2, 30, (11, 1, 1)), rng.uniform(-900, 900, (11, 1, 1))
    return tuple(gain * (drifting(moves, (53, 67)) + noise(np.zeros((11, 53, 67)), 0.7, seed)) + offset
                 for seed, moves in enumerate((drift, np.zeros_like(drift))))  # fmt: skip


@pytest.mark.parametrize("chunks", [(11,), (1, 5, 5), (4, 4, 3)])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int16", "uint32"])
def test_sums_are_the_definition(xp, pair, chunks, dtype):
    before, after = (np.rint(one + (0 if dtype[0] == "f" or dtype[0] == "i" else 5000)).astype(dtype) for one in pair)
    area = (slice(3, 50), slice(6, 67))
    sums = sums_of(xp, before, after, area, chunks)
    inner = [one[(slice(None), *area)] for one in (before, after)]
    for found, stack in zip(sums.correlation(), inner, strict=True):
        assert found == pytest.approx(pooled_correlation(stack), abs=1e-5)
    assert sums.crispness() == pytest.approx([crispness(stack, inner[0]) for stack in inner], rel=1e-4)
    assert sums.correlation()[1] > sums.correlation()[0] + 0.05


def test_frames_without_contrast_and_those_left_out_do_not_count(xp, pair):
    before, after = (one.copy() for one in pair)
    before[4], after[4] = 0.0, 7.5
    before[7], after[7] = np.nan, np.nan
    members = np.arange(11) != 9
    sums = sums_of(xp, before, after, (slice(0, 53), slice(0, 67)), (4, 4, 3), members)
    counted = [i for i in range(11) if i not in (4, 7, 9)]
    for found, stack in zip(sums.correlation(), (before, after), strict=True):
        assert found == pytest.approx(pooled_correlation(stack[counted]), abs=1e-5)
    assert 9 not in sums.kept


def test_registration_is_seen_in_every_figure(xp):
    drift = np.cumsum(np.random.default_rng(3).normal(0, 1.5, (20, 2)), axis=0)
    stack = xp.asarray(
        (500 + 100 * drifting(drift, (120, 131)) + noise(np.zeros((20, 120, 131)), 20)).astype(np.uint16)
    )
    result = estimate_shifts(stack, max_shift=20)
    quality = assess(stack, apply_shifts(stack, result.applied()), result)
    assert quality.residual_shift.before == pytest.approx(np.sqrt(drift.var(axis=0).sum()), abs=0.05)
    assert quality.residual_shift.after < 0.05
    assert quality.correlation.after > 0.97 > 0.8 > quality.correlation.before
    assert quality.crispness.after > 1.4 * quality.crispness.before
    assert (quality.registered_again, quality.sampled, quality.corrected) == (4, 4, 1.0)


def test_what_is_left_is_found():
    """Half of the frames were moved by 1.5 px too far."""
    stack = 500 + 100 * drifting(np.zeros((16, 2)), (120, 131)) + noise(np.zeros((16, 120, 131)), 10)
    wrong = np.zeros((16, 2))
    wrong[8:, 0] = 1.5
    quality = assess(stack, apply_shifts(stack, wrong, interpolation=3))
    assert quality.residual_shift.before < 0.8
    assert quality.residual_shift.after == pytest.approx(0.75, abs=0.1)
    assert quality.correlation.after < quality.correlation.before - 0.01
    assert quality.corrected == 0.5


def test_frames_that_have_nothing_in_common_have_no_residual_shift():
    stack = np.random.default_rng(5).normal(size=(9, 100, 100))
    quality = assess(stack, stack)
    assert (quality.registered_again, quality.sampled, quality.corrected) == (0, 4, 0.0)
    assert math.isnan(quality.residual_shift.after)
    assert abs(quality.correlation.after) < 0.01


@pytest.mark.parametrize("fill", [0.0, -3.5, np.nan])
def test_what_moved_in_from_outside_is_left_out(xp, fill):
    drift = np.linspace(0, 9, 10)[:, None] * (1, -1)
    stack = xp.asarray(50 + drifting(drift, (90, 97)))
    after = apply_shifts(stack, -drift, border="constant", cval=fill)
    shared = shared_area((90, 97), extents_of((90, 97), -drift))
    assert shared is not None
    assert shared.area == (slice(0, 81), slice(9, 97))
    expected = sums_of(xp, stack, after, shared.area, (10,))
    assert assess(stack, after).correlation == pytest.approx(expected.correlation(), abs=1e-9)
    assert assess(stack, after).correlation.after > 0.99


def test_stacks_without_enough_to_look_at(xp):
    for shape in ((1, 40, 40), (3, 1, 40), (2, 1, 1)):
        stack = xp.asarray(np.random.default_rng(6).normal(size=shape))
        quality = assess(stack, stack)
        assert math.isnan(quality.correlation.after)
        assert (quality.sampled, quality.corrected) == (0, 0.0)
    constant = xp.full((4, 40, 40), 3, dtype=np.uint8)
    assert math.isnan(assess(constant, constant).crispness.before)
    line = sums_of(xp, constant[:, :1], constant[:, 1:2], (slice(0, 1), slice(0, 40)), (4,))
    assert np.isnan(line.crispness()).all()


def test_a_region_of_interest_is_what_is_registered_again():
    """The left half was registered; the right one moves on its own."""
    drift = np.arange(12)[:, None] * (1.0, 0.5)
    left, right = drifting(np.zeros((12, 2)), (100, 100)), drifting(drift, (100, 100), seed=7)
    stack = np.concatenate([left, 3 * right], axis=2)
    shared = shared_area((100, 200), extents_of((100, 200), np.zeros((12, 2))))
    assert shared is not None
    residual, left_half = {}, (slice(None), slice(0, 100))
    result = estimate_shifts(stack, max_shift=20, roi=left_half)
    for roi in (None, left_half):
        sums = AssessmentSums(shared, roi)
        sums.add(stack, stack)
        quality = assessment_of(sums, Settings(max_shift=20, roi=roi), (100, 200), result)
        residual[roi is None] = quality.residual_shift.after
    assert residual[False] < 0.02
    assert not residual[True] < 1.0


@pytest.mark.parametrize("contrast", ["none", "local:8"])
def test_frames_are_registered_again_by_the_contrast_that_measured_them(monkeypatch, contrast):
    stack = drifting([(0, 0), (3, -2), (1, 4), (-2, 2)], (120, 110))
    result = estimate_shifts(stack, max_shift=12, contrast=contrast)
    assert str(result.contrast) == contrast
    used = []

    def seen(frames, reference, settings, **kwargs):
        used.append(str(settings.contrast))
        return estimate_from(frames, reference, settings, **kwargs)

    monkeypatch.setattr(assessment, "estimate_from", seen)
    for known in (result, None):
        used.clear()
        quality = assess(stack, apply_shifts(stack, result.applied()), known)
        assert used == [contrast if known else "auto"]
        assert quality.residual_shift.after < 0.05
