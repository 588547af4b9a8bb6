"""The check finds an engine that is wrong, and finds nothing in one that is right."""

import numpy as np
import pytest

from tests.registration.scenes import EVERY_REFERENCE, drifting, noise
from xcorr_app import estimate_shifts
from xcorr_app.correlation import overlap
from xcorr_app.correlation.engines import ENGINES
from xcorr_app.correlation.engines.fft import FFT
from xcorr_app.registration.measuring.matcher import Matcher
from xcorr_app.registration.measuring.verification import scores_by_definition

OUTER = [(row, column) for row, column in np.ndindex(5, 5) if {row, column} & {0, 4}]
DRIFT = np.array([(0, 0), (1.2, -2.3), (3.4, 1.1), (5, 4), (-3.3, 2.7)])


class PlantedError:
    """The FFT engine with its planes spoilt on the way out."""

    name = "planted"

    def __init__(self, spoil):
        self._spoil = spoil

    def unavailable(self, xp):
        return None

    def bind(self, left_shape, right_shape, window, xp):
        correlator, spoil = FFT.bind(left_shape, right_shape, window, xp), self._spoil

        class Spoilt:
            left, right = staticmethod(correlator.left), staticmethod(correlator.right)

            @staticmethod
            def sums(left, right):
                return spoil(correlator.sums(left, right).copy(), xp)

        return Spoilt()


ERRORS = {
    "moved by one row": lambda planes, xp: xp.roll(planes, 1, axis=-2),
    "moved by one column": lambda planes, xp: xp.roll(planes, -1, axis=-1),
    "scaled": lambda planes, xp: planes * 0.99,
    "transposed": lambda planes, xp: (
        planes.swapaxes(-1, -2) if planes.shape[-1] == planes.shape[-2] else planes[..., ::-1]
    ),
    "turned around": lambda planes, xp: planes[..., ::-1, ::-1],
    "not a number": lambda planes, xp: planes * np.nan,
}


@pytest.mark.share(4)
@pytest.mark.parametrize("spoil", ERRORS)
@pytest.mark.parametrize("reference", ["first", "mean"])
def test_a_wrong_engine_is_found_out(xp, monkeypatch, spoil, reference):
    monkeypatch.setitem(ENGINES, "planted", PlantedError(ERRORS[spoil]))
    result = estimate_shifts(xp.asarray(drifting(DRIFT)), reference, 9, engine="planted", verify="all")
    # Turned or transposed, the plane of a frame with itself is still right.
    suspects = range(1, len(DRIFT)) if reference == "first" else range(len(DRIFT))
    assert all("disagrees" in result.flags[t] for t in suspects)
    assert result.engine == "planted"


@pytest.mark.parametrize("place", [(0, 0), (1, 0), (-1, 1), (2, -2)])
@pytest.mark.parametrize("factor", [1.01, 0.98])
def test_one_wrong_value_at_or_near_the_peak_is_found_out(xp, monkeypatch, place, factor):
    def spoil(planes, xp):
        row, column = planes.shape[-2] // 2 - 3 + place[0], planes.shape[-1] // 2 + 2 + place[1]
        planes[..., row, column] *= factor
        return planes

    monkeypatch.setitem(ENGINES, "planted", PlantedError(spoil))
    stack = drifting([(0, 0), (3, -2)])
    stack = xp.asarray(stack + noise(stack, 0.2))  # the score stays away from 1, at which it is clipped
    result = estimate_shifts(stack, "first", 9, engine="planted", verify="all")
    assert "disagrees" in result.flags[1]


@pytest.mark.parametrize(
    ("lacking", "found_out"),
    [
        (OUTER, ""),
        ([(0, 3)], "01234"),
        ([(1, 2)], "01234"),
        ([*OUTER, (2, 3)], "01234"),
        (list(np.ndindex(5, 5)), "01234"),
        (None, "2"),
    ],
)
def test_what_an_engine_lacks_is_found_out_but_all_of_the_outer_values(monkeypatch, lacking, found_out):
    """Values around peaks, or a shift whose values around the peak are right."""
    compare = Matcher.compare

    def without(self, *arguments):
        compared = compare(self, *arguments)
        if lacking is None:
            compared.match.shift[2] = np.nan
        else:
            compared.match.around[:, *np.transpose(lacking)] = np.nan
        return compared

    monkeypatch.setattr(Matcher, "compare", without)
    result = estimate_shifts(drifting(DRIFT), "first", 9, verify="all")
    assert "".join(str(t) for t, flags in enumerate(result.flags) if "disagrees" in flags) == found_out


