"""What ``python -m benchmarks ablation`` runs, prints and writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.ablation.compile import compile_ahead
from benchmarks.ablation.documents import DOCUMENTS
from benchmarks.ablation.drawing import write_drawing
from benchmarks.ablation.joining import joined, record_in
from benchmarks.ablation.tables import tables_of
from benchmarks.correlation.tables import print_ceilings
from benchmarks.harness.clock import Clock
from benchmarks.harness.contenders import has_torch
from benchmarks.harness.effort import Effort
from benchmarks.harness.record import write_json
from benchmarks.work.benchmark import WorkBenchmark
from benchmarks.work.records import WorkResult
from benchmarks.work.suite import Suite

__all__ = ["QUICK_READINGS", "measured", "record_path", "run_ablation"]

QUICK_READINGS = 20
"""Of a contender, in place of a hundred."""


def run_ablation(console: Console, documents: Sequence[str], only: str, folder: Path, *, quick: bool) -> None:
    """Measure what the documents evaluate; write a record and a picture of each, and print its tables last.

    The record is written after each group of cases, with those of an earlier run that are not measured anew.
    """
    lines: list[str] = []
    for document in documents or tuple(DOCUMENTS):
        suite, path, record = DOCUMENTS[document], record_path(folder, document), None
        for of_group in measured(console, suite, only, quick=quick):
            record = joined(of_group, record_in(path), suite)
            write_json(record, path)
        if record is None:
            continue
        write_drawing(record, path.with_suffix(".svg"))
        lines += [f"== {document} ({path.name})", *tables_of(record)]
    for line in lines:
        console.print(line, soft_wrap=True, markup=False, highlight=False)


def record_path(folder: Path, document: str) -> Path:
    """Return where the record of a document's ablation lies."""
    return folder / f"ablation_{document}.json"


def measured(console: Console, suite: Suite, only: str, *, quick: bool) -> Iterator[dict[str, Any]]:
    """Check and time every contender of a document, and yield a record of each group of cases."""
    cases = suite.cases_named(only, quick=quick)
    if not cases:
        return
    clock = Clock(QUICK_READINGS, suite.clock.min_seconds) if quick else suite.clock
    benchmark = WorkBenchmark(suite, effort=Effort(clock))
    print_ceilings(console, benchmark.status, benchmark.rates, has_torch=has_torch(), in_turn=True)
    compile_ahead(suite, cases)
    for group in dict.fromkeys(case.group for case in cases):
        of_group = [case for case in cases if case.group == group]
        console.print(f"{suite.name}, {group}: {len(of_group)} cases", soft_wrap=True)
        benchmark.time_torch(of_group)
        results: list[WorkResult] = [benchmark.measure(case) for case in of_group]
        yield with_readings(benchmark.record(results), clock.repeats)


def with_readings(record: dict[str, Any], readings: int) -> dict[str, Any]:
    """Note with each case how many readings its times are of, and when they were taken: a record may join runs."""
    date = record["environment"]["date"]
    del record["quick"]  # which the readings of each case say
    return record | {"cases": [case | {"readings": readings, "date": date} for case in record["cases"]]}
