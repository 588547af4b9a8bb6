"""Parts of measuring motion and patches by themselves: references, limits, and what is made of what was found."""

import math

import numpy as np
import pytest

from tests.registration.scenes import UnreliableFrames
from xcorr_app.errors import ArgumentError
from xcorr_app.registration.field.window_match import WindowMatch
from xcorr_app.registration.motion.whole_frames import Measuring, motion_of
from xcorr_app.registration.patches.patch_fit import PatchFit, PatchOptions
from xcorr_app.registration.solver.basis import basis_of
from xcorr_app.registration.stack.frames import ArrayFrames
from xcorr_app.registration.stack.single_reference import read_reference


def test_a_reference_that_cannot_be_read_is_refused(rng):
    stack = rng.normal(size=(4, 40, 44))
    frames = UnreliableFrames(stack, {2: "it is cut short"})
    with pytest.raises(ArgumentError, match="frame 2, cannot be read: it is cut short"):
        motion_of(Measuring(frames, basis_of("rigid")), 2)
    found = motion_of(Measuring(frames, basis_of("translation")), 0)
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


class OfNodes:
    """Patches of 16 pixels, half of each shared, in frames of 32 x 40."""

    def __init__(self):
        stack = np.random.default_rng(0).normal(size=(3, 32, 40)).astype(np.float32)
        self.against = PatchFit(3, stack[0], None, PatchOptions(patch=16), np)


def test_a_patch_is_trusted_where_it_stands_out_inside_the_search_and_with_its_neighbours():
    matcher = OfNodes().against.matcher
    level = matcher.by_chance(0.5)
    assert level == pytest.approx(4 * math.sqrt(1 + math.pi) / 16)

    def trusted(found):
        return matcher.trusted(WindowMatch(**{name: values[None] for name, values in found.items()}), 0.5)

    shift = np.tile([1.0, -2.0], (12, 1)) + np.random.default_rng(1).normal(size=(12, 2)) * 0.1
    good = {"shift": shift, "score": np.full(12, 0.9), "significance": np.full(12, 9.0)}
    good |= {"false_alarm": np.full(12, 1e-9), "on_edge": np.zeros(12, dtype=bool)}
    assert trusted(good).all()
    for name, value in (("score", level), ("on_edge", True), ("false_alarm", 0.5), ("shift", 6.0), ("shift", np.nan)):
        changed = {key: values.copy() for key, values in good.items()}
        changed[name][5] = value
        expected = np.ones(12, dtype=bool)
        expected[5] = False
        np.testing.assert_array_equal(trusted(changed)[0], expected)
    unknown = good | {"false_alarm": np.full(12, np.nan)}
    assert trusted(unknown).all()
