"""References of frames shortly before: steps, pairs, closure; and frames averaged over time."""

import numpy as np
import pytest
import scipy.sparse

from tests.registration.scenes import UnreliableFrames, drifting, noise, walk
from xcorr_app import estimate_shifts
from xcorr_app.registration.estimate import estimate_from
from xcorr_app.registration.reference.earlier_frames import earlier
from xcorr_app.registration.reference.pair_shifts import _inverse_diagonal, solve_pairs
from xcorr_app.registration.settings import Settings
from xcorr_app.registration.stack.frames import ArrayFrames, SmoothedFrames


def test_pairs_and_steps_leave_a_bad_frame_aside():
    displacements = walk(3, 14, 0.7)
    stack = drifting(displacements, shape=(96, 96), seed=3, noisy=0.05)
    stack[6] = drifting([(0, 0)], shape=(96, 96), seed=77)[0]
    result = estimate_shifts(stack, "pairs:3", 12, contrast="none")
    kept = np.arange(14) != 6
    np.testing.assert_allclose(result.shifts[kept], -displacements[kept], atol=0.05)
    np.testing.assert_array_equal(result.trusted, kept)
    steps = estimate_shifts(stack, "previous", 12, contrast="none")
    np.testing.assert_allclose(steps.shifts[kept], -displacements[kept], atol=0.1)
    np.testing.assert_array_equal(steps.trusted, kept)


def test_pairs_report_what_contradicts_them():
    displacements = walk(5, 12, 0.7)
    clean = drifting(displacements, shape=(96, 96), seed=5)
    result = estimate_shifts(clean + noise(clean, 0.05), "pairs:3", 10, contrast="none")
    assert result.closure.shape == (12,)
    assert (result.closure < 0.01).all()
    assert "Closure: pairs contradict" in result.notes[0]
    assert "3 frames before each" in result.reference
    assert estimate_shifts(clean, "first", 10).closure is None


def test_steps_are_compared_with_the_first_frame():
    displacements = walk(7, 30, 0.3)
    stack = drifting(displacements, shape=(96, 96), seed=7)
    # A pattern of the camera holds back every step a little, and no single one visibly.
    pattern = 0.5 * drifting([(0, 0)], shape=(96, 96), seed=55)[0]
    result = estimate_shifts(stack + pattern, "previous", 12, contrast="none")
    plain = estimate_shifts(stack, "previous", 12, contrast="none")
    assert np.nanmax(plain.closure) < 0.03 < 0.08 < np.nanmax(result.closure)
    assert np.isfinite(plain.closure).sum() <= 16
    assert "Closure: compared with frame 0 directly, frame 29 lies" in plain.notes[0]


@pytest.mark.share(4)
@pytest.mark.parametrize("broken", [{1: "x"}, {0: "x", 4: "x", 5: "x"}])
@pytest.mark.parametrize("reference", ["previous", "pairs:2"])
def test_frames_that_cannot_be_read_are_stepped_over(reference, broken):
    displacements = walk(7, 10, 0.7)
    frames = UnreliableFrames(drifting(displacements, seed=7), broken)
    result = estimate_from(frames, reference, Settings(max_shift=10), xp=np)
    kept = np.array([t for t in range(10) if t not in broken])
    np.testing.assert_allclose(result.shifts[kept], displacements[kept[0]] - displacements[kept], atol=0.08)
    assert np.isnan(result.shifts[sorted(broken)]).all()


def test_numbers_of_earlier_frames():
    usable = np.array([False, True, True, False, True, True])
    np.testing.assert_array_equal(earlier(usable, 1), [1, 1, 1, 2, 2, 4])
    np.testing.assert_array_equal(earlier(usable, 2), [-1, -1, -1, 1, 1, 2])
    np.testing.assert_array_equal(earlier(usable, 1, apart=2), [1, 1, 1, 1, 1, 2])
    np.testing.assert_array_equal(earlier(np.zeros(2, dtype=bool), 1), [-1, -1])


def to_numpy(images):
    return images if isinstance(images, np.ndarray) else images.get()


