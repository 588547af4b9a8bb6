"""Where a processor and a device are given different forms of a sum, both are run here, with NumPy, and compared."""

from __future__ import annotations

import functools
import importlib
from typing import Any

import numpy as np
import pytest
import scipy.ndimage

import xcorr_app as xc
from tests.registration.scenes import drifting, noise

DRIFT = np.array([(0, 0), (1.5, -2.25), (3.25, 1), (-4.5, 4), (2, 5.75), (-1, -3.5), (0.5, 2)])


class Other:
    """NumPy under another name, as a device's library is one."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, _array: object) -> Other:
        self.asked += 1
        return self

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


def stack(shape=(90, 101)):
    clean = drifting(DRIFT, shape, width=0.06)
    return (clean + noise(clean, 0.3)).astype(np.float32)


def shifts(reference="first", **options):
    found = xc.estimate_shifts(stack(), reference, 9, verify="all", **options)
    return [np.asarray(getattr(found, name)) for name in ("shifts", "score", "sigma", "significance", "peak_ratio")]


def masked():
    seen = np.ones((90, 101), bool)
    seen[30:50, 40:70] = False
    found = xc.estimate_shifts(stack(), "first", 9, mask=seen)
    return [found.shifts, found.score, found.sigma]


def rated():
    frames = stack()
    found = xc.estimate_shifts(frames, "first", 9)
    rating = xc.assess(frames, xc.apply_shifts(frames, found.applied()), found)
    return [np.asarray(value, float) for value in vars(rating).values() if isinstance(value, float | np.ndarray)]


def field():
    found = xc.displacement_field(*stack((120, 130))[:2], window=24)
    return [found.displacement, found.score, found.significance]


def bent():
    found = xc.estimate_motion(stack((160, 170))[:3], "patches")
    return [found.field.shifts, found.score]


@functools.cache
def on_host(measure):
    return measure()


FORMS = [
    ("correlation.peaks", shifts, 1e-6),
    ("correlation.overlap", shifts, 1e-6),
    ("correlation.subpixel", shifts, 1e-6),
    ("correlation.standardize", shifts, 1e-4),
    ("correlation.common_overlap", shifts, 1e-6),
    ("registration.quality", shifts, 1e-4),
    ("registration.standard_error.uncertainty", shifts, 1e-4),
    ("registration.standard_error.reference_slopes", shifts, 1e-4),
    ("registration.standard_error.slope_tiles", shifts, 1e-4),
    ("registration.standard_error.significance", shifts, 1e-6),
    ("registration.measuring.icgn", lambda: shifts(subpixel="icgn"), 1e-5),
    ("registration.pattern.layers", lambda: shifts("mean"), 1e-4),
    ("registration.reference.earlier_frames", lambda: shifts("rolling:3"), 1e-5),
    ("registration.assessment_sums", rated, 1e-4),
    ("registration.masked.refine", masked, 1e-4),
    ("registration.field.window_match", field, 1e-4),
    ("registration.warping.displacement", bent, 2e-3),
]


@pytest.mark.parametrize(("module", "measure", "tolerance"), FORMS, ids=[name for name, _, _ in FORMS])
def test_the_form_for_devices_finds_the_same(monkeypatch, module, measure, tolerance):
    on_host(measure)
    other, place = Other(), importlib.import_module(f"xcorr_app.{module}")
    monkeypatch.setattr(place, "array_namespace", other)
    if hasattr(place, "ndimage_of"):
        monkeypatch.setattr(place, "ndimage_of", lambda _: scipy.ndimage)
    found = measure()
    assert other.asked
    for one, same in zip(found, on_host(measure), strict=True):
        np.testing.assert_allclose(one, same, rtol=tolerance, atol=tolerance)
