"""``xcorr filter`` as it is typed: what it refuses and how it says so, and what it prints."""

import sys

import numpy as np
import pytest
import tifffile

from tests.batch.filter_runs import filtering
from tests.batch.movies import record, refused, write_movie, xcorr


@pytest.fixture(scope="module")
def stack(tmp_path_factory):
    return write_movie(tmp_path_factory.mktemp("filter") / "m.tif", dtype="uint8")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "no filter was given: give one of --gaussian, --box, --sobel, --laplacian, --log, --dog"),
        (["--gaussian", "1", "--box", "3"], "--gaussian, --box: give one filter"),
        (["--laplacian", "--taps", "taps.csv"], "--laplacian, --taps: give one filter"),
        (["--gaussian", "x"], "gaussian 'x': write SIGMA or ROWS,COLUMNS"),
        (["--gaussian", "1,2,3"], "write SIGMA or ROWS,COLUMNS"),
        (["--gaussian", ""], "write SIGMA"),
        (["--gaussian", "0"], "gaussian '0': sigma must be"),
        (["--gaussian", "-1"], "sigma must be"),
        (["--gaussian", "nan"], "sigma must be"),
        (["--gaussian", "251"], "sigma must be"),
        (["--log", "inf"], "log 'inf': sigma must be"),
        (["--box", "2.5"], "box '2.5': write SIZE or ROWS,COLUMNS, whole numbers"),
        (["--box", "0"], "box '0': the size of a box"),
        (["--sobel", "z"], "sobel 'z': write y (down the rows) or x"),
        (["--dog", "1"], "dog '1': write SIGMA,SIGMA"),
        (["--unsharp", "2"], "unsharp '2': write SIGMA,AMOUNT"),
        (["--unsharp", "2,inf"], "unsharp '2,inf': the amount"),
        (["--box", "3", "--mode", "edge"], "--mode"),
        (["--box", "3", "--mode", "constant", "--cval", "nan"], "cval is nan"),
        (["--box", "3", "--cval", "5"], "--cval goes with --mode constant"),
        (["--box", "3", "--dtype", "uint8"], "--dtype"),
        (["--box", "3", "--engine", "cuda"], "--engine"),
        (
            ["--box", "3", "--engine", "reuse", "--device", "cpu"],
            "runs on a GPU (--device cpu was given)",
        ),
        (["--box", "3", "--device", "tpu"], "device 'tpu' is not known: use auto, cpu, cuda or cuda:N"),
        (["--bank", "gabor:8,4", "--box", "3"], "--box, --bank: give one filter"),
        (["--bank", "gabor"], "bank 'gabor': write gabor:ORIENTATIONS,SCALES"),
        (["--bank", "gabor:8"], "bank 'gabor:8': write gabor:ORIENTATIONS,SCALES"),
        (["--bank", "gabor:8,x"], "bank 'gabor:8,x': write gabor:ORIENTATIONS,SCALES"),
        (["--bank", "gabor:0,4"], "1 to 64 orientations, 1 to 9 scales"),
        (["--bank", "schmid:3"], "bank 'schmid:3': write schmid: it takes no numbers"),
        (["--bank", "derivatives:0.1"], "at least 0.5 px each"),
        (["--bank", "wavelet:3"], "bank 'wavelet:3' is not known: write gabor:ORIENTATIONS,SCALES, derivatives:"),
        (["--bank", "nowhere.npy"], "nowhere.npy: cannot be read"),
        (["--bank", "schmid", "--engine", "fft"], "a bank is computed as a whole: leave --engine fft out"),
        (["--box", "3", "--layout", "heap"], "--layout"),
        (["--box", "3", "--max-pixels", "0"], "--max-pixels"),
        (["--box", "3", "--resume", "--overwrite"], "give one of them"),
        (
            ["--box", "3", "--resume", "--overwrite"],
            "--resume and --overwrite exclude each other",
        ),
        (["--taps", "nowhere.npy"], "nowhere.npy: cannot be read (No such file"),
        (["--taps", ""], "the name of the file is empty"),
    ],
)
def test_what_makes_no_sense_is_wrong_usage(tmp_path, stack, options, words):
    run = xcorr("filter", stack, "-o", tmp_path / "out", *options)
    assert run.code == 2
    assert words in run.stderr
    assert run.lines_of_error[-1].startswith(("Error: ", "xcorr: "))
    assert not (tmp_path / "out").exists()


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
        ("taps.npy", np.array([[1j]]), "holds complex128; filters are real"),
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


def test_engine_that_cannot_run_the_taps_is_known_at_once(tmp_path, stack):
    np.save(tmp_path / "taps.npy", np.eye(7))
    run = filtering(stack, "-o", tmp_path / "out", "--taps", tmp_path / "taps.npy", "--engine", "separable")
    refused(run, "rank")
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
    quiet = xcorr("filter", stack, "-o", tmp_path / "cpu", "--box", "3", "--engine", "opencv")
    assert "GPU" not in quiet.stdout


@pytest.mark.parametrize("options", [["--device", "cuda"], ["--device", "cuda:1"], ["--engine", "reuse"]])
def test_a_gpu_that_is_needed_and_not_there(tmp_path, stack, monkeypatch, options):
    monkeypatch.setitem(sys.modules, "cupy", None)
    refused(xcorr("filter", stack, "-o", tmp_path / "out", "--box", "3", *options), "CuPy cannot be imported")
    assert not (tmp_path / "out").exists()
