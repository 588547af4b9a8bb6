"""``xcorr bench``: the product beside its peers, on this machine."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from xcorr_app.bench.cases import cases_named
from xcorr_app.bench.contenders import has_torch
from xcorr_app.bench.correlation import QUICK, THOROUGH, CorrelationBenchmark, require_device, write_json
from xcorr_app.cli.bench_tables import print_case, print_ceilings, print_summary
from xcorr_app.cli.failures import SOMETHING_FAILED, one_line_failures
from xcorr_app.cli.options import PATH, Value
from xcorr_app.cli.tables import console_for
from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.select import select_device


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
      xcorr bench correlation --quick
    """


@bench.command()
@click.option("--quick", is_flag=True, help="Fewer repetitions, and only the variants that may be the fastest.")
@click.option("--only", default="", metavar="TEXT", help="Cases whose name contains this text.  [default: all of them]")
@click.option("--json", "json_path", type=PATH, metavar="FILE", help="Also write every number to this file.")
@click.option(
    "--device", type=Value("cuda[:N]", _cuda_device), default="cuda", show_default=True, help="The GPU to measure."
)
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def correlation(quick: bool, only: str, json_path: Path | None, device: str, debug: bool) -> None:
    """Time every correlation kernel, the FFT engine, and FFTs through CuPy and PyTorch.

    Every answer is checked against float64 before it is timed; each case says who wins and what engine auto takes.

    \b
    Examples:
      xcorr bench correlation --json results.json
      xcorr bench correlation --quick --only one-to-one
    """
    console = console_for(sys.stdout)
    cases = list(cases_named(only))
    if not cases:
        raise click.BadParameter(f"no case's name contains {only!r}", param_hint="--only")
    if json_path is not None and (json_path.is_dir() or not json_path.parent.is_dir()):
        # Known before minutes of measuring, not after.
        raise click.BadParameter(f"{str(json_path)!r} is no file in a folder that exists", param_hint="--json")
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
