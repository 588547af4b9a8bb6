"""Parts of measuring motion and patches by themselves: references, limits, and what is made of what was found."""

import math

import numpy as np
import pytest
from scipy import ndimage

import xcorr_app as xc
from tests.registration.scenes import UnreliableFrames, drifting
from xcorr_app.errors import ArgumentError, ShapeError
from xcorr_app.registration.field.window_match import WindowMatch
from xcorr_app.registration.motion import gauss_newton, whole_frames
from xcorr_app.registration.motion.log_polar import _vertex, spectra_of, turns_between
from xcorr_app.registration.motion.models import MODELS, model_of
from xcorr_app.registration.motion.smoothed_frames import finite
from xcorr_app.registration.patches import patch_fit
from xcorr_app.registration.patches.field_fit import FieldFit, kinds_lost, lost_at
from xcorr_app.registration.patches.fitted_fields import FittedFields
from xcorr_app.registration.patches.patch_fit import PatchFit, PatchOptions
from xcorr_app.registration.patches.patch_match import Matched
from xcorr_app.registration.patches.patch_references import References, references_of
from xcorr_app.registration.patches.patch_result import RigidShifts, result_of
from xcorr_app.registration.stack.frames import ArrayFrames
from xcorr_app.registration.stack.single_reference import read_reference
from xcorr_app.registration.warping.matrices import about_corner, turned


def test_a_reference_that_cannot_be_read_is_refused(rng):
    stack = rng.normal(size=(4, 40, 44))
    frames = UnreliableFrames(stack, {2: "it is cut short"})
    with pytest.raises(ArgumentError, match="frame 2, cannot be read: it is cut short"):
        whole_frames.motion_of(frames, model_of("rigid"), 2)
    found = whole_frames.motion_of(frames, model_of("translation"), 0)
    assert found.flags[2] == ("unreadable",)
    assert found.unreadable == {2: "it is cut short"}


@pytest.mark.parametrize(
    ("wanted", "number", "described"),
    [
        ("first", 0, "first (0)"),
        ("last", 3, "last (3)"),
        (1, 1, "frame (1)"),
        (-1, 3, "frame (3)"),
        (-4, 0, "frame (0)"),
    ],
)
def test_a_reference_by_name_and_number(rng, wanted, number, described):
    stack = rng.normal(size=(4, 40, 44))
    image, frame, words = read_reference(ArrayFrames(stack), wanted, "")
    np.testing.assert_array_equal(image, stack[number])
    assert (frame, words) == (number, described)


def test_references_that_are_none(rng):
    stack = rng.normal(size=(4, 40, 44))
    for wanted in (4, -5):
        with pytest.raises(ArgumentError, match=f"reference frame {wanted} does not exist: there are 4"):
            xc.estimate_motion(stack, "rigid", reference=wanted)
    with pytest.raises(ArgumentError, match="unknown reference 'mean'"):
        xc.estimate_motion(stack, "rigid", reference="mean")
    with pytest.raises(ShapeError, match="reference has shape"):
        xc.estimate_motion(stack, "rigid", reference=np.zeros((40, 40)))
    image = rng.normal(size=(40, 44))
    assert read_reference(ArrayFrames(stack), image, "") == (image, None, "an image")
    with pytest.raises(ShapeError, match="motion needs 32 pixels a side"):
        xc.estimate_motion(np.zeros((2, 31, 40)), "rigid")
    assert len(xc.estimate_motion(rng.normal(size=(2, 32, 40)), "translation").flags) == 2
    for wrong in (0, -1.0, math.nan):
        with pytest.raises(ArgumentError, match="max_sigma"):
            xc.estimate_motion(np.zeros((2, 40, 40)), max_sigma=wrong)


def test_the_nearest_frames_that_are_trusted_are_tried():
    def found(flags, number):
        motion = None if flags is None else turned(0.1 * number, 1.0)
        return whole_frames._Found(motion, 0.5, None, 1.0, flags or ())

    frames = [found((), 0), found((), 1), found(("uncertain",), 2), found(("edge",), 3), found(None, 4), found((), 5)]
    angles = [
        [math.atan2(motion[1, 0], motion[0, 0]) for motion in whole_frames._neighbours(frames, t)] for t in (2, 3)
    ]
    sign = math.copysign(1.0, math.atan2(turned(0.1, 1.0)[1, 0], turned(0.1, 1.0)[0, 0]))
    np.testing.assert_allclose(angles[0], [sign * 0.1])  # after it the next without flags has no motion
    np.testing.assert_allclose(angles[1], [sign * 0.1])
    frames[4] = found((), 4)
    np.testing.assert_allclose(
        [math.atan2(m[1, 0], m[0, 0]) for m in whole_frames._neighbours(frames, 3)], [sign * 0.1, sign * 0.4]
    )
    assert whole_frames._neighbours(frames[2:4], 0) == []


