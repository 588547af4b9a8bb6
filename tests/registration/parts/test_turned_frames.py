"""Frames that turn, shrink or shear have the shift of their centre; frames of another scene have none to trust."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import ndimage

from tests.registration.scenes import drifting, noise
from xcorr_app import estimate_shifts
from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.registration.parts import turned_frames
from xcorr_app.registration.parts.tiles import Grid, look

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
    ("linear", "model", "deviation", "limit"),
    [
        (TURNS, "rigid", 0.05, 0.03),
        (TURNS, "rigid", 0.5, 0.15),
        (SIZES, "similarity", 0.05, 0.03),
        (SHEARS, "affine", 0.05, 0.03),
    ],
)
def test_the_shift_is_that_of_the_centre(scene, linear, model, deviation, limit, monkeypatch):
    stack = views(scene(), linear, deviation)
    result = estimate_shifts(stack, "first", 16)
    assert result.trusted.all()
    assert np.abs(result.shifts + PATH).max() < limit
    assert [f"--motion {model} " in note for note in result.notes] == [True]
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


def test_the_edge_moves_as_far_as_it_is_turned(xp):
    stack = drifting(np.zeros((1, 2)), SHAPE, width=0.03, seed=3)[0]
    middle = (np.array(SHAPE) - 1) / 2
    back = np.linalg.inv(turn(0.5))
    turned = ndimage.affine_transform(stack, back, middle - back @ middle, order=3, mode="nearest")
    found = look(xp.asarray(stack[None]), xp.asarray(turned[None]), np.zeros((1, 2)))
    assert found.edges[0] == pytest.approx(np.radians(0.5) * SHAPE[1] / 2, rel=0.15)


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


def test_the_error_of_an_edge_is_that_of_its_place(rng):
    """Numbers of the model are y0, x0, then by how much rows and columns move along y and x with either."""
    shape, root = (60, 130), rng.normal(size=(6, 6))
    covariance = root @ root.T
    expected = []
    for place in ((shape[0] / 2, 0.0), (0.0, shape[1] / 2)):
        for design in ((1, 0, place[0], place[1], 0, 0), (0, 1, 0, 0, place[0], place[1])):
            variance = np.diag(covariance) * np.square(design)
            expected.append(np.sqrt(variance.sum()))
    assert turned_frames._edge_error(covariance, shape) == pytest.approx(max(expected))
    for swapped in (covariance, np.diag([1.0, 1, 9, 0, 0, 0]), np.diag([1.0, 1, 0, 9, 0, 0])):
        assert np.isfinite(turned_frames._edge_error(swapped, shape))
    assert turned_frames._edge_error(np.diag([1.0, 1, 9, 0, 0, 0]), shape) == pytest.approx(np.sqrt(9 * 30**2 + 1))
    assert turned_frames._edge_error(np.diag([1.0, 4, 0, 0, 0, 9]), shape) == pytest.approx(np.sqrt(9 * 65**2 + 4))
    assert turned_frames._edge_error(np.full((6, 6), np.nan), shape) == np.inf


@pytest.mark.parametrize("degrees", [0, 12, -25])
def test_tiles_are_covered_whose_every_pixel_the_frame_shows(degrees):
    grid = Grid(SHAPE)
    motion = np.eye(3)
    motion[:2, :2], motion[:2, 2] = turn(degrees), (21.3, -17.6)
    found = turned_frames._covered(grid, motion)
    middle = (np.array(SHAPE) - 1) / 2
    for row, column in np.ndindex(*grid.count):
        corners = [(y, x) for y in (row * grid.size, (row + 1) * grid.size - 1)
                   for x in (column * grid.size, (column + 1) * grid.size - 1)]  # fmt: skip
        places = (np.array(corners) - middle) @ motion[:2, :2].T + motion[:2, 2] + middle
        assert found[0, row, column] == ((places >= 0) & (places <= np.array(SHAPE) - 1)).all()
    assert 0.3 < found.mean() < 0.95


def test_a_centre_beyond_the_window_is_refused():
    stack = views(blobs(), [turn(0), turn(1.5)], 0.05, PATH[[0, 4]]).astype(np.float32)
    reference = turned_frames.StraightReference(stack[:1])
    near = reference.compared(stack[1:], -PATH[[4]], ShiftWindow.symmetric(3, 6))
    assert near.holds.all()
    np.testing.assert_allclose(near.shift, -PATH[[4]], atol=0.1)
    beyond = reference.compared(stack[1:], -PATH[[4]], ShiftWindow.symmetric(3, 4))
    assert not beyond.holds.any()
    assert np.isnan(beyond.shift).all()
