"""What ``xcorr correlate`` refuses: one line that says why, exit code 2 before anything ran, and no file."""

from __future__ import annotations

import os

import numpy as np
import pytest

from tests.batch.movies import movie, refused, write_movie
from tests.cli.planes import correlate
from tests.io.samples import noise, write_ome, write_plain


@pytest.fixture
def stack(tmp_path):
    return write_movie(tmp_path / "m.tif")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), ("form one-to-one takes one image", "holds 4", "use --form n-to-m")),
        (("--form", "one-to-many"), ("takes one image from LEFT",)),
        (("--form", "n-to-m", "--normalization", "phase", "--engine", "definition"), ("only in engine 'fft'",)),
        (("--form", "n-to-m", "--engine", "warp-shuffle"), ("direct", "cannot run on numpy arrays")),
        (("--form", "n-to-m", "--engine", "tensor"), ("engine 'tensor' cannot run on numpy arrays", "CUDA device")),
        (("--form", "n-to-m", "--min-overlap", "1.5"), ("min_overlap is 1.5",)),
        (("--form", "n-to-m", "--tolerance", "0"), ("tolerance is 0",)),
        (("--form", "n-to-m", "--tolerance", "inf"), ("tolerance is infinite", "--no-verify")),
        (("--form", "n-to-m", "--tolerance", "nan"), ("tolerance is nan",)),
        (("--form", "n-to-m", "--channel", "1"), ("channel 1", "neither file has channels")),
        (("--form", "n-to-m", "--max-pixels", "5"), ("--max-pixels 1920",)),
        (("--form", "n-to-m", "--device", "tpu"), ("use auto, cpu, cuda or cuda:N",)),
    ],
)
def test_options_that_make_no_sense(tmp_path, stack, options, words):
    refused(correlate(stack, stack, tmp_path / "p.npy", *options), *words)
    assert not (tmp_path / "p.npy").exists()


@pytest.mark.parametrize(
    ("option", "value"),
    [("--form", "all"), ("--max-shift", "-1"), ("--normalization", "ncc"), ("--channel", "-1"), ("--roi", "1")],
)
def test_values_that_click_refuses(tmp_path, stack, option, value):
    run = correlate(stack, stack, tmp_path / "p.npy", option, value)
    assert run.code == 2
    assert option in run.lines_of_error[-1]


def test_counts_that_cannot_be_shared_out(tmp_path, stack):
    write_plain(tmp_path / "three.tif", movie()[:3])
    refused(
        correlate(tmp_path / "three.tif", stack, tmp_path / "p.npy", "--form", "n-to-mn"),
        "its 4 images cannot be shared out evenly among 3 left ones",
    )


def test_times_and_planes_are_no_single_stack(tmp_path, stack):
    write_ome(tmp_path / "tz.ome.tif", noise((2, 3, 40, 48)), "TZYX")
    refused(
        correlate(tmp_path / "tz.ome.tif", stack, tmp_path / "p.npy", "--form", "n-to-m"), "2 x 3 images along two axes"
    )


def test_phase_correlation_of_unequal_images(tmp_path):
    np.save(tmp_path / "l.npy", noise((8, 9)))
    np.save(tmp_path / "r.npy", noise((9, 9)))
    refused(
        correlate(tmp_path / "l.npy", tmp_path / "r.npy", tmp_path / "p.npy", "--normalization", "phase"),
        "'phase' needs images of one size, got (8, 9) and (9, 9)",
    )


@pytest.mark.parametrize("name", ["nowhere.tif", ".", "text.tif"])
def test_inputs_that_are_no_images(tmp_path, stack, name):
    (tmp_path / "text.tif").write_text("no image")
    refused(correlate(stack, tmp_path / name, tmp_path / "p.npy", "--form", "n-to-m"), str(tmp_path / name))


@pytest.mark.parametrize("name", ["p", "p.png", "p.ome.tif"])
def test_endings_that_are_not_known(tmp_path, stack, name):
    refused(correlate(stack, stack, tmp_path / name, "--form", "n-to-m"), "choose one by the ending")


def test_an_output_that_exists(tmp_path, stack):
    arguments = (stack, stack, tmp_path / "p.tif", "--form", "n-to-m", "--max-shift", "2")
    (tmp_path / "p.tif").write_bytes(b"mine")
    refused(correlate(*arguments), "p.tif: exists; use --overwrite")
    assert (tmp_path / "p.tif").read_bytes() == b"mine"
    assert correlate(*arguments, "--overwrite").code == 0
    assert (tmp_path / "p.tif").stat().st_size > 1000


@pytest.mark.parametrize("link", [None, os.symlink, os.link])
def test_an_output_that_is_an_input(tmp_path, stack, link):
    before = stack.read_bytes()
    out = stack
    if link is not None:
        out = tmp_path / "linked.tif"
        link(stack, out)
    refused(correlate(stack, stack, out, "--form", "n-to-m", "--overwrite"), "is an input")
    assert stack.read_bytes() == before


def test_an_output_without_a_folder_or_that_is_one(tmp_path, stack):
    (tmp_path / "folder.npy").mkdir()
    refused(correlate(stack, stack, tmp_path / "a" / "p.npy", "--form", "n-to-m"), "does not exist; make it")
    refused(correlate(stack, stack, tmp_path / "folder.npy", "--form", "n-to-m", "--overwrite"), "is a folder")
    refused(correlate(stack, stack, tmp_path / ("n" * 300 + ".npy"), "--form", "n-to-m"), "cannot be used as a file")


@pytest.mark.parametrize("side", [0, 1])
def test_values_that_are_not_finite(tmp_path, side):
    stacks = [movie(dtype="float32"), movie(dtype="float32")]
    stacks[side][2, 5, 5] = np.nan
    for name, frames in zip(("l.tif", "r.tif"), stacks, strict=True):
        write_plain(tmp_path / name, frames)
    run = correlate(tmp_path / "l.tif", tmp_path / "r.tif", tmp_path / "p.npy", "--form", "n-to-m")
    assert run.code == 1
    assert len(run.lines_of_error) == 1
    name = "lr"[side]
    assert f"{name}.tif: image 2 holds 1 NaN or infinite values, which have no correlation" in run.stderr
    assert not (tmp_path / "p.npy").exists()


def test_a_page_that_cannot_be_decoded(tmp_path, stack):
    write_plain(tmp_path / "d.tif", movie(), compression="zlib")
    content = bytearray((tmp_path / "d.tif").read_bytes())
    content[-200:-100] = bytes(100)
    (tmp_path / "d.tif").write_bytes(content)
    run = correlate(tmp_path / "d.tif", stack, tmp_path / "p.npy", "--form", "n-to-m", "-q")
    assert run.code == 1
    assert "cannot be decoded" in run.stderr
    assert not (tmp_path / "p.npy").exists()


def test_debug_shows_where(tmp_path, stack):
    with pytest.raises(OSError, match="cannot be read"):
        correlate(stack, tmp_path / "nowhere", tmp_path / "p.npy", "--debug")
