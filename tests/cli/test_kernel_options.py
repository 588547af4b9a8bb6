"""Options of the kernels on the command line: they reach the settings, and what makes no sense is wrong usage."""

import pytest

from tests.batch.movies import align, write_movie
from tests.cli.planes import correlate
from xcorr_app import KernelOptions
from xcorr_app.batch.align.options import AlignOptions

COMMANDS = {
    "align": lambda stack, out, *words: align(stack, "-o", out, *words),
    "correlate": lambda stack, out, *words: correlate(stack, stack, out, "--form", "n-to-m", *words),
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
def stack(tmp_path_factory):
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
        ("precision=fp16 --engine warp-shuffle", "precision belongs to engine 'tensor', not to 'direct'"),
        ("precision=fp16 --normalization phase", "precision belongs to engine 'tensor', not to 'fft'"),
    ],
)
@pytest.mark.parametrize("run_command", COMMANDS)
def test_wrong_usage(tmp_path, stack, run_command, words, message):
    run = COMMANDS[run_command](stack, tmp_path / "out.npy", *typed(words))
    assert run.code == 2
    assert message in run.stderr
    assert not (tmp_path / "out.npy").exists()


@pytest.mark.parametrize("run_command", COMMANDS)
def test_kernels_need_a_device(tmp_path, stack, run_command):
    run = COMMANDS[run_command](stack, tmp_path / "out.npy", *typed("variant=combined"))
    assert run.code == 2
    assert "'direct' cannot run on numpy arrays" in run.stderr
    run = COMMANDS[run_command](stack, tmp_path / "out.npy", *typed("precision=fp16x2"))
    assert run.code == 2
    assert "'tensor' cannot run on numpy arrays" in run.stderr