@pytest.mark.share(4)
@pytest.mark.parametrize("reference", [*EVERY_REFERENCE, 2])
@pytest.mark.parametrize("engine", ["fft", "definition"])
def test_right_engines_agree_with_the_reference(reference, engine):
    stack = drifting(DRIFT, shape=(36, 40))
    result = estimate_shifts(stack, reference, 8, engine=engine, verify="all")
    assert not any("disagrees" in flags for flags in result.flags)
    assert result.difference.max() < 1e-3
    np.testing.assert_allclose(result.fft_shifts, result.shifts, atol=1e-3)


@pytest.mark.parametrize(
    ("verify", "expected"),
    [("none", []), (0, []), (1, [0]), (2, [0, 4]), (3, [0, 2, 4]), ("all", range(5)), (99, range(5))],
)
def test_the_frames_asked_for_are_verified(xp, verify, expected):
    result = estimate_shifts(xp.asarray(drifting(DRIFT)), "first", 9, verify=verify)
    assert np.flatnonzero(np.isfinite(result.difference)).tolist() == list(expected)
    assert np.flatnonzero(np.isfinite(result.fft_shifts).all(axis=1)).tolist() == list(expected)


@pytest.mark.share(4)
@pytest.mark.parametrize("reference", EVERY_REFERENCE)
def test_verifying_changes_no_result(reference):
    stack = drifting(DRIFT)
    plainly, verified = (estimate_shifts(stack, reference, 9, verify=verify) for verify in ("none", "all"))
    np.testing.assert_allclose(verified.shifts, plainly.shifts, atol=1e-9)
    np.testing.assert_allclose(verified.score, plainly.score, atol=1e-9)
    assert verified.flags == plainly.flags


def test_the_tolerance_is_what_a_shift_may_differ_by():
    stack = drifting(DRIFT)
    differences = estimate_shifts(stack, "first", 9, engine="definition", verify="all").difference
    largest = float(np.nanmax(differences))
    assert largest > 0
    for tolerance, found in ((largest * 0.97, True), (largest * 1.03, False)):
        result = estimate_shifts(stack, "first", 9, engine="definition", verify="all", tolerance=tolerance)
        assert any("disagrees" in flags for flags in result.flags) == found


def test_a_peak_that_is_lower_in_the_reference_is_no_tie(monkeypatch):
    monkeypatch.setitem(ENGINES, "planted", PlantedError(ERRORS["moved by one column"]))
    stack = np.zeros((2, 3, 5))
    stack[:, 1, 2] = 1
    result = estimate_shifts(stack, "first", 1, engine="planted", verify="all", subpixel="none")
    assert all("disagrees" in flags for flags in result.flags)
    np.testing.assert_array_equal(result.fft_shifts, 0)


def test_an_overlap_without_variance_has_no_score():
    left = np.array([[6.0, 2, 8], [4, 4, 4]]) / 3  # rounding is all that its second row varies by
    right = np.array([[5.0, 4, 4], [8, 7, 7]])
    left, right = (matrix - matrix.mean() for matrix in (left, right))
    scores = scores_by_definition(left[None], right[None], np.array([(0, 0)]), 0.0)[0]
    assert np.isnan(scores[3, :]).all()
    assert np.isfinite(scores[2, 1:4]).all()


def test_an_error_in_what_all_engines_share_is_found_out(monkeypatch, rng):
    stack = drifting([(0, 0), (3, -2)])
    stack = stack + noise(stack, 0.2)
    real = overlap.sums_by_tables

    def planted(*arguments):
        return tuple(0.9 * sums for sums in real(*arguments))

    monkeypatch.setattr(overlap, "sums_by_tables", planted)
    assert "disagrees" in estimate_shifts(stack, "first", 9, verify="all").flags[1]
