"""`xcorr_app.align`: what the command writes, and what it found as a result."""

import csv
import inspect
import json

import cv2
import numpy as np
import pytest
import tifffile
from threadpoolctl import threadpool_info, threadpool_limits

import xcorr_app as xc
from tests.batch.movies import DRIFT, content, write_movies, xcorr
from xcorr_app.batch.align.options import AlignOptions
from xcorr_app.errors import ArgumentError, OutputError
from xcorr_app.registration.patches.patch_fit import PatchOptions
from xcorr_app.registration.settings import Settings


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = write_movies(tmp_path_factory.mktemp("in"), ("m0", "m1"))
    (folder / "broken.tif").write_bytes(b"broken")
    return folder


def test_it_writes_what_the_command_writes(folder, tmp_path):
    words = ("--max-shift", "5", "--interpolation", "cubic", "--prefilter", "gaussian:1", "--device", "cpu")
    assert xcorr("align", folder, "-o", tmp_path / "a", *words).code == 1
    found = xc.align(folder, tmp_path / "b", max_shift=5.0, interpolation="cubic", prefilter="gaussian:1", device="cpu")
    assert content(tmp_path / "a") == content(tmp_path / "b")
    assert (found.record, found.report) == (tmp_path / "b" / "run.json", tmp_path / "b" / "report.html")


def test_its_result_is_what_was_written(folder, tmp_path):
    told, options = [], {"device": "cpu", "report": "none", "format": "ome-tiff"}
    with threadpool_limits(2, "blas"):
        found = xc.align(
            str(folder),
            tmp_path,
            **options,
            progress=lambda *step: told.append(
                (
                    *step,
                    {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}
                    | {cv2.getNumThreads()},
                )
            ),
        )
    assert list(found) == ["m0", "m1", "broken.tif"]
    assert (found.failed, found.report) == (("broken.tif",), None)
    assert "broken.tif" in found["broken.tif"].failure
    assert found["broken.tif"].shifts.shape == (0, 2)
    for name in ("m0", "m1"):
        stack = found[name]
        rows = list(csv.DictReader(stack.table.read_text().splitlines()))
        np.testing.assert_allclose(stack.shifts, DRIFT, atol=0.02)
        assert np.array_equal(stack.applied, [[float(row["applied_dy"]), float(row["applied_dx"])] for row in rows])
        assert stack.trusted.all()
        assert tifffile.imread(stack.path).shape == (4, 40, 48)
        assert np.array_equal(stack.to_dataframe()["dy"], stack.shifts[:, 0])
        assert stack.assessment.as_record() == json.loads(found.record.read_text())["stacks"][name]["assessment"]
        assert "4 frames, 4 trusted" in stack._repr_html_()
        read = xc.ShiftResult.load(stack.table)
        assert (read.flags, len(stack)) == (stack.flags, 4)
        assert np.array_equal(read.applied(), stack.applied, equal_nan=True)
    assert "3 stacks, 1 failed" in repr(found)
    assert found._repr_html_().count("<tr>") == 4
    assert ("m0: measure", 4, 4, {1}) in told  # others of its threads would wait for each other's
    with pytest.raises(KeyError):
        found["m7"]


def test_it_resumes_and_refuses_as_the_command_does(folder, tmp_path):
    first = xc.align(folder / "m0.tif", tmp_path, device="cpu", apply=False, report="none")
    assert first["m0"].path is None
    with pytest.raises(OutputError, match="not empty"):
        xc.align(folder / "m0.tif", tmp_path)
    again = xc.align(folder / "m0.tif", tmp_path, device="cpu", apply=False, report="none", resume=True)
    assert json.loads(again.record.read_text())["resumed"] == ["m0"]
    assert np.array_equal(again["m0"].shifts, first["m0"].shifts)


def test_its_keywords_are_the_options_of_the_command():
    known = inspect.signature(xc.align).parameters
    assert list(known)[:3] == ["inputs", "out", "progress"]
    assert known["interpolation"].default == "linear"
    assert {"max_shift", "resume", "cluster", "format", "motion"} <= set(known)
    assert not {"output", "quiet", "verbose", "debug", "explain", "watch"} & set(known)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"maxshift": 3}, "unknown option maxshift: the options are apply"),
        ({"quiet": True}, "unknown option quiet"),
        ({"interpolation": "sinc"}, "unknown interpolation 'sinc': use nearest, linear, cubic, lanczos, fourier"),
        ({"smooth_time": 0}, "smooth_time is 0: use a whole number, 1 to 1000"),
        ({"motion": "patches:8"}, "a patch has 16 pixels or more"),
        ({"prefilter": "blur:1"}, "prefilter 'blur"),
        ({"max_shift": "5,x"}, "give pixels, or rows,columns"),
        ({"channel": -1}, "channel -1 does not exist"),
        ({"motion": "rigid", "channel": "sum"}, "several channels are measured for shifts"),
    ],
)
def test_keywords_that_make_no_sense(folder, tmp_path, given, words):
    with pytest.raises(ArgumentError) as raised:
        xc.align(folder, tmp_path / "out", device="cpu", **given)
    assert words in str(raised.value)
    assert not (tmp_path / "out").exists()


def test_defaults_are_those_of_the_measurement():
    """Settings, and how frames are cut, have defaults of their own."""
    options = AlignOptions()
    assert options.settings == Settings()
    assert options.patches == PatchOptions()
    dft = AlignOptions(subpixel="dft:16").settings
    assert (dft.subpixel, dft.upsample) == ("dft", 16)
