"""Words that make no sense: every command says so in a line, ends with 2, and writes nothing."""

import shlex
import sys

import numpy as np
import pytest
import tifffile

from tests.batch.movies import write_movie, xcorr
from tests.io.samples import noise, write_ome, write_plain, write_shaped

INPUTS = {
    "align": ("m.tif", "-o", "out"),
    "filter": ("m.tif", "-o", "out"),
    "unmix": ("c.tif", "-o", "out"),
    "correlate": ("m.tif", "m.tif", "-o", "p.npy"),
    "": (),
}
"""A command's inputs and output; rows without a command name their own."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wrong")
    write_movie(folder / "m.tif")
    write_shaped(folder / "c.tif", noise((3, 20, 30)), "CYX")
    write_movie(folder / "small.tif", shape=(20, 20), drift=((0, 0),))
    write_plain(folder / "wide.tif", noise((2, 9, 9), "uint32"))
    write_plain(folder / "flat.tif", np.full((2, 96, 112), 7, np.uint8))
    tifffile.imwrite(folder / "rgba.tif", noise((6, 7, 4), "uint8"), photometric="rgb", extrasamples=["unassalpha"])
    (folder / "t.csv").write_text("dy,dx\n0,0\n1,1\n2,2\n3,3\n")
    write_ome(folder / "tc.ome.tif", noise((3, 2, 20, 30)), "TCYX")
    write_plain(folder / "three.tif", noise((3, 40, 48)))
    write_ome(folder / "tz.ome.tif", noise((2, 3, 40, 48)), "TZYX")
    np.savetxt(folder / "m.csv", np.eye(3), delimiter=",")
    np.save(folder / "l.npy", noise((8, 9)))
    np.save(folder / "r.npy", noise((9, 9)))
    texts = {"wide": "1,2,3,4", "ragged": "1,2,3\n1,2", "word": "1,2,3\n1,x,3", "empty": "# no\n", "nan": "1,nan,2"}
    for name, text in texts.items():
        (folder / f"{name}.csv").write_text(text)
    np.save(folder / "cube.npy", np.ones((2, 2, 2)))
    for name in ("text.tif", "m.xls"):
        (folder / name).write_text("no image")
    (folder / "folder.npy").mkdir()
    return folder, set(folder.iterdir())


@pytest.mark.parametrize(
    ("command", "words", "message"),
    [
        ("", "field m.tif -o out --mask none.tif", "none.tif"),
        ("align", "--motion patches --border crop", "crop"),
        ("align", "--motion patches --reference previous", "is for shifts"),
        ("align", "--motion patches:48,60", "at most a patch"),
        ("", "nonsense", "Choose from: align, apply,"),
        ("", "algin", "Did you mean align?"),
        ("", "help algin", "Did you mean align?"),
        ("", "align", "Missing"),
        ("", "align --nonsense", "--nonsense"),
        ("", "align nowhere -o out", "nowhere: does not exist"),
        ("", "align a b -o out", "a: does not exist .. b: does not exist"),
        ("", "align folder.npy -o out", "folder.npy: holds no TIFF or PNG file"),
        ("", "align '*.none' -o out", "no image or folder has a name of that form"),
        ("", "align '' -o out", "is empty"),
        ("", "align m.tif -o ''", "is empty"),
        ("align", "--reference folder.npy", "is a folder, pipe or device"),
        ("align", "--reference text.tif", "is not a TIFF file"),
        ("align", "--device cuda", "CuPy cannot be imported .. install"),
        ("filter", "--box 3 --device cuda", "CuPy cannot be imported"),
        ("filter", "--box 3 --device cuda:1", "CuPy cannot be imported"),
        ("filter", "--box 3 --kernel reuse --device auto", "CuPy cannot be imported"),
        ("unmix", "--matrix m.csv --device cuda", "CuPy cannot be imported"),
        (
            "",
            "correlate three.tif m.tif -o p.npy --form n-to-mn",
            "its 4 images cannot be shared out evenly among 3 left",
        ),
        ("", "correlate tz.ome.tif m.tif -o p.npy --form n-to-m", "2 x 3 images along two axes"),
        ("", "correlate l.npy r.npy -o p.npy --normalization phase", "needs images of one size, got (8, 9) and (9, 9)"),
        ("", "correlate m.tif nowhere.tif -o p.npy --form n-to-m", "nowhere.tif"),
        ("", "correlate m.tif . -o p.npy --form n-to-m", ".: is"),
        ("", "correlate m.tif text.tif -o p.npy --form n-to-m", "text.tif"),
        ("correlate", "--form n-to-m -o p", "choose one by the ending"),
        ("correlate", "--form n-to-m -o p.png", "choose one by the ending"),
        ("correlate", "--form n-to-m -o p.ome.tif", "choose one by the ending"),
        ("correlate", "--form n-to-m -o a/p.npy", "does not exist; make it"),
        ("correlate", "--form n-to-m -o folder.npy --overwrite", "is a folder"),
        ("correlate", f"--form n-to-m -o {'n' * 300}.npy", "cannot be used as a file"),
        ("", "align m.tif m.tif", "Missing option '-o' / '--output'"),
        ("", "apply m.tif m.tif", "Missing option '-o' / '--output'"),
        ("", "correlate m.tif m.tif", "Missing option '-o' / '--output'"),
        ("", "field m.tif m.tif", "Missing option '-o' / '--output'"),
        ("", "filter m.tif m.tif", "Missing option '-o' / '--output'"),
        ("", "unmix m.tif m.tif", "Missing option '-o' / '--output'"),
        ("align", "--max-shift -1", "give pixels"),
        ("align", "--max-shift nan", "give pixels"),
        ("align", "--max-shift 1,2,3", "give pixels"),
        ("align", "--max-shift inf", "give pixels"),
        ("align", "--roi 3", "write rows and columns"),
        ("align", "--roi 1:2", "write rows and columns"),
        ("align", "--roi a:b,c:d", "write rows and columns"),
        ("align", "--roi 5:2,0:3", "is empty"),
        ("align", "--roi 0:3,:0", "is empty"),
        ("align", "--reference nonsense", "nor an existing file"),
        ("align", "--reference pairs", "write pairs:N"),
        ("align", "--reference pairs:0", "write pairs:N"),
        ("align", "--mask nosuch.tif", "or an existing image"),
        ("align", "--smooth-time 0", "--smooth-time"),
        ("align", "--reference " + "x" * 5000, "nor an existing file"),
        ("align", "--reference " + "9" * 5000, "--reference"),
        ("align", "--verify some", "use auto|all|none|N[:PX]"),
        ("align", "--verify -1", "use auto|all|none|N[:PX]"),
        ("align", "--prefilter blur:2", "unknown prefilter"),
        ("align", "--prefilter gaussian", "write gaussian:SIGMA"),
        ("align", "--prefilter gaussian:0", "above 0"),
        ("align", "--contrast local", "use none, auto or local:S"),
        ("align", "--doubtful drop:0", "PX is above 0"),
        ("align", "--subpixel dft:0", "N is 1 to 10000"),
        ("align", "--subpixel phase:100", "N is 1 to 10000"),
        ("align", "--channel -1", "--channel"),
        ("align", "--max-pixels 0", "--max-pixels"),
        ("align", "--verify all:nan", "PX is above 0"),
        ("align", "--verify all:inf", "PX is above 0"),
        ("align", "--verify 12:0", "PX is above 0"),
        ("align", "--verify none:0.1", "use auto|all|none|N[:PX]"),
        ("align", "--motion patches:15", "a patch has 16 pixels or more"),
        ("align", "--motion patches:64,", "a patch has 16 pixels or more"),
        ("align", "--motion patches:64,3,3", "a patch has 16 pixels or more"),
        ("align", "--motion rigid:64", "use translation|rigid"),
        ("align", "--format ome-tiff:2", "use same|ome-tiff|ome-zarr[:N]"),
        ("align", "--format ome-zarr:13", "N is 1 to 12 levels"),
        ("align", "--min-overlap 2", "min_overlap is 2"),
        ("align", "--axis X", "--axis"),
        ("align", "--interpolation sinc", "--interpolation"),
        ("align", "--no-apply --format ome-zarr", "--format goes with --apply"),
        ("align", "--no-apply --compression zlib", "--compression goes with --apply"),
        ("align", "--no-apply --format ome-zarr:2", "--format goes with --apply"),
        ("align", "--motion rigid --subpixel phase", "--subpixel goes with --motion translation"),
        ("align", "--motion patches --engine fft", "--engine goes with --motion translation"),
        ("align", "--motion rigid --kernel-option precision=fp16", "--kernel-option goes with --motion translation"),
        ("align", "--watch --explain", "--watch and --explain exclude each other"),
        ("align", "--resume --overwrite", "exclude each other: give one of them"),
        ("align", "--correct", "--correct needs an image to correct by"),
        ("align", "--motion rigid --border crop", "crop"),
        ("align", "--motion rigid --interpolation fourier", "moves by shifts only"),
        ("align", "--motion affine --reference pairs:2", "is for shifts"),
        ("align", "--motion patches --mask nonzero", "--mask goes with --motion translation or --motion rigid"),
        ("align", "--motion rigid --verify all", "--verify goes with --motion translation: it is not used here"),
        ("", "field m.tif -o out --step 0", "--step"),
        ("", "field m.tif -o out --window 4", "--window"),
        ("", "field m.tif -o out --max-displacement 0", "max_displacement is 0"),
        ("", "field m.tif nowhere.tif -o out", "nowhere.tif: does not exist"),
        ("align", "--motion elastic", "elastic"),
        ("align", "--mask dark", "is no rule"),
        ("align", "--mask moving:nowhere.tif", "nowhere.tif: cannot be read"),
        ("align", "--mask nonzero --reference template", "takes no mask"),
        ("align", "--mask nonzero --subpixel phase", "takes no mask"),
        ("align", "--device tpu", "use auto, cpu, cuda or cuda:N"),
        ("align", "--device cuda:x", "use auto, cpu, cuda or cuda:N"),
        ("align", "--device cuda:", "use auto, cpu, cuda or cuda:N"),
        ("align", "--device CPU", "use auto, cpu, cuda or cuda:N"),
        ("align", "--device ''", "use auto, cpu, cuda or cuda:N"),
        ("filter", "", "no filter was given: give one of --gaussian, --box, --sobel, --laplacian, --log, --dog"),
        ("filter", "--gaussian 1 --box 3", "--gaussian, --box: give one filter"),
        ("filter", "--laplacian --taps taps.csv", "--laplacian, --taps: give one filter"),
        ("filter", "--gaussian x", "gaussian 'x': write SIGMA or ROWS,COLUMNS"),
        ("filter", "--gaussian 1,2,3", "write SIGMA or ROWS,COLUMNS"),
        ("filter", "--gaussian ''", "write SIGMA"),
        ("filter", "--gaussian 0", "gaussian '0': sigma must be"),
        ("filter", "--gaussian -1", "sigma must be"),
        ("filter", "--gaussian nan", "sigma must be"),
        ("filter", "--gaussian 251", "sigma must be"),
        ("filter", "--log inf", "log 'inf': sigma must be"),
        ("filter", "--box 2.5", "box '2.5': write SIZE or ROWS,COLUMNS, whole numbers"),
        ("filter", "--box 0", "box '0': the size of a box"),
        ("filter", "--sobel z", "sobel 'z': the axis of a Sobel filter must be"),
        ("filter", "--dog 1", "dog '1': write SIGMA,SIGMA"),
        ("filter", "--unsharp 2", "unsharp '2': write SIGMA,AMOUNT"),
        ("filter", "--unsharp 2,inf", "unsharp '2,inf': the amount"),
        ("filter", "--box 3 --border edge", "--border"),
        ("filter", "--box 3 --border constant --cval nan", "cval is nan"),
        ("filter", "--box 3 --cval 5", "--cval goes with --border constant"),
        ("filter", "--box 3 --dtype uint8", "--dtype"),
        ("filter", "--box 3 --kernel reuse --device cpu", "runs on a GPU (--device cpu was given)"),
        ("filter", "--box 3 --device tpu", "device 'tpu' is not known: use auto, cpu, cuda or cuda:N"),
        ("filter", "--bank gabor:8,4 --box 3", "--box, --bank: give one filter"),
        ("filter", "--bank gabor", "bank 'gabor': write gabor:ORIENTATIONS,SCALES"),
        ("filter", "--bank gabor:8", "bank 'gabor:8': write gabor:ORIENTATIONS,SCALES"),
        ("filter", "--bank gabor:8,x", "bank 'gabor:8,x': write gabor:ORIENTATIONS,SCALES"),
        ("filter", "--bank gabor:0,4", "1 to 64 orientations, 1 to 9 scales"),
        ("filter", "--bank schmid:3", "bank 'schmid:3': write schmid: it takes no numbers"),
        ("filter", "--bank derivatives:0.1", "at least 0.5 px each"),
        ("filter", "--bank wavelet:3", "bank 'wavelet:3' is not known: write gabor:ORIENTATIONS,SCALES, derivatives:"),
        ("filter", "--bank nowhere.npy", "nowhere.npy: cannot be read"),
        ("filter", "--box 3 --layout heap", "--layout"),
        ("filter", "--box 3 --max-pixels 0", "--max-pixels"),
        ("filter", "--box 3 --resume --overwrite", "give one of them"),
        ("filter", "--taps nowhere.npy", "nowhere.npy: cannot be read (No such file"),
        ("filter", "--taps ''", "the name of the file is empty"),
        (
            "filter",
            "--box 3 --kernel exchange",
            "kernel 'exchange' runs on a GPU (--device cpu was given); --kernel auto gives",
        ),
        ("filter", "--bank schmid --kernel im2win", "kernel 'im2win' runs on a GPU"),
        ("filter", "--bank schmid --kernel exchange", "is for single filters; banks have auto, im2win, im2win-basic"),
        ("filter", "--box 3 --kernel im2win", "kernel 'im2win' is unknown: take one of auto, reuse, exchange"),
        ("filter", "--box 3 --kernel fastest", "--kernel"),
        ("filter", "--box 3 --kernel reuse --kernel-option rows=9", "kernel 'reuse' has no options"),
        (
            "filter",
            "--bank schmid --kernel im2win --kernel-option tile-depth=7",
            "kernel 'im2win' takes 8, 9, 10, 12, 15, 16",
        ),
        ("filter", "--bank schmid --kernel implicit --kernel-option prefetch=no", "kernel 'implicit' has no options"),
        ("filter", "--bank schmid --kernel im2win --kernel-option prefetch=no", "kernel 'im2win' runs on a GPU"),
        (
            "filter",
            "--box 3 --kernel exchange --kernel-option lines=9",
            "kernel 'exchange' has rows, warps, column_reuse",
        ),
        ("filter", "--box 3 --kernel exchange --kernel-option rows=many", "write a whole number"),
        ("filter", "--box 3 --kernel exchange --kernel-option row-reuse=0", "write yes or no"),
        ("filter", "--box 3 --kernel exchange --kernel-option rows=0", "takes 1 to"),
        (
            "unmix",
            "--matrix m.csv --kernel mix",
            "kernel 'mix' runs on a GPU (--device cpu was given); --kernel auto gives the same",
        ),
        ("unmix", "--matrix m.csv --kernel blocking --kernel-option staging=shared", "takes async, registers"),
        (
            "unmix",
            "--matrix m.csv --kernel mix --kernel-option warps=2",
            "kernel 'mix' has no options; exchange, blocking, im2win have",
        ),
        ("unmix", "--matrix m.csv --kernel blocking --kernel-option warps=3", "kernel 'blocking' takes 1, 2, 4, 8"),
        ("unmix", "", "give one of --spectra FILE, --matrix FILE and --stain NAME"),
        ("unmix", "--matrix m.csv --stain he", "give one of"),
        ("unmix", "--matrix m.csv --white 9", "--from-log"),
        ("unmix", "--stain he --white 0", "above 0"),
        ("unmix", "--matrix ragged.csv", "line 2 has 2 numbers, the rows before 3"),
        ("unmix", "--matrix word.csv", "line 2 holds 'x', which is no number"),
        ("unmix", "--matrix empty.csv", "holds no numbers"),
        ("unmix", "--matrix nan.csv", "nan.csv: matrix holds values that are not finite"),
        ("unmix", "--matrix cube.npy", "holds float64 of shape (2, 2, 2)"),
        ("unmix", "--matrix m.xls", ".csv, .txt and .npy"),
        ("unmix", "--matrix none.csv", "none.csv .. cannot be read"),
        ("align", "--kernel-option variant=nonsense", "unknown kernel variant 'nonsense'"),
        ("correlate", "--form n-to-m --kernel-option variant=nonsense", "unknown kernel variant 'nonsense'"),
        (
            "align",
            "--kernel-option variant=multi-row --kernel-option distribution=square",
            "unknown distribution 'square'",
        ),
        (
            "correlate",
            "--form n-to-m --kernel-option variant=multi-row --kernel-option distribution=square",
            "unknown distribution 'square'",
        ),
        ("align", "--kernel-option rights=2", "rights belongs to kernel variant multi-right"),
        ("correlate", "--form n-to-m --kernel-option rights=2", "rights belongs to kernel variant multi-right"),
        ("align", "--kernel-option variant=multi-right --kernel-option rights=9", "multi-right takes 1 to 8"),
        (
            "correlate",
            "--form n-to-m --kernel-option variant=multi-right --kernel-option rights=9",
            "multi-right takes 1 to 8",
        ),
        (
            "align",
            "--kernel-option variant=combined --engine fft",
            "kernel options belong to engine 'direct', not to 'fft'",
        ),
        (
            "correlate",
            "--form n-to-m --kernel-option variant=combined --engine fft",
            "kernel options belong to engine 'direct', not to 'fft'",
        ),
        (
            "align",
            "--kernel-option variant=combined --engine tensor",
            "kernel options belong to engine 'direct', not to 'tensor'",
        ),
        (
            "correlate",
            "--form n-to-m --kernel-option variant=combined --engine tensor",
            "kernel options belong to engine 'direct', not to 'tensor'",
        ),
        ("align", "--kernel-option variant=combined --engine definition", "kernel options belong to engine 'direct'"),
        (
            "correlate",
            "--form n-to-m --kernel-option variant=combined --engine definition",
            "kernel options belong to engine 'direct'",
        ),
        ("align", "--kernel-option variant=combined --normalization phase", "kernel options belong to engine 'direct'"),
        (
            "correlate",
            "--form n-to-m --kernel-option variant=combined --normalization phase",
            "kernel options belong to engine 'direct'",
        ),
        ("align", "--kernel-option precision=fp32", "unknown precision 'fp32'"),
        ("correlate", "--form n-to-m --kernel-option precision=fp32", "unknown precision 'fp32'"),
        ("align", "--kernel-option tiles=3", "correlation has variant, distribution"),
        ("correlate", "--form n-to-m --kernel-option tiles=3", "correlation has variant, distribution"),
        ("align", "--kernel-option rights", "write NAME=VALUE"),
        ("correlate", "--form n-to-m --kernel-option rights", "write NAME=VALUE"),
        ("align", "--kernel-option rights=many", "write a whole number"),
        ("correlate", "--form n-to-m --kernel-option rights=many", "write a whole number"),
        ("align", "--kernel-option variant=multi-row --kernel-option phases=1", "write yes or no"),
        ("correlate", "--form n-to-m --kernel-option variant=multi-row --kernel-option phases=1", "write yes or no"),
        (
            "align",
            "--kernel-option precision=fp16 --kernel-option variant=combined",
            "precision belongs to engine 'tensor', kernel variant 'combined' to",
        ),
        (
            "correlate",
            "--form n-to-m --kernel-option precision=fp16 --kernel-option variant=combined",
            "precision belongs to engine 'tensor', kernel variant 'combined' to",
        ),
        (
            "align",
            "--kernel-option precision=fp16 --engine direct",
            "precision belongs to engine 'tensor', not to 'direct'",
        ),
        (
            "correlate",
            "--form n-to-m --kernel-option precision=fp16 --engine direct",
            "precision belongs to engine 'tensor', not to 'direct'",
        ),
        (
            "align",
            "--kernel-option precision=fp16 --normalization phase",
            "precision belongs to engine 'tensor', not to 'fft'",
        ),
        (
            "correlate",
            "--form n-to-m --kernel-option precision=fp16 --normalization phase",
            "precision belongs to engine 'tensor', not to 'fft'",
        ),
        ("align", "--kernel-option variant=combined", "'direct' cannot run on numpy arrays"),
        ("align", "--kernel-option precision=fp16x2", "'tensor' cannot run on numpy arrays"),
        ("correlate", "--form n-to-m --kernel-option variant=combined", "'direct' cannot run on numpy arrays"),
        ("correlate", "--form n-to-m --kernel-option precision=fp16x2", "'tensor' cannot run on numpy arrays"),
        ("correlate", "", "form one-to-one takes one image .. holds 4 .. use --form n-to-m"),
        ("correlate", "--form one-to-many", "takes one image from LEFT"),
        ("correlate", "--form n-to-m --normalization phase --engine definition", "only in engine 'fft'"),
        ("correlate", "--form n-to-m --engine direct", "direct .. cannot run on numpy arrays"),
        ("correlate", "--form n-to-m --engine tensor", "engine 'tensor' cannot run on numpy arrays .. CUDA device"),
        ("correlate", "--form n-to-m --min-overlap 1.5", "min_overlap is 1.5"),
        ("correlate", "--form n-to-m --channel 1", "channel 1 .. neither file has channels"),
        ("correlate", "--form n-to-m --max-pixels 5", "--max-pixels 1920"),
        ("correlate", "--form n-to-m --device tpu", "use auto, cpu, cuda or cuda:N"),
        ("correlate", "--form all", "--form"),
        ("correlate", "--max-shift -1", "--max-shift"),
        ("correlate", "--normalization ncc", "--normalization"),
        ("correlate", "--channel -1", "--channel"),
        ("correlate", "--roi 1", "--roi"),
        ("correlate", "-o p.npy --peaks", "peaks are written as .csv"),
        ("correlate", "-o p.csv", "planes are written as .tif"),
        (
            "correlate",
            "--form n-to-m -o p.csv --peaks --kernel-option variant=combined",
            "'direct' cannot run on numpy arrays",
        ),
        (
            "align",
            "--engine direct --device auto",
            "engine 'direct' cannot run on numpy arrays: it runs on a CUDA device",
        ),
        (
            "align",
            "--engine direct --device cpu",
            "engine 'direct' cannot run on numpy arrays: it runs on a CUDA device",
        ),
        (
            "align",
            "--engine tensor --device auto",
            "engine 'tensor' cannot run on numpy arrays: it runs on a CUDA device",
        ),
        (
            "align",
            "--engine tensor --device cpu",
            "engine 'tensor' cannot run on numpy arrays: it runs on a CUDA device",
        ),
    ],
)
def test_wrong_usage(folder, monkeypatch, command, words, message):
    place, before = folder
    monkeypatch.chdir(place)
    monkeypatch.setitem(sys.modules, "cupy", None)
    run = xcorr(*[command] * bool(command), *INPUTS[command], *["--device", "cpu"] * bool(command), *shlex.split(words))
    assert run.code == 2
    assert [part for part in message.split(" .. ") if part not in run.stderr] == []
    assert run.lines_of_error[-1].startswith(("Error: ", "xcorr: "))
    assert set(place.iterdir()) == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("align m.tif --roi 0:999,0:9", "do not lie inside 0:40"),
        ("align m.tif --reference -9", "the stack has frames 0 to 3"),
        ("align m.tif --max-pixels 5", "allow it with --max-pixels 1920"),
        ("align m.tif --reference small.tif", "must have the size of a frame"),
        ("align m.tif --motion patches", "do not fit into frames of 40 x 48: give a smaller patch"),
        ("align m.tif --axis Z", "one plane along Z and 4 along T"),
        ("align m.tif --flat m.tif", "give a single image"),
        ("align c.tif --channel 0,5", "has 3 channel(s)"),
        ("filter wide.tif --box 3", "images of uint32 cannot be filtered"),
        ("field small.tif", "holds one image"),
        ("field flat.tif --window 128", "do not fit"),
        ("field flat.tif", "flat"),
        ("unmix m.tif --matrix m.csv", "axes TYX .. --channel-axis T"),
        ("unmix c.tif --matrix m.csv --channel-axis Z", "axes CYX and no axis Z .. --channel-axis C"),
        ("unmix c.tif --matrix wide.csv", "3 channels along C .. wide.csv needs 4"),
        ("unmix c.tif --matrix m.csv --max-pixels 5", "--max-pixels 600"),
        ("unmix small.tif --matrix m.csv", "no axis C of channels; it is a single image"),
        ("unmix tc.ome.tif --matrix m.csv --channel-axis T", "two axes of channels"),
        ("unmix rgba.tif --stain he", "save it without transparency"),
        ("apply t.csv m.tif --scale 1e300", "would move a frame by 4.24e+300 px, and nothing of it would be left"),
    ],
)
def test_a_stack_fails_in_words(folder, monkeypatch, tmp_path, words, message):
    monkeypatch.chdir(folder[0])
    run = xcorr(*shlex.split(words), "-o", tmp_path / "out", "--device", "cpu")
    assert run.code == 1
    assert [part for part in message.split(" .. ") if part not in " ".join(run.stdout.split())] == []
    assert max(map(len, run.stdout.splitlines())) < 400
    assert not list((tmp_path / "out").glob("*/*"))[1:]
