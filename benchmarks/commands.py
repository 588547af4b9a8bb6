"""``python -m benchmarks``: the product beside its peers, on this machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from benchmarks._environment import RESULTS
from benchmarks.ablation.command import run_ablation
from benchmarks.ablation.documents import DOCUMENTS
from benchmarks.correlation.benchmark import CorrelationBenchmark
from benchmarks.correlation.cases import cases_named
from benchmarks.correlation.tables import print_case, print_ceilings, print_summary
from benchmarks.harness.contenders import has_torch
from benchmarks.harness.effort import QUICK, THOROUGH
from benchmarks.harness.record import require_device, write_json
from benchmarks.moving import moving
from benchmarks.pipeline.cases import Size
from benchmarks.pipeline.command import run_pipeline
from benchmarks.same import same
from benchmarks.work.command import check_request, run_suite
from xcorr_app.cli.failures import SOMETHING_FAILED, one_line_failures
from xcorr_app.cli.options import PATH, Value
from xcorr_app.cli.printing.tables import console_for
from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.runtime.select import select_device


def _cuda_device(text: str) -> str:
    kind, colon, number = text.partition(":")
    if kind != "cuda" or (colon and not number.isdecimal()):
        raise ArgumentError(f"{text!r}: the benchmark runs on cuda or cuda:N")
    return text


@click.group()
def bench() -> None:
    """Time the product beside its peers on this machine's GPU.

    \b
    Example:
      python -m benchmarks correlation --quick
    """


def _options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that every benchmark has."""
    options = (
        click.option(
            "--quick", is_flag=True, help="Fewer repetitions, and only the cases and variants that matter most."
        ),
        click.option(
            "--only", default="", metavar="TEXT", help="Cases whose name contains this text.  [default: all of them]"
        ),
        click.option("--json", "json_path", type=PATH, metavar="FILE", help="Also write every number to this file."),
        click.option(
            "--device",
            type=Value("cuda[:N]", _cuda_device),
            default="cuda",
            show_default=True,
            help="The GPU to measure.",
        ),
        click.option("--debug", is_flag=True, help="Show the traceback of an error."),
    )
    for option in reversed(options):
        command = option(command)
    return command


bench.add_command(moving)
bench.add_command(same)


@bench.command()
@_options
def correlation(quick: bool, only: str, json_path: Path | None, device: str, debug: bool) -> None:
    """Time every correlation kernel, the FFT engine, and FFTs through CuPy and PyTorch.

    Every answer is checked against float64 before it is timed; each case says who wins and what engine auto takes.
    Peaks are also searched on tensor cores, where the device has them; --only tensor times the cases meant for these.

    \b
    Examples:
      python -m benchmarks correlation --json results.json
      python -m benchmarks correlation --quick --only one-to-one
      python -m benchmarks correlation --only tensor
    """
    console = console_for(sys.stdout)
    cases = list(cases_named(only))
    check_request(cases, only, json_path)
    with one_line_failures(SOMETHING_FAILED, debug=debug):
        require_device()
        select_device(device)
        benchmark = CorrelationBenchmark(QUICK if quick else THOROUGH)
        print_ceilings(console, benchmark.status, benchmark.rates, has_torch=has_torch())
        benchmark.compile_ahead(cases)
        results: list[Any] = []
        for case in cases:
            results.append(benchmark.measure(case))
            print_case(console, results[-1])
        print_summary(console, results)
        if json_path is not None:
            write_json(benchmark.record(results), json_path)
            console.print(f"Written: {json_path}", soft_wrap=True, markup=False, highlight=False)


@bench.command("filter")
@_options
def filter_bench(**options: Any) -> None:
    """Time the filter kernels, CuPy's ndimage and PyTorch's conv2d (cuDNN).

    Square filters of every width from 1 to 63, Gaussians, float32 and uint16, stacks and single images, one Python
    call. Every answer is checked against float64 before it is timed. PyTorch
    runs in fresh processes, without TF32, with and without cuDNN's search for its fastest algorithm; the better counts.

    \b
    Examples:
      python -m benchmarks filter --json results.json
      python -m benchmarks filter --quick --only gaussian
    """
    run_suite("filter", **options)


