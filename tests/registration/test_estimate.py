"""Known drift is found: against every reference, with every normalisation, method, prefilter and window."""

import numpy as np
import pytest

from tests import share
from tests.registration.scenes import EVERY_REFERENCE, drifting
from xcorr_app import estimate_shifts
from xcorr_app.batch.align.options import AlignOptions
from xcorr_app.correlation.subpixel import METHODS

WHOLE = np.array([(0, 0), (1, -2), (3, 1), (5, 4), (2, 6), (-3, 2), (-4, -5)], dtype=float)
FRACTIONS = np.array([(0, 0), (0.3, -0.4), (1.25, -1.5), (2.6, -3.1), (4.45, -3.9), (5.5, -5.05), (6.7, -5.8)])
ACCURACY = {"gaussian": 0.02, "dft": 0.04, "quadratic": 0.08, "parabolic": 0.1, "none": 0.5 + 1e-9}
"""Pixels, on a clean scene of 64 x 72; the content that enters and leaves is what limits them."""


def relative(shifts, to):
    """Shifts with a common one removed, so that frame `to` stays; templates and means fix shifts only up to that."""
    return shifts - shifts[to]


@pytest.mark.parametrize("displacements", [WHOLE, FRACTIONS], ids=["whole", "fractions"])
@pytest.mark.parametrize("reference", ["first", "last", 3, -2, "previous"])
def test_drift_against_a_frame(xp, displacements, reference):
    stack = drifting(displacements)
    result = estimate_shifts(xp.asarray(stack), reference, 12)
    origin = {"first": 0, "last": 6, 3: 3, -2: 5, "previous": 0}[reference]
    np.testing.assert_allclose(result.shifts, displacements[origin] - displacements, atol=0.05)
    assert result.shifts.dtype == np.float64
    assert result.flags == ((),) * len(displacements)
    if reference != "previous":
        np.testing.assert_allclose(result.shifts[origin], 0, atol=1e-5)
        assert result.score[origin] == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("displacements", [WHOLE, FRACTIONS], ids=["whole", "fractions"])
def test_drift_against_a_template(xp, displacements):
    result = estimate_shifts(xp.asarray(drifting(displacements)), "template", 12)
    np.testing.assert_allclose(result.shifts, -displacements, atol=0.15)
    assert "rounds" in result.reference


@pytest.mark.parametrize("reference", ["mean", "template"])
def test_drift_against_a_mean_or_template_of_a_stack_that_mostly_stands_still(xp, reference):
    displacements = np.zeros((12, 2))
    displacements[[4, 9]] = (3, -2), (-4.5, 1.5)
    result = estimate_shifts(xp.asarray(drifting(displacements)), reference, 12)
    np.testing.assert_allclose(relative(result.shifts, 0), -displacements, atol=0.15)


def test_drift_against_an_image(xp):
    stack = drifting([(0, 0), *FRACTIONS])
    result = estimate_shifts(xp.asarray(stack[1:]), xp.asarray(stack[0]), 12)
    np.testing.assert_allclose(result.shifts, -FRACTIONS, atol=0.05)
    assert result.reference == "image"


@pytest.mark.parametrize("method", METHODS)
def test_accuracy_of_every_subpixel_method(xp, method):
    stack = drifting(FRACTIONS, width=0.06)
    result = estimate_shifts(xp.asarray(stack), "first", 12, subpixel=method)
    assert np.abs(result.shifts + FRACTIONS).max() <= ACCURACY[method]


@pytest.mark.parametrize(("normalization", "tolerance"), [("zncc", 0.03), ("phase", 0.5), ("none", 1.0)])
def test_every_normalisation_finds_a_fine_scene(xp, normalization, tolerance):
    stack = drifting(FRACTIONS, width=0.1)
    result = estimate_shifts(xp.asarray(stack), "first", 12, normalization=normalization)
    np.testing.assert_allclose(result.shifts, -FRACTIONS, atol=tolerance)
    assert (result.score > 0.5).all()  # the score is that of zncc whatever the normalisation


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "uint32", "float16", "float32", "float64", ">u2", ">f4"])
def test_every_type_of_pixel(xp, dtype):
    """References beside the first are means of frames of one type, whichever that was: for some types."""
    if xp is not np and dtype.startswith(">"):
        pytest.skip("device arrays have the byte order of the machine")
    stack = drifting(WHOLE, contrast=25, offset=120).astype(dtype)
    others = ("mean", "template", "previous")
    for reference in ("first", *(name for name in others if share.holds(f"{name} {dtype}", 4))):
        result = estimate_shifts(xp.asarray(stack), reference, 12)
        if reference in ("first", "previous"):
            np.testing.assert_allclose(result.shifts, -WHOLE, atol=0.05)
        assert np.isfinite(result.shifts).all()


@pytest.mark.share(4)
@pytest.mark.parametrize("reference", EVERY_REFERENCE)
@pytest.mark.parametrize("scale", [1e-60, 1e60])
def test_the_unit_of_the_pixels_does_not_matter(xp, reference, scale):
    stack = drifting(WHOLE, offset=3)
    expected = estimate_shifts(xp.asarray(stack), reference, 12).shifts
    result = estimate_shifts(xp.asarray(stack * scale), reference, 12)
    np.testing.assert_allclose(result.shifts, expected, atol=1e-3)


