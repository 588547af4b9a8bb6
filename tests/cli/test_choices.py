"""What help offers is what there is: the written-out choices against the tables they stand for."""

from __future__ import annotations

from xcorr_app.batch import choices
from xcorr_app.batch.align import options as align_options
from xcorr_app.batch.filter.choice import BANKS, FILTERS
from xcorr_app.correlation import engines, forms, plane, subpixel
from xcorr_app.filtering import bank_request, boundary, kernel_names, rounding, stains
from xcorr_app.filtering.engines.choice import EVERY_ENGINE
from xcorr_app.gpu.runtime.limits import KNOWN_DEVICES
from xcorr_app.io import Limits
from xcorr_app.io.writing import written_planes
from xcorr_app.registration import settings
from xcorr_app.registration.field import field_files
from xcorr_app.registration.reference import strategies
from xcorr_app.registration.results import doubtful_frames


def test_choices() -> None:
    assert plane.NORMALIZATIONS == choices.NORMALIZATIONS
    assert subpixel.METHODS == choices.SUBPIXEL_METHODS
    assert settings.SUBPIXEL == choices.ALIGN_SUBPIXEL_METHODS
    assert strategies.REFERENCES == choices.REFERENCES
    assert strategies.NUMBERED_REFERENCES == choices.NUMBERED_REFERENCES
    assert tuple(align_options.INTERPOLATIONS) == choices.INTERPOLATIONS
    assert written_planes.COMPRESSIONS == choices.COMPRESSIONS
    assert doubtful_frames.POLICIES == choices.DOUBTFUL
    assert set(choices.FIELD_FORMATS) == set(field_files.ENDINGS)
    assert tuple(forms.FORMS) == choices.FORMS
    assert tuple(FILTERS) == choices.FILTERS
    assert tuple(BANKS.values()) == choices.BANKS
    assert boundary.MODES == choices.BOUNDARIES
    assert tuple(EVERY_ENGINE) == choices.FILTER_ENGINES
    assert kernel_names.FILTER_KERNELS == choices.FILTER_KERNELS
    assert bank_request.BANK_METHODS == choices.BANK_METHODS
    assert kernel_names.MIXING_KERNELS == choices.MIXING_KERNELS
    assert rounding.RESULT_TYPES == choices.FILTER_TYPES
    assert tuple(stains.STAINS) == choices.STAINS


def test_engines_and_devices() -> None:
    assert tuple(engines.ENGINES) == choices.ENGINES
    assert tuple(KNOWN_DEVICES) == choices.DEVICES


def test_defaults() -> None:
    assert plane.DEFAULT_MIN_OVERLAP == choices.MIN_OVERLAP
    assert settings.MAX_SMOOTH_TIME == choices.MAX_SMOOTH_TIME
    assert settings.DEFAULT_TOLERANCE == choices.TOLERANCE
    assert Limits().max_pixels == choices.MAX_PIXELS
