"""Passes over frames: chunks, threads, prefilters, and the memory that they need."""

import resource

import numpy as np
import pytest
from scipy import ndimage

from tests.batch.movies import align
from tests.io.samples import write_plain
from tests.registration.scenes import EVERY_REFERENCE, drifting
from xcorr_app import estimate_shifts
from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.errors import LimitError
from xcorr_app.gpu.runtime.arrays import to_host
from xcorr_app.registration.stack import needs, passes
from xcorr_app.registration.stack.passes import Pass
from xcorr_app.registration.stack.prefilter import Prefilter

COUNT = 11
PIXELS = 40 * 44


@pytest.fixture(scope="module")
def frames_of_drift():
    drift = np.random.default_rng(5).uniform(-4, 4, (COUNT, 2))
    frames = drifting(drift, shape=(40, 44), contrast=20, offset=100, noisy=4).astype(np.float32)
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
def test_the_size_of_a_chunk_does_not_matter(xp, monkeypatch, frames_of_drift, reference, name):
    results = []
    for size in (1, 2, 5, COUNT):
        chunks_of(monkeypatch, size)
        results.append(estimate_shifts(xp.asarray(frames_of_drift), reference, 8, verify="all", **OPTIONS[name]))
    for result in results[1:]:
        # Products of matrices and sums over frames may be taken in another order: that much, and no more.
        np.testing.assert_allclose(columns(result), columns(results[0]), rtol=1e-5, atol=1e-5)
        assert result.flags == results[0].flags


@pytest.mark.share(4)
@pytest.mark.parametrize("reference", EVERY_REFERENCE)
def test_the_number_of_threads_does_not_matter(monkeypatch, frames_of_drift, reference):
    chunks_of(monkeypatch, 2)
    results = []
    for workers in (1, 2, 5):
        monkeypatch.setattr(passes, "worker_count", lambda workers=workers: workers)
        results.append(estimate_shifts(frames_of_drift, reference, 8, verify="all"))
    for result in results[1:]:
        np.testing.assert_array_equal(columns(result), columns(results[0]))