@pytest.mark.parametrize("dtype", [np.uint16, np.float32, np.float64])
def test_an_image_loses_its_mean_and_what_is_no_number(rng, dtype):
    image = (rng.random((9, 11)) * 100 + 5000).astype(dtype)
    expected = image.astype(np.float64) - image.mean(dtype=np.float64)
    values, replaced = whole_frames._prepared(image)
    assert values.dtype == finite(image).dtype == np.float32
    assert replaced is False
    for found in (values, finite(image)):
        np.testing.assert_allclose(found, expected, atol=1e-3)
    if image.dtype.kind == "f":
        image[3, 4], image[5, 6] = np.nan, np.inf
        known = np.isfinite(image)
        values, replaced = whole_frames._prepared(image)
        assert replaced is True
        for found in (values, finite(image)):
            np.testing.assert_allclose(found[known], image[known] - image[known].mean(dtype=np.float64), atol=1e-3)
            assert (found[~known] == 0).all()
        assert not finite(np.full((3, 3), np.nan)).any()
        assert not whole_frames._prepared(np.full((3, 3), np.nan))[0].any()


@pytest.mark.parametrize("name", ["translation", "rigid", "similarity", "affine"])
def test_standard_errors_come_from_the_covariance(name):
    model = model_of(name)
    size = {"translation": 2, "rigid": 3, "similarity": 4, "affine": 6}[name]
    covariance = np.diag(np.arange(1.0, size + 1) ** 2 / 100)
    motion = turned(0.2, 1.0)
    motion[:2, 2] = 3.0, -4.0
    one = whole_frames._Found(motion, 0.75, covariance, 0.5, ("edge",))
    result = whole_frames._result(model, [one, whole_frames._Found()], (40, 50), "said", {1: "why"})
    np.testing.assert_allclose(result.sigma[0], (0.1, 0.2))
    expected = {"translation": 0.0, "affine": np.nan}.get(name, math.degrees(0.3))
    np.testing.assert_allclose(result.sigma_angle[0], expected)
    assert np.isnan(result.sigma[1]).all()
    assert np.isnan(result.sigma_angle[1])
    np.testing.assert_allclose(result.matrices[0], about_corner(motion, (40, 50)))
    assert np.isnan(result.matrices[1]).all()
    assert (result.flags, result.reference, result.unreadable) == ((("edge",), ()), "said", {1: "why"})
    np.testing.assert_array_equal(result.overlap, (0.5, 0.0))
    np.testing.assert_array_equal(result.score, (0.75, np.nan))
    np.testing.assert_allclose(result.shifts[0], (-3.0, 4.0))


@pytest.mark.parametrize("given", [{}, {"patch": 16}, {"overlap": 0.0}, {"overlap": 0.99}, {"max_deviation": 128}])
def test_patches_that_are_taken(given):
    assert PatchOptions(**given) is not None


@pytest.mark.parametrize(
    "given",
    [
        {"patch": 15},
        {"patch": 32.0},
        {"overlap": 1.0},
        {"overlap": -0.01},
        {"max_deviation": 0.0},
        {"max_deviation": 128.1},
        {"max_deviation": math.nan},
    ],
)
def test_patches_that_are_not(given):
    with pytest.raises(ArgumentError):
        PatchOptions(**given)


def test_patches_are_matched_at_half_their_size_from_64_pixels():
    assert [PatchOptions(patch=size).half for size in (16, 63, 64, 128)] == [1, 1, 2, 2]
    assert (patch_fit.DEFAULT_PATCH, patch_fit.DEFAULT_OVERLAP, patch_fit.DEFAULT_DEVIATION) == (128, 0.5, 6.0)


