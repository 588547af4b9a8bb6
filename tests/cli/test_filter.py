"""`xcorr filter` and kernels by name: wrong usage, engines, files of taps."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import tifffile

import xcorr_app as xc
from tests.batch.filter_runs import filtering
from tests.batch.movies import align, record, refused, write_movie, xcorr
from tests.cli.planes import correlate
from tests.filtering.test_filter_bank import by_definition
from tests.io.samples import noise, write_imagej, write_ome, write_shaped
from xcorr_app import KernelOptions
from xcorr_app.batch.align.options import AlignOptions


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
        (["--sobel", "z"], "sobel 'z': the axis of a Sobel filter must be"),
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


@pytest.fixture
def shaped(tmp_path):
    write_shaped(tmp_path / "m.tif", noise((3, 20, 31), "uint16"), "TYX")
    return tmp_path / "m.tif"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--box 3 --kernel exchange", "kernel 'exchange' runs on a GPU (--device cpu was given); --kernel auto gives"),
        ("--bank schmid --kernel im2win", "kernel 'im2win' runs on a GPU"),
        ("--bank schmid --kernel exchange", "is for single filters; banks have auto, im2win, im2win-basic"),
        ("--box 3 --kernel im2win", "kernel 'im2win' is unknown: take one of auto, reuse, exchange"),
        ("--box 3 --kernel fastest", "--kernel"),
        ("--box 3 --stride 2", "stride 2 is for banks of filters"),
        ("--bank schmid --stride 0", "--stride"),
        ("--box 3 --kernel reuse --engine opencv", "engine 'opencv' leaves the choice"),
        ("--box 3 --kernel reuse --kernel-option rows=9", "kernel 'reuse' has no options"),
        ("--bank schmid --kernel im2win --kernel-option tile-depth=7", "kernel 'im2win' takes 8, 9, 10, 12, 15, 16"),
        ("--bank schmid --kernel implicit --kernel-option prefetch=no", "kernel 'implicit' has no options"),
        ("--bank schmid --kernel im2win --kernel-option prefetch=no", "kernel 'im2win' runs on a GPU"),
        ("--box 3 --kernel exchange --kernel-option lines=9", "kernel 'exchange' has rows, warps, column_reuse"),
        ("--box 3 --kernel exchange --kernel-option rows=many", "write a whole number"),
        ("--box 3 --kernel exchange --kernel-option row-reuse=0", "write yes or no"),
        ("--box 3 --kernel exchange --kernel-option rows=0", "takes 1 to"),
    ],
)
def test_wrong_usage_of_filter(tmp_path, shaped, words, message):
    run = filtering(shaped, "-o", tmp_path / "out", *words.split())
    assert run.code == 2
    assert message in run.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--kernel shallow", "kernel 'shallow' runs on a GPU (--device cpu was given); --kernel auto gives the same"),
        ("--kernel blocking --kernel-option staging=shared", "takes async, registers"),
        ("--kernel mix --kernel-option warps=2", "kernel 'mix' has no options; exchange, blocking, im2win have"),
        ("--kernel blocking --kernel-option warps=3", "kernel 'blocking' takes 1, 2, 4, 8"),
    ],
)
def test_wrong_usage_of_unmix(tmp_path, words, message):
    write_shaped(tmp_path / "c.tif", noise((3, 20, 30)), "CYX")
    np.savetxt(tmp_path / "m.csv", np.eye(3), delimiter=",")
    options = ("--matrix", tmp_path / "m.csv", "--device", "cpu", *words.split())
    refused(xcorr("unmix", tmp_path / "c.tif", "-o", tmp_path / "out", *options), message)


@pytest.mark.parametrize("kind", ["ome", "imagej"])
def test_every_nth_result_of_a_bank_with_pixels_as_much_larger(tmp_path, kind):
    data, name = noise((2, 21, 34), "uint8"), "m.ome.tif" if kind == "ome" else "m.tif"
    if kind == "ome":
        write_ome(tmp_path / name, data, "TYX")
    else:
        write_imagej(tmp_path / name, data, "TYX")
    bank = np.random.default_rng(3).normal(size=(4, 5, 3))
    np.save(tmp_path / "b.npy", bank)
    before = xc.read_stack(tmp_path / name).metadata
    assert before.pixel_size is not None
    for mode, shape in (("mirror", (7, 12)), ("valid", (6, 11))):
        out = tmp_path / mode
        words = ("--bank", tmp_path / "b.npy", "--mode", mode, "--stride", "3")
        run = filtering(tmp_path / name, "-o", out, *words)
        assert (run.code, run.stderr) == (0, "")
        path = out / "m" / "m_filtered.tif"
        found = tifffile.imread(path)
        assert found.shape == (2, 4, *shape)
        expected = by_definition(data[:, None], bank[:, None], mode)[..., ::3, ::3]
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-3)
        after = xc.read_stack(path).metadata
        np.testing.assert_allclose(after.pixel_size, [3 * size for size in before.pixel_size], rtol=1e-6)
        assert record(out)["parameters"]["stride"] == 3


COMMANDS = {
    "align": lambda movie, out, *words: align(movie, "-o", out, *words),
    "correlate": lambda movie, out, *words: correlate(movie, movie, out, "--form", "n-to-m", *words),
}

ASKED = {
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
    "sums=float64": KernelOptions(sums="float64"),
    "precision=fp16": KernelOptions(precision="fp16"),
}


@pytest.fixture(scope="module")
def movie(tmp_path_factory):
    return write_movie(tmp_path_factory.mktemp("kernels") / "m.tif")


def typed(words):
    """As a user types them: what is no option of the command is one of the kernels."""
    return [
        each
        for word in words.split()
        for each in (["--kernel-option", word] if "=" in word or word in UNFINISHED else [word])
    ]


UNFINISHED = {"rights"}


@pytest.mark.parametrize(("words", "options"), ASKED.items())
def test_options_are_understood(words, options):
    assert AlignOptions(kernel_options=tuple(words.split())).kernel_options == options


def test_nothing_asked_is_nothing():
    assert AlignOptions(kernel_options=()).kernel_options is None
    assert AlignOptions(kernel_options=("variant=auto",)).kernel_options is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("variant=nonsense", "unknown kernel variant 'nonsense'"),
        ("variant=multi-row distribution=square", "unknown distribution 'square'"),
        ("rights=2", "rights belongs to kernel variant multi-right"),
        ("variant=multi-right rights=9", "multi-right takes 1 to 8"),
        ("variant=combined --engine fft", "kernel options belong to engine 'direct', not to 'fft'"),
        ("variant=combined --engine tensor", "kernel options belong to engine 'direct', not to 'tensor'"),
        ("variant=combined --engine definition", "kernel options belong to engine 'direct'"),
        ("variant=combined --normalization phase", "kernel options belong to engine 'direct'"),
        ("precision=fp32", "unknown precision 'fp32'"),
        ("sums=float16", "unknown type of sums 'float16'"),
        ("tiles=3", "correlation has variant, distribution"),
        ("rights", "write NAME=VALUE"),
        ("rights=many", "write a whole number"),
        ("variant=multi-row phases=1", "write yes or no"),
        ("sums=float64 --engine fft", "kernel options belong to engine 'direct', not to 'fft'"),
        ("precision=fp16 variant=combined", "precision belongs to engine 'tensor', kernel variant 'combined' to"),
        ("precision=fp16 --engine direct", "precision belongs to engine 'tensor', not to 'direct'"),
        ("precision=fp16 --normalization phase", "precision belongs to engine 'tensor', not to 'fft'"),
    ],
)
@pytest.mark.parametrize("run_command", COMMANDS)
def test_wrong_usage(tmp_path, movie, run_command, words, message):
    run = COMMANDS[run_command](movie, tmp_path / "out.npy", *typed(words))
    assert run.code == 2
    assert message in run.stderr
    assert not (tmp_path / "out.npy").exists()


@pytest.mark.parametrize("run_command", COMMANDS)
def test_kernels_need_a_device(tmp_path, movie, run_command):
    run = COMMANDS[run_command](movie, tmp_path / "out.npy", *typed("variant=combined"))
    assert run.code == 2
    assert "'direct' cannot run on numpy arrays" in run.stderr
    run = COMMANDS[run_command](movie, tmp_path / "out.npy", *typed("precision=fp16x2"))
    assert run.code == 2
    assert "'tensor' cannot run on numpy arrays" in run.stderr
