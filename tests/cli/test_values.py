"""Values and choices of options."""

from __future__ import annotations

import pytest

from tests.batch.movies import align, record, write_movie, xcorr
from xcorr_app.batch import choices
from xcorr_app.batch.align import options as align_options
from xcorr_app.batch.filter.choice import _BANK_MAKERS, _MAKERS
from xcorr_app.correlation import engines, forms, plane, subpixel
from xcorr_app.filtering import bank_request, boundary, kernel_names, rounding, stains
from xcorr_app.filtering.engines.choice import EVERY_ENGINE
from xcorr_app.gpu.runtime.limits import KNOWN_DEVICES
from xcorr_app.io import Limits
from xcorr_app.io.writing import written_planes
from xcorr_app.registration import settings
from xcorr_app.registration.field import field_files
from xcorr_app.registration.reference import reference_names
from xcorr_app.registration.results import doubtful_frames


@pytest.fixture(scope="module")
def stack(tmp_path_factory):
    return write_movie(tmp_path_factory.mktemp("values") / "m.tif")


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--roi", "0:999,0:9", "do not lie inside 0:40"),
        ("--reference", "-9", "the stack has frames 0 to 3"),
        ("--max-pixels", "5", "allow it with --max-pixels 1920"),
    ],
)
def test_value_that_does_not_fit_a_stack_fails_that_stack(tmp_path, stack, option, value, words):
    run = align(stack, "-o", tmp_path / "out", option, value)
    assert run.code == 1
    assert words in run.stdout


@pytest.mark.parametrize(("value", "code"), [("0,3", 1), ("1000000", 0)])
def test_extreme_windows(tmp_path, stack, value, code):
    run = align(stack, "-o", tmp_path / "out", "--max-shift", value, "--no-apply")
    assert run.code == code
    assert ("could not be trusted" in run.stdout) == bool(code)  # the frames moved farther than the window


@pytest.mark.parametrize(
    ("words", "now", "parameter", "value"),
    [
        ("align --verify all --tolerance 0.5", "--verify all:0.5 now", "verify", "all:0.5"),
        ("align --max-sigma 0.2", "--doubtful interpolate:0.2 now", "doubtful", "interpolate:0.2"),
        ("align --pyramid 2", "--format ome-zarr:2 now", "format", "ome-zarr:2"),
        ("align --pyramid 1", "--pyramid 1 changes nothing: leave it out", "format", "same"),
        ("align --patch 20", "--motion patches:20 now", "motion", "patches:20"),
        ("filter --box 3 --cval 5 --mode constant", "--mode is --border constant now", "border", "constant"),
    ],
)
def test_options_of_the_last_release_are_taken_and_said_to_go(tmp_path, stack, words, now, parameter, value):
    command, *options = words.split()
    run = xcorr(command, stack, "-o", tmp_path / "out", "--device", "cpu", *options)
    assert run.code == 0
    assert now in run.stderr
    assert record(tmp_path / "out")["parameters"][parameter] == value
    assert bool(list((tmp_path / "out").glob("*/*.tif"))) == (value != "ome-zarr:2")
    assert f"{options[-2]} " not in xcorr(command, "--help-all").stdout


def test_short_names(tmp_path, stack):
    words = ("-o", tmp_path / "out", "-m", "5", "-r", "last", "--no-apply", "--report", "none")
    assert align(stack, *words).code == 0
    parameters = record(tmp_path / "out")["parameters"]
    assert (parameters["max_shift"], parameters["reference"]) == (5.0, "last")


def test_choices() -> None:
    assert plane.NORMALIZATIONS == choices.NORMALIZATIONS
    assert subpixel.METHODS == choices.SUBPIXEL_METHODS
    assert settings.SUBPIXEL == choices.ALIGN_SUBPIXEL_METHODS
    assert reference_names.REFERENCES == choices.REFERENCES
    assert reference_names.NUMBERED_REFERENCES == choices.NUMBERED_REFERENCES
    assert tuple(align_options.INTERPOLATIONS) == choices.INTERPOLATIONS
    assert written_planes.COMPRESSIONS == choices.COMPRESSIONS
    assert doubtful_frames.POLICIES == choices.DOUBTFUL
    assert set(choices.FIELD_FORMATS) == set(field_files.ENDINGS)
    assert tuple(forms.FORMS) == choices.FORMS
    assert (*_MAKERS, "taps", "bank") == choices.FILTERS
    assert tuple(form.partition(":")[0] for form in choices.BANKS) == tuple(_BANK_MAKERS)
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