def test_the_mean_of_the_others_is_without_the_frame(rng):
    images, seen = rng.normal(size=(3, 5, 6)), (rng.random((3, 5, 6)) < 0.6).astype(float)
    values, whole = images * seen, rng.normal(size=(5, 6))
    total, count = values.sum(axis=0), seen.sum(axis=0)
    references = References(whole, (total, count), lambda t: (values[t], seen[t]))
    for t in range(3):
        others = [u for u in range(3) if u != t]
        expected = np.where(
            seen[others].any(axis=0), values[others].sum(axis=0) / np.maximum(seen[others].sum(axis=0), 1), whole
        )
        np.testing.assert_allclose(references.of(t), expected, atol=1e-12)
    assert References(whole).of(0) is None


def test_the_reference_of_all_is_the_mean_of_aligned_usable_frames():
    drift = np.array([(0, 0), (2, -3), (0, 0), (-4, 1)])
    stack = drifting(drift, shape=(40, 44)).astype(np.float32)
    flags = ((), ("uncertain",), ("flat",), ())  # of these, one does not matter for patches
    shifts = -drift.astype(float)
    found = references_of(ArrayFrames(stack), "template", shifts, flags, np)
    usable = [0, 1, 3]
    moved = np.full((3, 40, 44), np.nan)
    for k, t in enumerate(usable):
        (dy, dx), image = drift[t], stack[t] - stack[t].mean()
        rows, columns = np.mgrid[:40, :44]
        y, x = rows + dy, columns + dx
        inside = (y >= 0) & (y < 40) & (x >= 0) & (x < 44)
        moved[k][inside] = image[y[inside], x[inside]]
    np.testing.assert_allclose(found.image, np.nanmean(moved, axis=0), atol=1e-4)
    np.testing.assert_allclose(found.of(2), found.image, atol=1e-4)
    with np.errstate(invalid="ignore"):
        alone = np.where(np.isfinite(moved[1:]).any(axis=0), np.nansum(moved[1:], axis=0), np.nan)
        alone /= np.maximum(np.isfinite(moved[1:]).sum(axis=0), 1)
    expected = np.where(np.isfinite(moved[1:]).any(axis=0), alone, found.image)
    np.testing.assert_allclose(found.of(0), expected, atol=1e-4)
    for wanted, number in (("first", 0), ("last", 3), (1, 1), (-2, 2)):
        np.testing.assert_array_equal(references_of(ArrayFrames(stack), wanted, shifts, flags, np).image, stack[number])
    assert references_of(ArrayFrames(stack), stack[2], shifts, flags, np).image is not None


class OfNodes:
    """Patches of 16 pixels, half of each shared, in frames of 32 x 40."""

    def __init__(self):
        stack = np.random.default_rng(0).normal(size=(3, 32, 40)).astype(np.float32)
        self.against = PatchFit((32, 40), References(stack[0]), PatchOptions(patch=16), np)


def test_the_result_is_put_together_from_what_was_found(rng):
    against = OfNodes().against
    rows, columns = against.nodes.rows, against.nodes.columns
    np.testing.assert_allclose(rows, [0, 7.5, 15.5, 23.5, 31])
    np.testing.assert_allclose(columns, [0, 7.5, 15.5, 23.5, 31.5, 39])
    field, sigma = rng.normal(size=(2, 5, 6)) + 3, rng.uniform(0.1, 0.2, (2, 5, 6))
    trusted, significance = rng.random((3, 4)) < 0.7, rng.uniform(3, 9, 12)
    nothing = np.zeros(12)

    def found(sigma, trusted):
        match = Matched(np.zeros((12, 2)), nothing, significance, trusted.ravel())
        return FittedFields.of([FieldFit(field, sigma, 0.5, True, 0.0)], [match])

    few = np.zeros((3, 4), dtype=bool)
    few.ravel()[:3] = True
    four = np.zeros((3, 4), dtype=bool)
    four.ravel()[:4] = True
    frames = [
        found(sigma, trusted),
        FittedFields.nothing(1, (5, 6), 12),
        found(9 * sigma, np.ones((3, 4), bool)),
        found(sigma, few),
        found(sigma, four),
    ]
    flags = (("inconsistent", "low-score", "uncertain", "ambiguous"), ("flat",), ("non-finite",), (), ("edge",))
    rigid = RigidShifts(np.zeros((5, 2)), flags, "first frame (0)", ("noted",), {1: "why"})
    result = result_of(FittedFields.joined(frames), rigid, against.grid, (32, 40), max_sigma=0.5)
    assert result.flags == ((), ("flat",), ("non-finite", "uncertain"), ("uncertain",), ("edge",))
    np.testing.assert_allclose(result.field.shifts[0], -np.moveaxis(field, 0, 2))
    np.testing.assert_allclose(result.field.sigma[2], np.moveaxis(9 * sigma, 0, 2))
    assert np.isnan(result.field.shifts[1]).all()
    # At an edge, the nearest patch.
    i, j = [0, 0, 1, 2, 2], [0, 0, 1, 2, 3, 3]
    np.testing.assert_array_equal(result.field.trusted[0], trusted[i][:, j])
    np.testing.assert_array_equal(result.field.significance[0], significance.reshape(3, 4)[i][:, j])
    assert not result.field.trusted[1].any()
    np.testing.assert_allclose(result.matrices[0, :2, 2], field.mean(axis=(1, 2)))
    np.testing.assert_allclose(result.matrices[0][:, :2], np.eye(3)[:, :2])
    assert np.isnan(result.matrices[1]).all()
    np.testing.assert_allclose(result.score, [0.5, np.nan, 0.5, 0.5, 0.5])
    np.testing.assert_allclose(result.sigma[0], np.median(sigma.reshape(2, -1), axis=1))
    mean = np.abs(field.mean(axis=(1, 2)))
    np.testing.assert_allclose(result.overlap[0], (1 - mean[0] / 32) * (1 - mean[1] / 40))
    assert result.overlap[1] == 0
    np.testing.assert_array_equal(result.sigma_angle, np.zeros(5))
    assert (result.model, result.shape, result.reference) == ("patches", (32, 40), "first frame (0)")
    assert (result.notes, result.unreadable) == (("noted",), {1: "why"})


