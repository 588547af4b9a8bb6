"""What the commands ``python -m benchmarks filter``, ``im2win`` and ``pointwise`` have in common."""

from __future__ import annotations

import sys
from itertools import groupby
from pathlib import Path
from typing import Any

import click

from benchmarks.correlation.tables import print_ceilings
from benchmarks.harness.contenders import has_torch
from benchmarks.harness.record import require_device, write_json
from benchmarks.harness.suites import SUITES
from benchmarks.work.benchmark import WorkBenchmark
from benchmarks.work.means import group_means
from benchmarks.work.records import WorkResult
from benchmarks.work.tables import print_goals, print_group, print_means, print_result
from xcorr_app.cli.failures import SOMETHING_FAILED, one_line_failures
from xcorr_app.cli.printing.tables import console_for
from xcorr_app.gpu.runtime.select import select_device


def run_suite(name: str, *, quick: bool, only: str, json_path: Path | None, device: str, debug: bool) -> None:
    """Run a suite, print its tables and write its file of results."""
    suite = SUITES[name]
    console = console_for(sys.stdout)
    cases = suite.cases_named(only, quick=quick)
    check_request(cases, only, json_path)
    with one_line_failures(SOMETHING_FAILED, debug=debug):
        require_device()
        select_device(device)
        benchmark = WorkBenchmark(suite, quick=quick)
        print_ceilings(console, benchmark.status, benchmark.rates, has_torch=has_torch(), in_turn=True)
        benchmark.time_torch(cases, lambda text: console.print(text, soft_wrap=True, markup=False, highlight=False))
        console.print()
        benchmark.compile_ahead(cases)
        results: list[WorkResult] = []
        for group, members in groupby(cases, lambda case: case.group):
            first = len(results)
            for case in members:
                results.append(benchmark.measure(case))
                if not group:
                    print_result(console, results[-1])
            if group:
                print_group(console, results[first:])
        print_means(console, group_means(results, suite.mean_goals))
        print_goals(console, results)
        if json_path is not None:
            write_json(benchmark.record(results), json_path)
            console.print(f"Written: {json_path}", soft_wrap=True, markup=False, highlight=False)


def check_request(cases: list[Any], only: str, json_path: Path | None) -> None:
    """Refuse a name that no case has, and a file that cannot be written: before minutes of measuring, not after."""
    if not cases:
        raise click.BadParameter(f"no case's name contains {only!r}", param_hint="--only")
    if json_path is not None and (json_path.is_dir() or not json_path.parent.is_dir()):
        raise click.BadParameter(f"{str(json_path)!r} is no file in a folder that exists", param_hint="--json")
