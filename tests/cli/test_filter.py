"""`xcorr filter` and kernels by name: wrong usage, engines, files of taps."""

import sys

import numpy as np
import pytest
import tifffile

from tests.batch.filter_runs import filtering
from tests.batch.movies import record, refused, write_movie, xcorr
from xcorr_app import KernelOptions
from xcorr_app.batch.align.options import AlignOptions


@pytest.fixture(scope="module")
def stack(tmp_path_factory):
    return write_movie(tmp_path_factory.mktemp("filter") / "m.tif", dtype="uint8")


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("taps.csv", b"1,2\n3\n", "line 2 has 1 numbers, the rows before 2"),
        ("taps.csv", b"1,x\n", "line 1 holds 'x', which is no number"),
        ("taps.csv", b"1,,2\n", "which is no number"),
        ("taps.csv", b"a,1\nb,2\n", "begin with something that is no number: a"),
        ("taps.csv", b"# nothing\n\n", "holds no numbers"),
        ("taps.txt", b"1 nan\n", "holds NaN or infinite values"),
        ("taps.txt", b"\xff\xfe\x00", "is no text"),
        ("taps.npy", b"", "is no array that can be read"),
        ("taps.npy", b"1,2,3", "is no array that can be read"),
        ("taps.npy", np.zeros((2, 2, 2)), "shape (2, 2, 2); taps are a rectangle"),
        ("taps.npy", np.zeros((0, 3)), "shape (0, 3); taps are a rectangle"),
        ("taps.npy", np.float64(3), "shape (); taps are a rectangle"),
        ("taps.npy", np.array([[1, np.inf]]), "holds NaN or infinite values"),
        ("taps.npy", np.array([[1j]]), "holds complex128 of shape (1, 1); taps are a rectangle of real numbers"),
        ("taps.npy", np.array([["a"]]), "no array of plain numbers"),
        ("taps.npy", np.array([[None]]), "Python objects"),
        ("taps.tif", b"II*\0", "taps are read from .npy, .csv or .txt"),
    ],
)
def test_file_that_holds_no_taps(tmp_path, stack, name, content, words):
    if isinstance(content, bytes):
        (tmp_path / name).write_bytes(content)
    else:
        np.save(tmp_path / name, content, allow_pickle=True)
    refused(filtering(stack, "-o", tmp_path / "out", "--taps", tmp_path / name), name, words)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("options", [("--dog", "1,3"), ("--log", "1.5"), ("--laplacian",), ("--sobel", "x")])
def test_derivatives_of_integers_are_floats_unless_asked_otherwise(tmp_path, stack, options):
    def written(name, *more):
        assert filtering(stack, "-o", tmp_path / name, *options, *more).code == 0
        return tifffile.imread(tmp_path / name / "m" / "m_filtered.tif")

    usual, same = written("usual"), written("same", "--dtype", "same")
    assert (usual.dtype, same.dtype) == (np.float32, np.uint8)
    assert usual.min() < -1
    np.testing.assert_array_equal(usual, written("float32", "--dtype", "float32"))
    np.testing.assert_allclose(np.clip(usual, 0, 255), same, atol=0.51)
    np.save(tmp_path / "f.npy", np.ones((5, 6)))
    assert filtering(tmp_path / "f.npy", "-o", tmp_path / "f", *options).code == 0
    assert tifffile.imread(tmp_path / "f" / "f" / "f_filtered.tif").dtype == np.float64


def test_auto_without_a_gpu_is_the_cpu_and_says_so_when_asked(tmp_path, stack, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert "GPU" not in xcorr("filter", stack, "-o", tmp_path / "unasked", "--box", "3").stdout
    asked = xcorr("filter", stack, "-o", tmp_path / "auto", "--box", "3", "--device", "auto")
    run = xcorr("filter", stack, "-o", tmp_path / "out", "--box", "3", "-v")
    assert run.code == 0
    for said in (run.stdout, asked.stdout):
        assert said.count("no GPU is used: CuPy cannot be imported") == 1
    assert run.stderr == ""
    assert record(tmp_path / "out")["device"] == "CPU"


ASKED = {
    "": None,
    "variant=auto": None,
    "variant=combined": KernelOptions("combined"),
    "variant=multi-right rights=8": KernelOptions("multi-right", rights=8),
    "variant=multi-left-right rights=2 lefts=3": KernelOptions("multi-left-right", rights=2, lefts=3),
    "variant=multi-row shifts=4 left-rows=2": KernelOptions("multi-row", shifts=4, left_rows=2),
    "variant=warp-shuffle-distributed distribution=rectangle rows-per-worker=5": KernelOptions(
        "warp-shuffle-distributed", distribution="rectangle", rows_per_worker=5
    ),
    "variant=multi-row distribution=triangle phases=yes warps=2": KernelOptions(
        "multi-row", "triangle", phases=True, warps=2
    ),
    "variant=combined-shuffle phases=no lefts=2": KernelOptions("combined-shuffle", phases=False, lefts=2),
    "variant=overlap-wise threads=64": KernelOptions("overlap-wise", threads=64),
    "variant=shift-per-warp shifts-per-block=8": KernelOptions("shift-per-warp", shifts_per_block=8),
    "precision=fp16": KernelOptions(precision="fp16"),
}


@pytest.mark.parametrize(("words", "options"), ASKED.items())
def test_options_are_understood(words, options):
    assert AlignOptions(kernel_options=tuple(words.split())).kernel_options == options
