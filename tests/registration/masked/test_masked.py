"""Shifts by the pixels that count: against the definition, known answers, and what must not be believed."""

from pathlib import Path

import numpy as np
import pytest
from scipy.ndimage import fourier_shift, gaussian_filter

import xcorr_app as xc
from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.registration.masked.planes import MaskedPlanes

DATA = Path(__file__).resolve().parents[4] / "shared" / "data" / "padfield_masked"
SHIFTS = np.array([(0.0, 0.0), (-3.3, 2.7), (-10.25, -7.5), (12.1, -5.8)])


def moving(shape=(150, 171), seed=0, shifts=SHIFTS):
    """Frames cut from a larger scene, moved exactly."""
    margin = 40
    rng = np.random.default_rng(seed)
    spectrum = np.fft.fft2(gaussian_filter(rng.normal(size=(shape[0] + 2 * margin, shape[1] + 2 * margin)), 1.5))
    frames = [np.fft.ifft2(fourier_shift(spectrum, -shift)).real for shift in shifts]
    inner = (slice(margin, -margin), slice(margin, -margin))
    return 5 + 10 * np.stack([frame[inner] for frame in frames])


def blob(shape, hole=True):
    y, x = np.mgrid[: shape[0], : shape[1]]
    mask = ((y / shape[0] - 0.5) / 0.46) ** 2 + ((x / shape[1] - 0.45) / 0.4) ** 2 < 1
    return mask & ~(((y - 60) ** 2 + (x - 80) ** 2 < 15**2) & hole)


def definition(image, counts, frame, own, window, min_overlap):
    scores, numbers = np.full(window.shape, np.nan), np.zeros(window.shape)
    for i, dy in enumerate(window.dys):
        for j, dx in enumerate(window.dxs):
            values, weight = np.zeros_like(image), np.zeros(image.shape, bool)
            height, width = image.shape
            to = (slice(max(dy, 0), min(height, height + dy)), slice(max(dx, 0), min(width, width + dx)))
            at = (slice(max(-dy, 0), min(height, height - dy)), slice(max(-dx, 0), min(width, width - dx)))
            values[to], weight[to] = frame[at], own[at]
            both = weight & counts
            numbers[i, j] = both.sum()
            if both.sum() >= 4:
                scores[i, j] = np.corrcoef(image[both], values[both])[0, 1]
    scores[numbers < max(min_overlap * numbers.max(), 4)] = np.nan
    return scores, numbers


@pytest.mark.parametrize(("dtype", "error"), [(np.float64, 1e-9), (np.float32, 1e-5)])
@pytest.mark.parametrize("shape", [(23, 31), (40, 17), (97, 83)])
def test_planes_are_those_of_the_definition(shape, dtype, error):
    rng = np.random.default_rng(3)
    image, frame = rng.normal(size=(2, *shape)) + 0.1
    counts, own = rng.random((2, *shape)) < 0.6
    image, frame = image * counts, frame * own
    window = ShiftWindow(-12, 9, -8, 14)
    planes, numbers = MaskedPlanes(image, counts, window, 0.25, dtype).planes(frame[None], own[None])
    expected, met = definition(image, counts, frame, own, window, 0.25)
    np.testing.assert_array_equal(numbers[0], met)
    np.testing.assert_allclose(planes[0], expected, atol=error)


def test_what_is_masked_does_not_matter(xp):
    frames, mask = moving(), blob((150, 171))
    rng = np.random.default_rng(1)
    results = [
        xc.estimate_shifts(xp.asarray(np.where(mask, frames, filling)), mask=xp.asarray(mask), max_shift=20).shifts
        for filling in (0.0, 1e4 * rng.normal(size=frames.shape), np.nan)
    ]
    np.testing.assert_allclose(results[0], SHIFTS, atol=0.02)
    np.testing.assert_allclose(results[1], results[0], atol=1e-6)
    np.testing.assert_allclose(results[2], results[0], atol=1e-6)


@pytest.mark.parametrize(
    ("rule", "hidden"), [("nonzero", 0), ("saturated", 65535), ("threshold:99.5", 3), ("threshold:-1", -5)]
)
def test_rules(rule, hidden):
    frames, mask = moving() * 100 + 1000, blob((150, 171))
    dtype = np.int32 if hidden < 0 else np.uint16
    stack = np.where(mask, frames, hidden).round().astype(dtype)
    result = xc.estimate_shifts(stack, mask=rule, max_shift=20)
    np.testing.assert_allclose(result.shifts, SHIFTS, atol=0.02)
    assert result.trusted.all()
    assert rule in result.notes[0]


