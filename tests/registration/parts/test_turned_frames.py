"""Frames that turn, shrink or shear have the shift of their centre; frames of another scene have none to trust."""

import numpy as np
import pytest
from scipy import ndimage

from tests.registration.scenes import noise
from xcorr_app import estimate_shifts
from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.registration.parts import turned_frames
from xcorr_app.registration.parts.tiles import look

SHAPE = (171, 193)
MARGIN = 40
PATH = np.array([(0, 0), (1.5, -2.25), (3.25, 1), (-4.5, 4), (2, 5.75), (-1, -3.5)])


def stars(seed=5, number=160):
    """A few hundred spots on a canvas around the view, most of them faint."""
    rng = np.random.default_rng(seed)
    canvas = np.zeros([n + 2 * MARGIN for n in SHAPE])
    for _ in range(number):
        canvas[tuple(rng.integers(0, canvas.shape))] += min(rng.pareto(1.2) + 0.3, 20.0)
    return ndimage.gaussian_filter(canvas, 1.5)


def blobs(seed=5):
    """A smooth scene on such a canvas."""
    return ndimage.gaussian_filter(np.random.default_rng(seed).normal(size=[n + 2 * MARGIN for n in SHAPE]), 3)


def views(canvas, linear, deviation, path=PATH):
    """Frames that show the canvas moved by `path` and by `linear` (T, 2, 2) about the middle of the view."""
    middle = (np.array(SHAPE) - 1) / 2 + MARGIN
    found = []
    for matrix, shift in zip(linear, path, strict=True):
        back = np.linalg.inv(matrix)
        whole = ndimage.affine_transform(canvas, back, middle - back @ (middle + shift), order=3, mode="reflect")
        found.append(whole[MARGIN:-MARGIN, MARGIN:-MARGIN])
    stack = np.stack(found) / np.std(found)
    return (1000 + 100 * (stack + noise(stack, deviation))).round().astype(np.uint16)


def turn(degrees):
    cosine, sine = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    return np.array([[cosine, -sine], [sine, cosine]])


TURNS = [turn(angle) for angle in np.linspace(0, 1.8, len(PATH))]
SIZES = [np.eye(2) * (1 + 0.03 * t / 5) for t in range(len(PATH))]
SHEARS = [np.array([[1, 0.04 * t / 5], [0, 1]]) for t in range(len(PATH))]


@pytest.mark.share(4)
@pytest.mark.parametrize("scene", [stars, blobs])
@pytest.mark.parametrize(
    ("linear", "model", "deviation", "limit", "reference"),
    [
        (TURNS, "rigid", 0.05, 0.03, "first"),
        (TURNS, "rigid", 0.5, 0.15, "first"),
        (SIZES, "similarity", 0.05, 0.03, "first"),
        (SHEARS, "affine", 0.05, 0.03, "first"),
        # Unturned they would blur a template.
        (TURNS, "rigid", 0.05, 0.03, "template"),
        (SIZES, "similarity", 0.05, 0.03, "template"),
    ],
)
def test_the_shift_is_that_of_the_centre(scene, linear, model, deviation, limit, reference, monkeypatch):
    stack = views(scene(), linear, deviation)
    result = estimate_shifts(stack, reference, 16)
    assert result.trusted.all()
    assert np.abs(result.shifts + PATH).max() < limit
    assert sum(f"--motion {model} " in note for note in result.notes) == 1
    assert np.nanmax(result.sigma) < limit
    # It is what the correlation of whole frames does not give.
    monkeypatch.setattr("xcorr_app.registration.measuring.measurement.MIN_EDGE", np.inf)
    plain = estimate_shifts(stack, "first", 16, contrast="none")
    assert np.abs(plain.shifts + PATH).max() > 2 * np.abs(result.shifts + PATH).max()


def test_more_than_a_few_degrees_are_found_too():
    linear = [turn(angle) for angle in np.linspace(0, 7, len(PATH))]
    result = estimate_shifts(views(stars(), linear, 0.05), "first", 16)
    assert result.trusted.sum() >= 5
    assert np.abs(result.shifts + PATH)[result.trusted].max() < 0.05
    assert any("--motion rigid " in note for note in result.notes)


@pytest.mark.parametrize("scene", [stars, blobs])
@pytest.mark.parametrize("deviation", [0.05, 0.5, 2.0])
def test_frames_that_only_shift_do_not_turn(scene, deviation):
    stack = views(scene(), [np.eye(2)] * len(PATH), deviation).astype(np.float32)
    assert (look(stack[:1], stack[1:], -PATH[1:]).edges < turned_frames.MIN_EDGE).all()


@pytest.mark.parametrize("scene", [stars, blobs])
def test_a_frame_of_another_scene_is_inconsistent(scene):
    stack = views(scene(), [np.eye(2)] * len(PATH), 0.05)
    stack[3] = views(scene(seed=77), [np.eye(2)], 0.05, path=[(0, 0)])[0]
    result = estimate_shifts(stack, "first", 16)
    assert "inconsistent" in result.flags[3] or "uncertain" in result.flags[3]
    assert result.trusted.tolist() == [True, True, True, False, True, True]


def test_a_frame_out_of_focus_or_faded_is_trusted():
    stack = views(stars(), [np.eye(2)] * len(PATH), 0.02).astype(np.float64)
    stack[2] = ndimage.gaussian_filter(stack[2], 3.0) + noise(stack[2], 2.0)
    stack[4] = 1000 + (stack[4] - 1000) * 0.2
    result = estimate_shifts(stack.round().astype(np.uint16), "first", 16)
    assert result.trusted.all()
    assert np.abs(result.shifts + PATH).max() < 0.2


def test_a_centre_beyond_the_window_is_refused():
    stack = views(blobs(), [turn(0), turn(1.5)], 0.05, PATH[[0, 4]]).astype(np.float32)
    reference = turned_frames.StraightReference(stack[:1])
    near = reference.compared(stack[1:], -PATH[[4]], ShiftWindow.symmetric(3, 6))
    assert near.holds.all()
    np.testing.assert_allclose(near.shift, -PATH[[4]], atol=0.1)
    beyond = reference.compared(stack[1:], -PATH[[4]], ShiftWindow.symmetric(3, 4))
    assert not beyond.holds.any()
    assert np.isnan(beyond.shift).all()