def test_a_patch_is_trusted_where_it_stands_out_inside_the_search_and_with_its_neighbours():
    matcher = OfNodes().against._matcher
    level = matcher.by_chance(0.5)
    assert level == pytest.approx(4 * math.sqrt(1 + math.pi) / 16)
    shift = np.tile([1.0, -2.0], (12, 1)) + np.random.default_rng(1).normal(size=(12, 2)) * 0.1
    good = {"shift": shift, "score": np.full(12, 0.9), "significance": np.full(12, 9.0)}
    good |= {"false_alarm": np.full(12, 1e-9), "on_edge": np.zeros(12, dtype=bool)}
    assert matcher._trusted(WindowMatch(**good), np.array([level])).all()
    for name, value in (("score", level), ("on_edge", True), ("false_alarm", 0.5), ("shift", 6.0), ("shift", np.nan)):
        changed = {key: values.copy() for key, values in good.items()}
        changed[name][5] = value
        expected = np.ones(12, dtype=bool)
        expected[5] = False
        np.testing.assert_array_equal(matcher._trusted(WindowMatch(**changed), np.array([level]))[0], expected)
    unknown = good | {"false_alarm": np.full(12, np.nan)}
    assert matcher._trusted(WindowMatch(**unknown), np.array([level])).all()


def test_without_a_trusted_patch_a_field_begins_at_the_shift_of_the_frame():
    against = OfNodes().against

    def begun(trusted, rigid):
        match = Matched(np.full((12, 2), 9.0), np.full(12, 0.5), np.zeros(12), np.full(12, trusted))
        return against._matcher.field_through(match, np.array(rigid))

    np.testing.assert_array_equal(begun(False, [1.5, -2.5]), np.tile([1.5, -2.5], (30, 1)))
    np.testing.assert_allclose(begun(True, [0.0, 0.0]), np.full((30, 2), 9.0), atol=1e-6)


def test_noisier_images_are_smoothed_more(rng):
    against = OfNodes().against
    clean = drifting([(0, 0)], shape=(96, 104))[0]
    found = [against._smoothing((clean + rng.normal(size=clean.shape) * s).astype(np.float32)) for s in (0, 0.4, 1, 3)]
    assert found == [0.7, 1.0, 1.5, 2.0]


@pytest.mark.parametrize("place", [0.0, 3.4, 6.2, 7.8])
def test_the_vertex_of_a_parabola_lies_where_it_is(place):
    """Places are on a circle of eight."""
    distance = (np.arange(8) - place + 4) % 8 - 4
    values = 5 - 0.7 * distance**2
    at = int(values.argmax())
    unknown = np.where(np.arange(8) == (at + 1) % 8, -np.inf, values)
    found = _vertex(np.stack([values, -values, unknown]), np.full(3, at))
    assert (at + found[0]) % 8 == pytest.approx(place % 8)
    np.testing.assert_array_equal(found[1:], 0)  # there is no top, or its neighbour is not known


