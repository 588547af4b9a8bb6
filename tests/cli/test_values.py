"""Values and choices of options."""

import pytest

from tests.batch.movies import align, record
from xcorr_app.batch import choices
from xcorr_app.batch.align import options as align_options
from xcorr_app.batch.filter.choice import _BANK_MAKERS, _MAKERS
from xcorr_app.correlation import engines, forms, plane, subpixel
from xcorr_app.filtering import bank_request, boundary, kernel_names, rounding, stains
from xcorr_app.io import Limits
from xcorr_app.io.writing import written_planes
from xcorr_app.registration import settings
from xcorr_app.registration.field import field_files
from xcorr_app.registration.reference import reference_names
from xcorr_app.registration.results import doubtful_frames


@pytest.mark.parametrize(("value", "code"), [("0,3", 1), ("1000000", 0)])
def test_extreme_windows(tmp_path, stack, value, code):
    run = align(stack, "-o", tmp_path / "out", "--max-shift", value, "--no-apply")
    assert run.code == code
    assert ("could not be trusted" in run.stdout) == bool(code)  # the frames moved farther than the window


def test_short_names(tmp_path, stack):
    words = ("-o", tmp_path / "out", "-m", "5", "-r", "last", "--no-apply", "--report", "none")
    assert align(stack, *words).code == 0
    parameters = record(tmp_path / "out")["parameters"]
    assert (parameters["max_shift"], parameters["reference"]) == (5.0, "last")


@pytest.mark.parametrize(
    ("defined", "written"),
    [
        (plane.NORMALIZATIONS, choices.NORMALIZATIONS),
        (subpixel.METHODS, choices.SUBPIXEL_METHODS),
        (settings.SUBPIXEL, choices.ALIGN_SUBPIXEL_METHODS),
        (reference_names.REFERENCES, choices.REFERENCES),
        (reference_names.NUMBERED_REFERENCES, choices.NUMBERED_REFERENCES),
        (align_options.INTERPOLATIONS, choices.INTERPOLATIONS),
        (written_planes.COMPRESSIONS, choices.COMPRESSIONS),
        (doubtful_frames.POLICIES, choices.DOUBTFUL),
        (sorted(field_files.ENDINGS), sorted(choices.FIELD_FORMATS)),
        (forms.FORMS, choices.FORMS),
        ((*_MAKERS, "taps", "bank"), choices.FILTERS),
        (_BANK_MAKERS, [form.partition(":")[0] for form in choices.BANKS]),
        (boundary.MODES, choices.BOUNDARIES),
        (kernel_names.FILTER_KERNELS, choices.FILTER_KERNELS),
        (bank_request.BANK_METHODS, choices.BANK_METHODS),
        (kernel_names.MIXING_KERNELS, choices.MIXING_KERNELS),
        (rounding.RESULT_TYPES, choices.FILTER_TYPES),
        (stains.STAINS, choices.STAINS),
        (engines.ENGINES, choices.ENGINES),
        ([plane.DEFAULT_MIN_OVERLAP, settings.DEFAULT_TOLERANCE], [choices.MIN_OVERLAP, choices.TOLERANCE]),
        ([settings.MAX_SMOOTH_TIME, Limits().max_pixels], [choices.MAX_SMOOTH_TIME, choices.MAX_PIXELS]),
    ],
)
def test_what_help_shows_is_what_is_defined(defined, written):
    assert list(defined) == list(written)