@pytest.mark.parametrize("reference", EVERY_REFERENCE)
def test_progress_counts_up_to_all_frames_in_every_stage(monkeypatch, frames_of_drift, reference):
    chunks_of(monkeypatch, 2)
    calls = []
    estimate_shifts(frames_of_drift, reference, 8, progress=lambda *call: calls.append(call))
    assert {total for _, _, total in calls} == {COUNT}
    assert calls[-1][:2] == ("measure", COUNT)
    expected = [*range(0, COUNT, 2), COUNT]
    done = [count for _, count, _ in calls]
    assert done == expected * (len(done) // len(expected))
    assert len({stage for stage, _, _ in calls}) == (2 if reference in ("mean", "template") else 1)


def test_an_error_in_one_chunk_ends_the_pass(monkeypatch):
    chunks_of(monkeypatch, 1)
    monkeypatch.setattr(passes, "worker_count", lambda: 3)

    def job(start, stop):
        if start == 4:
            raise OSError("frame 4")
        return start

    with pytest.raises(OSError, match="frame 4"):
        list(Pass(COUNT, PIXELS, on_device=False).over("any", job))


def filtered(xp, frames, text):
    return to_host(Prefilter.parse(text)(xp.asarray(frames)))


DEFINITIONS = {
    "none": lambda frame: frame,
    "gaussian:1.2": lambda frame: ndimage.gaussian_filter(frame, 1.2),
    "highpass:2": lambda frame: frame - ndimage.gaussian_filter(frame, 2),
    "dog:1,2.5": lambda frame: ndimage.gaussian_filter(frame, 1) - ndimage.gaussian_filter(frame, 2.5),
    "log:1.5": lambda frame: -ndimage.gaussian_laplace(frame, 1.5),
    "median:3": lambda frame: ndimage.median_filter(frame, 3),
    "sobel": lambda frame: np.hypot(ndimage.sobel(frame, 0), ndimage.sobel(frame, 1)),
    "box:3": lambda frame: ndimage.uniform_filter(frame, 3),
    "laplacian": ndimage.laplace,
    "unsharp:1.5,0.7": lambda frame: 1.7 * frame - 0.7 * ndimage.gaussian_filter(frame, 1.5),
}


@pytest.mark.parametrize("text", DEFINITIONS)
@pytest.mark.parametrize("dtype", ["uint16", "float32", "float64"])
def test_every_frame_is_filtered_by_itself(xp, rng, text, dtype):
    frames = (1000 * rng.random((3, 30, 26))).astype(dtype)
    expected = np.stack([DEFINITIONS[text](frame.astype(float)) for frame in frames])
    result = filtered(xp, frames, text)
    if text != "none":
        assert result.dtype == (np.float64 if dtype == "float64" else np.float32)
    # The taps of a second derivative are brought to a zero sum by the library, by hand they are not quite.
    tolerance = 2.0 if text.startswith("log") else 0.01
    np.testing.assert_allclose(result, expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("text", DEFINITIONS)
@pytest.mark.parametrize(("dtype", "scale"), [("float32", 1e30), ("float32", 1e-30), ("float64", 1e300)])
def test_huge_and_tiny_values_are_filtered_alike(xp, rng, text, dtype, scale):
    frames = rng.random((1, 20, 20)) + 0.5
    expected = filtered(xp, frames, text)
    result = filtered(xp, (frames * scale).astype(dtype), text).astype(float) / scale
    np.testing.assert_allclose(result, expected, atol=1e-4)


@pytest.mark.parametrize("text", [text for text in DEFINITIONS if text != "none"])
@pytest.mark.parametrize("dtype", ["uint8", "int32", "float16", "uint32"])
def test_frames_of_every_type_are_filtered_in_float32(xp, rng, text, dtype):
    frames = (200 * rng.random((2, 25, 31))).astype(dtype)
    result = Prefilter.parse(text)(xp.asarray(frames))
    assert result.dtype == np.float32
    expected = filtered(np, frames.astype(np.float64), text)
    np.testing.assert_allclose(to_host(result), expected, rtol=0, atol=2e-6 * 200 * 16)


def test_what_is_missing_is_said(monkeypatch):
    monkeypatch.setattr(needs, "free_bytes", lambda: 16 * 10**9)
    window = ShiftWindow.symmetric(5000, 5000)
    with pytest.raises(
        LimitError, match=r"20000 x 20000 pixels, shifts up to 5000 .* at least 56\.8 GB .* 16 GB are free"
    ):
        needs.check_memory((20_000, 20_000), window, verified=True)
    needs.check_memory((10_000, 10_000), ShiftWindow.symmetric(16, 16), verified=True)
    monkeypatch.setattr(needs, "free_bytes", lambda: None)
    needs.check_memory((20_000, 20_000), window, verified=True)


def test_a_limit_of_the_process_counts(monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (3 << 30, 3 << 30))
    assert 0 <= needs.free_bytes() < 3 << 30


def test_a_stack_that_needs_too_much_fails_before_it_begins(tmp_path, monkeypatch):
    write_plain(tmp_path / "a.tif", np.random.default_rng(0).integers(0, 255, (3, 60, 50), dtype=np.uint8))
    monkeypatch.setattr(needs, "_WORTH_ASKING", 0)
    monkeypatch.setattr(needs, "free_bytes", lambda: 1000)
    run = align(tmp_path / "a.tif", "-o", tmp_path / "out", "--device", "cpu")
    assert run.code == 1
    assert "measuring frames of 60 x 50 pixels" in run.stdout
    assert "measure a part with --roi" in run.stdout
    assert not list((tmp_path / "out").rglob("*.csv"))


def test_a_stack_that_fails_when_it_is_moved_leaves_no_table(tmp_path, monkeypatch):
    from xcorr_app.batch.align import stack

    def fail(*_, **__):
        raise MemoryError

    write_plain(tmp_path / "a.tif", np.random.default_rng(0).integers(0, 255, (3, 60, 50), dtype=np.uint8))
    monkeypatch.setattr(stack, "move_stack", fail)
    run = align(tmp_path / "a.tif", "-o", tmp_path / "out", "--device", "cpu")
    assert run.code == 1
    assert "needs more memory than there is" in run.stdout
    assert not list((tmp_path / "out").rglob("*.csv"))


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("MemTotal: 900 kB\nMemAvailable: 500 kB\nSwapFree: 20 kB\n", 520 * 1024),
        ("MemAvailable: 500 kB\n", 500 * 1024),
        ("MemTotal: 900 kB\n", None),
    ],
)
def test_what_the_machine_has(monkeypatch, tmp_path, said, expected):
    (tmp_path / "meminfo").write_text(said)
    real = needs._table
    monkeypatch.setattr(needs, "_table", lambda path: real(tmp_path / path.name))
    assert needs._of_machine() == expected
