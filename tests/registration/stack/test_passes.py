"""Results do not depend on how the work was cut up, on threads or on the run; progress is reported."""

from __future__ import annotations

import numpy as np
import pytest

from tests.registration.scenes import EVERY_REFERENCE, drifting, noise
from xcorr_app import estimate_shifts
from xcorr_app.registration.stack import passes
from xcorr_app.registration.stack.passes import Pass

COUNT = 11
PIXELS = 40 * 44


@pytest.fixture(scope="module")
def stack():
    drift = np.random.default_rng(5).uniform(-4, 4, (COUNT, 2))
    clean = drifting(drift, shape=(40, 44), contrast=20, offset=100)
    frames = (clean + noise(clean, 4)).astype(np.float32)
    frames[3] = 5  # flat
    frames[6, 2, 2] = np.nan
    frames[8] *= 1e-20  # of another magnitude
    return frames


def columns(result):
    return np.column_stack([result.shifts, result.score, result.peak_ratio, result.fft_shifts, result.non_finite])


def chunks_of(monkeypatch, frames):
    monkeypatch.setattr(passes, "_PIXELS_PER_CHUNK", frames * PIXELS)
    monkeypatch.setattr(passes, "_PIXELS_PER_DEVICE_CHUNK", frames * PIXELS)
    monkeypatch.setattr(passes, "_HELD_PIXELS", frames * PIXELS)


OPTIONS = {"plain": {}, "phase": {"normalization": "phase"}, "sobel": {"prefilter": "sobel"}}
# Phase correlation of so small noisy frames has peaks of nearly one height: rounding decides where a template settles.
CASES = [
    (reference, name) for reference in EVERY_REFERENCE for name in OPTIONS if (reference, name) != ("template", "phase")
]


@pytest.mark.share(10)
@pytest.mark.parametrize(("reference", "name"), CASES)
def test_the_size_of_a_chunk_does_not_matter(xp, monkeypatch, stack, reference, name):
    results = []
    for size in (1, 2, 5, COUNT):
        chunks_of(monkeypatch, size)
        results.append(estimate_shifts(xp.asarray(stack), reference, 8, verify="all", **OPTIONS[name]))
    for result in results[1:]:
        # Products of matrices and sums over frames may be taken in another order: that much, and no more.
        np.testing.assert_allclose(columns(result), columns(results[0]), rtol=1e-5, atol=1e-5)
        assert result.flags == results[0].flags


@pytest.mark.share(4)
@pytest.mark.parametrize("reference", EVERY_REFERENCE)
def test_the_number_of_threads_does_not_matter(monkeypatch, stack, reference):
    chunks_of(monkeypatch, 2)
    results = []
    for workers in (1, 2, 5):
        monkeypatch.setattr(passes, "worker_count", lambda workers=workers: workers)
        results.append(estimate_shifts(stack, reference, 8, verify="all"))
    for result in results[1:]:
        np.testing.assert_array_equal(columns(result), columns(results[0]))


@pytest.mark.parametrize("reference", EVERY_REFERENCE)
def test_progress_counts_up_to_all_frames_in_every_stage(monkeypatch, stack, reference):
    chunks_of(monkeypatch, 2)
    calls = []
    estimate_shifts(stack, reference, 8, progress=lambda *call: calls.append(call))
    assert {total for _, _, total in calls} == {COUNT}
    assert calls[-1][:2] == ("measure", COUNT)
    expected = [*range(0, COUNT, 2), COUNT]
    done = [count for _, count, _ in calls]
    assert done == expected * (len(done) // len(expected))
    assert len({stage for stage, _, _ in calls}) == (2 if reference in ("mean", "median", "template") else 1)


def test_an_error_in_one_chunk_ends_the_pass(monkeypatch):
    chunks_of(monkeypatch, 1)
    monkeypatch.setattr(passes, "worker_count", lambda: 3)

    def job(start, stop):
        if start == 4:
            raise OSError("frame 4")
        return start

    with pytest.raises(OSError, match="frame 4"):
        list(Pass(COUNT, PIXELS, on_device=False).over("any", job))
