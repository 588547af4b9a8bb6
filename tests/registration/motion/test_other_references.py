"""Motion against other references, by name and number; patches that are trusted."""

import numpy as np
import pytest

import xcorr_app as xc
from tests.registration.motion.test_motion import corner_errors, series
from tests.registration.scenes import UnreliableFrames
from xcorr_app.errors import ArgumentError
from xcorr_app.registration.motion.whole_frames import MotionMeasurement, motion_of
from xcorr_app.registration.solver.basis import basis_of
from xcorr_app.registration.stack.frames import ArrayFrames, read_reference


@pytest.mark.parametrize("model", ["rigid", "affine"])
@pytest.mark.parametrize("reference", ["previous", "template"])
def test_turns_are_found(model, reference):
    frames, truth = series(model, 5, 3, count=6, turn=0.3)
    found = xc.estimate_motion(frames, model, reference)
    assert found.trusted.all()
    assert corner_errors(found.matrices, truth, frames.shape[1:]).max() < 0.1
    errors = np.abs(found.shifts[1:] - xc.estimate_motion(frames, model).shifts[1:])
    assert (errors < 5 * found.sigma[1:] + 0.02).all()
    assert np.isnan(found.sigma[0]).all() == (reference == "previous")  # the first is compared with itself
    assert (found.sigma[1:] > 1e-6).all()


def test_steps_lead_where_the_look_changes():
    frames, truth = series("rigid", 20, 5, count=6, turn=0.05)
    change = np.linspace(0, 1, 6)[:, None, None]
    found = xc.estimate_motion((1 - change) * frames + change * frames**3, "rigid", "previous")
    assert corner_errors(found.matrices, truth, frames.shape[1:]).max() < 0.3


def test_a_doubtful_step_makes_all_that_follow_doubtful():
    frames, _ = series("rigid", 20, 3, count=6, turn=0.05)
    frames[3] = np.random.default_rng(0).normal(size=frames.shape[1:])
    found = xc.estimate_motion(frames, "rigid", "previous")
    assert found.trusted[:3].all()
    assert not found.trusted[3:].any()
    assert "inherited" in found.flags[5]


@pytest.mark.parametrize(("value", "flags"), [(7, ("flat",)), (np.nan, ("non-finite", "flat"))])
def test_frames_of_nothing_are_stepped_over(value, flags):
    frames, truth = series("rigid", 20, 3, count=5, turn=0.05)
    frames[2] = value
    for reference in ("previous", "template"):
        found = xc.estimate_motion(frames, "rigid", reference)
        assert found.flags[2] == flags
        known = [0, 1, 3, 4]
        assert corner_errors(found.matrices[known], truth[known], frames.shape[1:]).max() < 0.1


@pytest.mark.parametrize("model", ["rigid", "affine"])
def test_motions_to_the_mean_count_from_the_mean_of_all(model):
    frames, truth = series(model, 5, 3, count=6, turn=0.3)
    found, template = (xc.estimate_motion(frames, model, each) for each in ("mean", "template"))
    assert found.trusted.all()
    if model == "rigid":
        assert np.sin(np.radians(found.angle)).mean() == pytest.approx(0, abs=1e-6)
    np.testing.assert_allclose(found.shifts.mean(axis=0), 0, atol=0.1)
    # Between frames the same, whatever they count from.
    steps, same, true = (each[1:] @ np.linalg.inv(each[:-1]) for each in (found.matrices, template.matrices, truth))
    assert corner_errors(steps, same, frames.shape[1:]).max() < 1e-6
    assert corner_errors(steps, true, frames.shape[1:]).max() < 0.1


def test_the_mean_finds_faint_frames_that_one_of_them_does_not():
    (scene, *_), _ = series("rigid", 1e6, 3, count=2)
    rng = np.random.default_rng(7)
    still = scene + 9 * scene.std() * rng.normal(size=(40, *scene.shape))
    found, template = (xc.estimate_motion(still, "rigid", each) for each in ("mean", "template"))
    assert found.trusted.sum() > template.trusted.sum()
    assert np.abs(found.shifts[found.trusted]).max() < 1.5


def test_a_reference_that_cannot_be_read_is_refused(rng):
    stack = rng.normal(size=(4, 40, 44))
    frames = UnreliableFrames(stack, {2: "it is cut short"})
    with pytest.raises(ArgumentError, match="frame 2, cannot be read: it is cut short"):
        motion_of(MotionMeasurement(frames, basis_of("rigid")), 2)
    found = motion_of(MotionMeasurement(frames, basis_of("translation")), 0)
    assert found.flags[2] == ("unreadable",)
    assert found.unreadable == {2: "it is cut short"}


@pytest.mark.parametrize(
    ("wanted", "number", "described"),
    [
        ("first", 1, "first (1)"),
        ("last", 2, "last (2)"),
        (1, 1, "frame (1)"),
        (-2, 2, "frame (2)"),
        (-4, 0, "frame (0)"),
    ],
)
def test_a_reference_by_name_and_number(rng, wanted, number, described):
    # What shows nothing gives way, unless it is asked for.
    stack = rng.normal(size=(4, 40, 44)) * np.array([0, 1, 1, np.nan])[:, None, None]
    image, frame, words = read_reference(ArrayFrames(stack), wanted, "")
    np.testing.assert_array_equal(image, stack[number])
    assert (frame, words) == (number, described)