def test_a_mask_for_each_frame_and_one_that_moves(xp):
    frames = moving()
    masks = np.stack([np.roll(blob((150, 171)), step, axis=1) for step in (0, 5, -9, 3)])
    result = xc.estimate_shifts(xp.asarray(np.where(masks, frames, 0)), mask=masks, max_shift=20)
    np.testing.assert_allclose(result.shifts, SHIFTS, atol=0.02)
    # A bright thing that stands still in every frame; the mask follows the scene around the rest.
    still = frames.copy()
    still[:, 100:140, 120:160] += 40 * gaussian_filter(np.random.default_rng(7).normal(size=(40, 40)), 1)
    mask = np.ones((150, 171), bool)
    mask[80:, 100:] = False
    moves = xc.estimate_shifts(xp.asarray(still), mask=mask, mask_moves=True, max_shift=20)
    np.testing.assert_allclose(moves.shifts, SHIFTS, atol=0.05)


def test_pixels_that_all_frames_lack_are_no_part_of_the_scene():
    frames = moving()
    frames[:, :20] = np.nan
    frames[:, 60:80, 30:60] = np.nan
    result = xc.estimate_shifts(frames, max_shift=20)
    np.testing.assert_allclose(result.shifts, SHIFTS, atol=0.02)
    assert "finite" in result.notes[0]
    frames = moving()
    frames[0, 3, 4] = frames[1, 5, 6] = np.nan
    assert not any("count" in note for note in xc.estimate_shifts(frames, max_shift=20).notes)


def test_errors_are_predicted():
    rng = np.random.default_rng(5)
    shifts = np.vstack([[0, 0], rng.uniform(-12, 12, (24, 2))])
    frames = moving(shifts=shifts)
    frames += frames.std() * rng.normal(size=frames.shape)
    result = xc.estimate_shifts(frames, mask=blob((150, 171)), max_shift=20)
    ratios = np.abs(result.shifts - shifts)[1:] / result.sigma[1:]
    assert 0.5 < (ratios < 1).mean() < 0.85
    assert (ratios < 2).mean() > 0.85


@pytest.mark.parametrize("max_shift", [0, (0, 8)])
def test_what_moves_beyond_the_window_is_not_believed(max_shift):
    shifts = np.array([(0, 0), (0.2, -0.3), (1.2, -0.7), (3, -2)])
    result = xc.estimate_shifts(moving(shifts=shifts), mask=blob((150, 171)), max_shift=max_shift)
    np.testing.assert_allclose(result.shifts[:2], shifts[:2], atol=0.03)
    assert result.trusted.tolist() == [True, True, False, False]


def test_unrelated_images_are_not_believed():
    rng = np.random.default_rng(2)
    stack = gaussian_filter(rng.normal(size=(6, 150, 171)), (0, 3, 3))
    result = xc.estimate_shifts(stack, mask=blob((150, 171)), max_shift=60, min_overlap=0.1)
    assert result.trusted.tolist() == [True, *[False] * 5]


@pytest.mark.skipif(not DATA.is_dir(), reason="no real stacks")
@pytest.mark.parametrize(
    ("name", "shift"), [("X75Y75", (75, -75)), ("X-130Y130", (130, 130)), ("X130Y130", (130, -130))]
)
def test_the_three_pairs_of_padfield(name, shift):
    pair = np.stack([xc.read_stack(DATA / f"{which}{name}.png").data for which in ("Original", "Transformed")])
    result = xc.estimate_shifts(pair, mask="nonzero", max_shift=200, min_overlap=0.1)
    np.testing.assert_allclose(result.shifts[1], shift, atol=0.02)
    assert result.trusted.all()


def test_references(xp):
    frames, mask = moving(), blob((150, 171))
    for reference, zero in (("last", 3), (1, 1), (xp.asarray(frames[2]), 2)):
        result = xc.estimate_shifts(xp.asarray(frames), reference, mask=mask, max_shift=30)
        np.testing.assert_allclose(result.shifts, SHIFTS - SHIFTS[zero], atol=0.03)
        assert 0 < result.sigma[zero].min() <= result.sigma[zero].max() <= result.sigma.max()
