"""What ``python -m benchmarks ablation`` runs, prints and writes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.ablation.compile import compile_ahead
from benchmarks.ablation.documents import DOCUMENTS
from benchmarks.ablation.drawing import write_drawing
from benchmarks.ablation.tables import tables_of
from benchmarks.correlation.tables import print_ceilings
from benchmarks.harness.clock import Clock
from benchmarks.harness.contenders import has_torch
from benchmarks.harness.effort import Effort
from benchmarks.harness.record import write_json
from benchmarks.work.benchmark import WorkBenchmark
from benchmarks.work.records import WorkResult
from benchmarks.work.suite import Suite

__all__ = ["QUICK_READINGS", "record_path", "run_ablation"]

QUICK_READINGS = 20
"""Of a contender, in place of a hundred."""


def run_ablation(console: Console, documents: Sequence[str], only: str, folder: Path, *, quick: bool) -> None:
    """Measure what the documents evaluate; write a record and a picture of each, and print its tables last."""
    lines: list[str] = []
    for document in documents or tuple(DOCUMENTS):
        record = measured(console, DOCUMENTS[document], only, quick=quick)
        if record is None:
            continue
        path = record_path(folder, document)
        write_json(record, path)
        write_drawing(record, path.with_suffix(".svg"))
        lines += [f"== {document} ({path.name})", *tables_of(record)]
    for line in lines:
        console.print(line, soft_wrap=True, markup=False, highlight=False)


def record_path(folder: Path, document: str) -> Path:
    """Return where the record of a document's ablation lies."""
    return folder / f"ablation_{document}.json"


def measured(console: Console, suite: Suite, only: str, *, quick: bool) -> dict[str, Any] | None:
    """Check and time every contender of a document; None where no case's name contains the text."""
    cases = suite.cases_named(only, quick=quick)
    if not cases:
        return None
    clock = Clock(QUICK_READINGS, suite.clock.min_seconds) if quick else suite.clock
    benchmark = WorkBenchmark(suite, effort=Effort(clock))
    print_ceilings(console, benchmark.status, benchmark.rates, has_torch=has_torch(), in_turn=True)
    console.print(f"{suite.name}: {len(cases)} cases", soft_wrap=True)
    compile_ahead(suite, cases)
    benchmark.time_torch(cases)
    results: list[WorkResult] = [benchmark.measure(case) for case in cases]
    return benchmark.record(results) | {"quick": quick, "readings": clock.repeats}