def test_robust_least_squares_against_dense_algebra(rng):
    count, reach = 30, 4
    later = np.concatenate([np.arange(back, count) for back in range(1, reach + 1)])
    earlier_of = np.concatenate([np.arange(count - back) for back in range(1, reach + 1)])
    truth = walk(8, count, 0.7)
    steps = truth[later] - truth[earlier_of] + rng.normal(0, 0.01, (later.size, 2))
    sound, weights = np.ones(later.size, dtype=bool), rng.uniform(0.5, 2, later.size)
    found = solve_pairs(later, earlier_of, steps, weights, sound, count, 0)
    np.testing.assert_allclose(found.shifts, truth, atol=0.05)
    wrong = rng.choice(later.size, 12, replace=False)
    steps[wrong] += rng.uniform(3, 9, (12, 2)) * rng.choice([-1, 1], (12, 2))
    again = solve_pairs(later, earlier_of, steps, weights, sound, count, 0)
    np.testing.assert_allclose(again.shifts, truth, atol=0.05)
    assert set(np.flatnonzero(again.residuals > 1)) == set(wrong)
    assert again.scatter == pytest.approx(0.01, rel=0.4)
    # Without wrong pairs the weights of the last round are nearly the given ones, and so is the inverse.
    design = np.zeros((later.size, count))
    design[np.arange(later.size), later], design[np.arange(later.size), earlier_of] = 1, -1
    normal = (design.T * weights) @ design
    variance = np.diag(np.linalg.inv(normal[1:, 1:])) * weights.mean() * found.scatter**2
    np.testing.assert_allclose(found.variance[1:], variance, rtol=0.35)
    assert found.variance[0] < 1e-9


@pytest.mark.parametrize(("count", "reach"), [(1, 1), (5, 3), (64, 4), (65, 4), (200, 90), (300, 1)])
def test_the_diagonal_of_an_inverse_is_that_of_dense_algebra(rng, count, reach):
    band = rng.uniform(-1, 1, (reach + 1, count)) + (1 + reach) * np.eye(reach + 1)[:, :1]
    lower = scipy.sparse.dia_array((band, -np.arange(reach + 1)), shape=(count, count)).toarray()
    np.testing.assert_allclose(_inverse_diagonal(band), np.diag(np.linalg.inv(lower @ lower.T)), rtol=1e-9)


@pytest.mark.parametrize("length", [2, 3, 6])
@pytest.mark.parametrize("dtype", ["uint8", "float32", "float64"])
def test_frames_averaged_over_time(xp, length, dtype):
    stack = np.random.default_rng(1).integers(0, 200, (9, 5, 7)).astype(dtype)
    stack[4] = 7  # flat
    if dtype != "uint8":
        stack[2, 1, 3] = np.nan
    frames = SmoothedFrames(ArrayFrames(xp.asarray(stack)), length)
    assert frames.dtype == (np.float64 if dtype == "float64" else np.float32)
    whole = to_numpy(frames.read(0, 9).frames)
    assert whole.dtype == frames.dtype
    for start, stop in ((0, 1), (2, 7), (8, 9)):
        np.testing.assert_array_equal(to_numpy(frames.read(start, stop).frames), whole[start:stop])
    reach = length // 2
    for t in range(9):
        near = [j for j in range(max(t - reach, 0), min(t + reach + 1, 9)) if j != 4]
        share = np.array([0.5 if length % 2 == 0 and abs(j - t) == reach else 1.0 for j in near])[:, None, None]
        finite = np.isfinite(stack[near])
        mean = np.where(finite, stack[near], 0) * share
        mean = mean.sum(axis=0) / np.maximum((finite * share).sum(axis=0), 1e-9)
        mean = stack[t] if t == 4 else np.where(np.isfinite(stack[t]), mean, np.nan)
        np.testing.assert_allclose(whole[t], mean, rtol=1e-6)


def test_standard_errors_of_sums_are_those_of_their_errors():
    """The noise of a frame enters two steps with opposite signs: most of it does not add up."""
    ratio = []
    for seed in range(5):
        displacements = walk(seed, 24, 0.7)
        clean = drifting(displacements, shape=(112, 112), width=0.07, seed=seed)
        result = estimate_shifts(clean + noise(clean, 0.3, seed + 20), "previous", 16, contrast="none")
        ratio.append((result.shifts + displacements)[1:] / result.sigma[1:])
    assert 0.7 < np.sqrt(np.mean(np.square(ratio))) < 1.4