@pytest.mark.parametrize(("angle", "scale"), [(0, 1.0), (3.3, 1.0), (-41.7, 1.0), (12.4, 1.3), (80.0, 0.7)])
def test_angle_and_scale_are_read_from_spectra(angle, scale):
    rng = np.random.default_rng(11)
    scene = ndimage.gaussian_filter(rng.normal(size=(401, 401)), 2.0)
    turn, middle = np.radians(angle), np.array([200.0, 200.0])
    matrix = scale * np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    # What the scene shows at x, the frame shows at matrix @ x about the middle, and elsewhere.
    frame = ndimage.affine_transform(
        scene, np.linalg.inv(matrix), middle - np.linalg.inv(matrix) @ np.add(middle, (5, -8))
    )
    inner = np.s_[120:281, 115:286]
    spectra = spectra_of(np.stack([scene[inner], rng.normal(size=scene[inner].shape), frame[inner]]))
    found = turns_between(spectra[:1], spectra[1:], 2, scales=scale != 1)[1][0]
    assert (np.degrees(found[0]) - angle + 90) % 180 - 90 == pytest.approx(0, abs=0.25)
    assert found[1] == pytest.approx(scale, rel=0.02)


@pytest.mark.parametrize("deviation", [0.05, 1.0])
def test_standard_errors_are_the_scatter_of_the_motions(deviation):
    """Of noise that is stronger on bright parts, in the reference as in the frame."""
    clean = drifting([(0, 0), (2.3, -1.6)], (121, 131), width=0.06)
    bright = deviation * np.sqrt(np.clip(1 + clean, 0.1, None))
    model, errors, sigma = model_of("affine"), [], []
    for seed in range(24):
        first, last = clean + bright * np.random.default_rng(seed).normal(size=clean.shape)
        smoothing = gauss_newton.smoothing_for(1 / (1 + deviation**2))
        levels = gauss_newton.levels_of(gauss_newton.smoothed(first, smoothing), model)
        sizes = [gauss_newton.smoothed(last, smoothing)]
        while len(sizes) < len(levels):
            sizes.append(gauss_newton.halved(sizes[-1]))
        start = np.eye(3)
        start[:2, 2] = 2.0, -2.0
        fit = gauss_newton.refined(levels, model, sizes, start)
        errors.append(fit.motion[:2, 2] - (2.3, -1.6))
        sigma.append(np.sqrt(np.diag(fit.covariance)[:2]))
    ratio = np.sqrt(np.mean(np.square(errors)) / np.mean(np.square(sigma)))
    assert 0.8 < ratio < 1.25


def test_frames_that_lose_the_same_of_a_reference_are_told(rng):
    moved = rng.uniform(-90, 90, (40, 2))
    moved[7] = moved[3]
    lost, of_frame = kinds_lost(moved, (200, 131))
    np.testing.assert_array_equal(lost[of_frame], lost_at(moved, (200, 131)))
    assert len(np.unique(lost, axis=0)) == len(lost) < 40


@pytest.mark.parametrize(
    ("numbers", "expected"), [(range(3, 7), [(3, 7)]), ([0, 1, 4, 6, 7, 8], [(0, 2), (4, 5), (6, 9)]), ([5], [(5, 6)])]
)
def test_consecutive_frames_are_read_together(numbers, expected):
    assert whole_frames._runs(numbers) == expected


@pytest.mark.parametrize("dtype", [np.uint16, np.float32, np.float64])
def test_what_is_wrong_with_frames_is_seen_at_once(rng, dtype):
    frames = (rng.random((5, 7, 9)) * 100).astype(dtype)
    frames[1], frames[2] = 3, 0
    damaged = np.zeros(5, bool)
    if dtype != np.uint16:
        frames[2:4, 4, 5], frames[4, 0, 0] = np.nan, -np.inf
        damaged[2:] = True
    replaced, flat = whole_frames._damage(frames)
    np.testing.assert_array_equal(replaced, damaged)
    np.testing.assert_array_equal(flat, [False, True, True, False, False])


def test_steps_of_many_motions_are_those_of_each(rng):
    for model in (model_of(name) for name in MODELS):
        count = len(model.slopes(*np.zeros((4, 1, 1))))
        numbers = rng.normal(size=(4, count)) * 0.1
        np.testing.assert_array_equal(model.step(numbers), [model.step(each) for each in numbers])