@bench.command()
@_options
def im2win(**options: Any) -> None:
    """Time Im2win and cuDNN on the twelve published layers, with the device memory that each takes.

    The window transform is part of every time. Every answer is checked against float64 before it is timed. PyTorch runs
    in fresh processes, without TF32, with and without cuDNN's search for its fastest algorithm; the better counts, and
    the note says which kind of algorithm it ran. Every step of the kernel: `python -m benchmarks ablation`.

    \b
    Examples:
      python -m benchmarks im2win --json results.json
      python -m benchmarks im2win --only "layer 04"
    """
    run_suite("im2win", **options)


@bench.command()
@_options
def pointwise(**options: Any) -> None:
    """Time channel mixing and the pointwise layers of three networks beside matrix products.

    Unmixing of 2 to 32 channels, and the 41 different layers of MobileNetV1, MobileNetV2 and EfficientNet-B0 at batch
    1, 32 and 128 with their geometric means. Every answer is checked against float64 before it is timed. Peers are
    matmul of CuPy and PyTorch and conv2d in both layouts, without TF32, in fresh processes as for the filters.

    \b
    Examples:
      python -m benchmarks pointwise --json results.json
      python -m benchmarks pointwise --quick --only "batch 32"
    """
    run_suite("pointwise", **options)


@bench.command()
@click.option(
    "--document", "documents", multiple=True, type=click.Choice(list(DOCUMENTS)), help="Only this one, or several."
)
@click.option("--quick", is_flag=True, help="Fewer readings, and only the cases that matter most: some five minutes.")
@click.option("--only", default="", metavar="TEXT", help="Cases whose name contains this text.  [default: all of them]")
@click.option(
    "--results",
    type=PATH,
    default=RESULTS,
    metavar="FOLDER",
    help="Where ablation_DOCUMENT.json and its picture are written.  [default: benchmarks/results]",
)
@click.option(
    "--device", type=Value("cuda[:N]", _cuda_device), default="cuda", show_default=True, help="The GPU to measure."
)
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def ablation(documents: tuple[str, ...], quick: bool, only: str, results: Path, device: str, debug: bool) -> None:
    """Measure what each of the four documents evaluates, and draw it: every step of its design, beside its peers.

    Every answer is checked against float64 before it is timed; of 100 readings, the tables give median and best.
    The record is written after each group of cases; what an earlier run on the same device measured besides is kept.

    \b
    Examples:
      python -m benchmarks ablation --document reuse
      python -m benchmarks ablation --document correlation --only "work distribution, one-to-one"
      python -m benchmarks ablation --quick
    """
    if only and not any(only in case.name for name in documents or DOCUMENTS for case in DOCUMENTS[name].cases):
        raise click.BadParameter(f"no case's name contains {only!r}", param_hint="--only")
    if not results.is_dir():
        raise click.BadParameter(f"{str(results)!r} is no folder", param_hint="--results")
    with one_line_failures(SOMETHING_FAILED, debug=debug):
        require_device()
        select_device(device)
        run_ablation(console_for(sys.stdout), documents, only, results, quick=quick)


@bench.command("pipeline")
@click.option("--stacks", type=click.IntRange(1), default=4, show_default=True, help="Stacks of a case.")
@click.option("--frames", type=click.IntRange(10), default=250, show_default=True, help="Frames of a stack.")
@click.option("--side", type=click.IntRange(32), default=512, show_default=True, help="Rows and columns of a frame.")
@click.option("--only", multiple=True, metavar="TEXT", help="Cases of this name, or whose name contains it.")
@click.option("--device", default="auto", show_default=True, help="Where to compute, as `xcorr align` takes it.")
@click.option("--json", "json_path", type=PATH, metavar="FILE", help="Also write every number to this file.")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def pipeline(
    stacks: int, frames: int, side: int, only: tuple[str, ...], device: str, json_path: Path | None, debug: bool
) -> None:
    """Time whole commands from disk to disk, beside what the machine reads, writes and decodes.

    W is the second run over all stacks, R the rate of as many more; the table says which stage set the pace. A file of
    results keeps the cases that are not timed again.

    \b
    Examples:
      python -m benchmarks pipeline --device cpu --stacks 2 --frames 100
      python -m benchmarks pipeline --stacks 16 --frames 1250 --json pipeline.json
    """
    with one_line_failures(SOMETHING_FAILED, debug=debug):
        run_pipeline(console_for(sys.stdout), Size(stacks, frames, side), only, device, json_path)
