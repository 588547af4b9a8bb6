"""Peaks of finished planes as shifts, and their agreement with the FFT reference."""

from __future__ import annotations

import numpy as np
import pytest

from tests.correlation import plain
from xcorr_app import ShiftWindow, cross_correlate
from xcorr_app.correlation.definition import correlate_by_definition
from xcorr_app.correlation.forms import FORMS
from xcorr_app.correlation.plane_peaks import compare_peaks, fft_reference, peaks_of_planes
from xcorr_app.gpu.runtime.arrays import array_namespace, to_host

WINDOW = ShiftWindow(-7, 8, -3, 12)


def hill(dy, dx, window=WINDOW, height=1.0, width=2.0):
    """A Gaussian hill over a window, with its top between whole pixels."""
    y, x = np.meshgrid(window.dys, window.dxs, indexing="ij")
    return height * np.exp(-((y - dy) ** 2 + (x - dx) ** 2) / (2 * width**2))


def test_peak_of_a_gaussian_hill_is_found_between_pixels(xp):
    tops = np.array([[2.3, 4.6], [-4.0, 9.25], [0.0, 0.0]])
    planes = xp.asarray(np.stack([hill(dy, dx) for dy, dx in tops]))
    peaks = peaks_of_planes(planes, WINDOW)
    np.testing.assert_array_equal(peaks.peak, [[2, 5], [-4, 9], [0, 0]])
    np.testing.assert_allclose(peaks.shift, tops, atol=1e-6)
    np.testing.assert_array_equal(peaks.value, to_host(planes).max(axis=(1, 2)))
    assert not peaks.on_edge.any()


@pytest.mark.parametrize(
    ("dy", "dx", "edge"), [(-7, 5, True), (8, 5, True), (2, -3, True), (2, 12, True), (-6, 11, False), (7, -2, False)]
)
def test_a_peak_on_the_edge_of_the_window_is_marked(xp, dy, dx, edge):
    peaks = peaks_of_planes(xp.asarray(hill(dy, dx)), WINDOW)
    assert peaks.peak.tolist() == [[dy, dx]]
    assert peaks.on_edge.tolist() == [edge]


def test_a_peak_beside_an_invalid_shift_is_on_the_edge():
    plane = hill(2, 5)
    plane[:, : 5 - WINDOW.dx_min] = np.nan
    assert peaks_of_planes(plane, WINDOW).on_edge.tolist() == [True]


@pytest.mark.parametrize(("window", "edge"), [(ShiftWindow(0, 0, 0, 0), False), (ShiftWindow(0, 0, -2, 2), False)])
def test_an_axis_of_one_shift_has_no_edge(window, edge):
    assert peaks_of_planes(hill(0, 0, window), window).on_edge.tolist() == [edge]


def test_a_plane_without_a_valid_shift_has_no_peak(xp):
    planes = np.stack([np.full(WINDOW.shape, np.nan), hill(1, 1)])
    peaks = peaks_of_planes(xp.asarray(planes), WINDOW)
    assert np.isnan(peaks.value).tolist() == [True, False]
    assert np.isnan(peaks.shift[0]).all()
    assert peaks.on_edge.tolist() == [False, False]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("normalization", ["zncc", "none"])
def test_reference_is_the_definition(xp, rng, form, normalization):
    left, right = plain.operands(form, (20, 17), (14, 23), lambda shape: rng.integers(0, 9, shape).astype(np.uint8))
    reference = fft_reference(xp.asarray(left), xp.asarray(right), form, WINDOW, normalization, 0.3)
    assert reference.dtype == np.float64
    assert array_namespace(reference) is xp

    def of_pair(f, g):
        if normalization == "none":
            return correlate_by_definition(f, g, WINDOW)
        return plain.zncc(f, g, WINDOW, 0.3)

    np.testing.assert_allclose(to_host(reference), plain.every_pair(left, right, form, of_pair), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("normalization", ["zncc", "none", "phase"])
def test_planes_in_single_precision_agree_with_the_reference(xp, rng, normalization):
    right = rng.normal(size=(4, 40, 44)).astype(np.float32)
    left = np.roll(right[2], (3, 5), axis=(0, 1))
    operands = xp.asarray(left), xp.asarray(right)
    planes = cross_correlate(*operands, "one-to-many", WINDOW, normalization=normalization)
    peaks = peaks_of_planes(planes, WINDOW)
    assert peaks.peak[2].tolist() == [3, 5]
    agreement = compare_peaks(peaks, fft_reference(*operands, "one-to-many", WINDOW, normalization), WINDOW)
    assert agreement.holds(0.01).all()
    assert not agreement.holds(0.0).all()
    assert 0 < agreement.difference.max() < 1e-4
    assert agreement.value_error.max() < 1e-5


def test_a_plane_that_is_too_high_does_not_agree():
    planes = np.stack([hill(2, 5), hill(2, 5, height=1.01), -1 - hill(2, 5)])
    agreement = compare_peaks(peaks_of_planes(planes, WINDOW), np.stack([hill(2, 5)] * 2 + [planes[2]]), WINDOW)
    np.testing.assert_allclose(agreement.value_error, [0, 0.01, 0], atol=1e-9)
    assert agreement.holds(0.01).tolist() == [True, False, True]


def test_planes_without_a_peak_do_not_agree():
    nothing = np.full(WINDOW.shape, np.nan)
    agreement = compare_peaks(
        peaks_of_planes(np.stack([nothing, hill(2, 5), nothing]), WINDOW),
        np.stack([hill(2, 5), nothing, nothing]),
        WINDOW,
    )
    assert not agreement.holds(np.inf).any()
    for column in (agreement.difference, agreement.value_error, agreement.lead):
        assert np.isnan(column).all()