def test_roi_measures_its_part_only(xp):
    stack = drifting(FRACTIONS)
    still = drifting(np.zeros((len(FRACTIONS), 2)), seed=9)
    stack[:, :, :24] = 20 * still[:, :, :24]  # a bright part that stands still
    result = estimate_shifts(xp.asarray(stack), "first", 8, roi=(slice(4, 60), slice(24, None)))
    np.testing.assert_allclose(result.shifts, -FRACTIONS, atol=0.05)
    whole = estimate_shifts(xp.asarray(stack), "first", 8, contrast="none")
    assert np.abs(whole.shifts).max() < 0.1  # that part takes over without it


def test_default_window_is_a_quarter_of_what_is_measured(xp):
    stack = xp.asarray(drifting(WHOLE))
    window = estimate_shifts(stack).window
    assert (window.dy_max, window.dx_max, window.dy_min, window.dx_min) == (16, 18, -16, -18)
    window = estimate_shifts(stack, roi=(slice(0, 30), slice(0, 41))).window
    assert (window.dy_max, window.dx_max) == (8, 11)


@pytest.mark.parametrize(
    ("max_shift", "expected"),
    [(6, (6, 6)), (6.2, (7, 7)), ((9, 6), (9, 6)), (np.array([6, 8]), (6, 8)), (1000, (63, 71)), ((6, 500), (6, 71))],
    ids=str,
)
def test_forms_of_max_shift(xp, max_shift, expected):
    result = estimate_shifts(xp.asarray(drifting(WHOLE)), "first", max_shift)
    assert (result.window.dy_max, result.window.dx_max) == expected
    inside = np.abs(WHOLE).max(axis=1) < min(expected)
    np.testing.assert_allclose(result.shifts[inside], -WHOLE[inside], atol=0.05)


def test_max_shift_of_one_axis(xp):
    displacements = np.array([(0, 0), (0, 3), (0, -5.3)])
    result = estimate_shifts(xp.asarray(drifting(displacements)), "first", (0, 8))
    np.testing.assert_allclose(result.shifts, -displacements, atol=0.05)
    assert result.flags == ((), (), ())


def test_a_shift_beyond_a_window_of_zero_is_no_result_to_trust(xp):
    displacements = np.array([(0, 0), (0.2, -0.2), (2, -3)])
    result = estimate_shifts(xp.asarray(drifting(displacements)), "first", 0)
    assert result.flags[0] == result.flags[1] == ()
    assert "edge" in result.flags[2]
    assert AlignOptions(max_shift=0).settings.max_shift == 0  # the command measures fractions of a pixel, too


PREFILTERS = ["gaussian:1.5", "highpass:6", "dog:1,6", "log:1.5", "median:3", "sobel"]


@pytest.mark.share(2)
@pytest.mark.parametrize("prefilter", PREFILTERS)
def test_prefilters_keep_the_drift(xp, prefilter):
    result = estimate_shifts(xp.asarray(drifting(WHOLE, width=0.06)), "first", 12, prefilter=prefilter)
    np.testing.assert_allclose(result.shifts, -WHOLE, atol=0.15)


def test_noise_lowers_the_score_but_keeps_the_shift(xp):
    result = estimate_shifts(xp.asarray(drifting(FRACTIONS, width=0.04, shape=(96, 96), noisy=0.5)), "first", 12)
    np.testing.assert_allclose(result.shifts, -FRACTIONS, atol=0.25)
    assert (result.score[1:] < 0.9).all()
    assert all(not flags for flags in result.flags)


def test_a_frame_as_fine_as_noise_lies_on_itself(xp):
    for seed in range(30):
        frame = np.random.default_rng(seed).normal(size=(1, 64, 64))
        result = estimate_shifts(xp.asarray(frame), "first", 8)
        np.testing.assert_allclose(result.shifts, 0, atol=1e-5)
        assert result.score[0] == pytest.approx(1.0, abs=1e-5)


def test_points_of_one_pixel_are_followed(xp, rng):
    canvas = np.where(rng.random((120, 120)) < 0.05, rng.uniform(1, 5, (120, 120)), 0) + 0.05 * rng.normal(
        size=(120, 120)
    )
    displacements = np.array([(0, 0), (3, -2), (-7, 5)])
    stack = np.stack([canvas[20 - dy : 84 - dy, 20 - dx : 84 - dx] for dy, dx in displacements])
    result = estimate_shifts(xp.asarray(stack), "first", 10)
    np.testing.assert_allclose(result.shifts, -displacements, atol=0.1)
    assert result.flags == ((), (), ())


def test_views_that_are_not_contiguous_give_the_same(xp):
    stack = drifting(WHOLE[:4])
    given = xp.asarray(np.asfortranarray(np.repeat(stack, 2, axis=2)))[:, :, ::2]
    result = estimate_shifts(given, "first", 12)
    np.testing.assert_allclose(result.shifts, estimate_shifts(xp.asarray(stack), "first", 12).shifts, atol=1e-5)
