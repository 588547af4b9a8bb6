"""Parts of measuring motion and patches by themselves: references, limits, and what is made of what was found."""

import math

import numpy as np
import pytest
from scipy import ndimage

import xcorr_app as xc
from tests.registration.scenes import UnreliableFrames
from xcorr_app.errors import ArgumentError, ShapeError
from xcorr_app.registration.field.window_match import WindowMatch
from xcorr_app.registration.motion import whole_frames
from xcorr_app.registration.motion.log_polar import spectra_of, turns_between
from xcorr_app.registration.motion.models import model_of
from xcorr_app.registration.patches.patch_fit import PatchFit, PatchOptions
from xcorr_app.registration.patches.patch_match import Matched
from xcorr_app.registration.patches.patch_references import References
from xcorr_app.registration.stack.frames import ArrayFrames
from xcorr_app.registration.stack.single_reference import read_reference
from xcorr_app.registration.warping.matrices import turned


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


class OfNodes:
    """Patches of 16 pixels, half of each shared, in frames of 32 x 40."""

    def __init__(self):
        stack = np.random.default_rng(0).normal(size=(3, 32, 40)).astype(np.float32)
        self.against = PatchFit((32, 40), References(stack[0]), PatchOptions(patch=16), np)


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
