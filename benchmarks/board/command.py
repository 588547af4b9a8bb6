"""``python -m benchmarks.board``: measure the cases, print a table, and write results/board.json or another file."""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from rich.console import Console

import xcorr_app as xc
from benchmarks.board.cases import CASES, Case
from benchmarks.board.measure import Found, figures, measure
from benchmarks.board.real import REAL
from benchmarks.board.report import Row, compared, failures, table
from benchmarks.harness.environment import environment
from benchmarks.harness.record import RESULTS

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


_ALL = {case.name: case for case in (*CASES, *REAL)}


def of_seed(name: str, seed: int) -> dict[str, dict[str, Any]]:
    """Measure one seed of a case in all ways; in none where its data are absent."""
    case = _ALL[name]
    if not (many := case.series(seed)):
        return {}
    return {way: measure(way, many) for way in case.ways}


def row_of(case: Case, way: str, seeds: list[dict[str, Any]]) -> Row:
    """Return the figures of a case measured in one way, of all seeds; None where one is not known."""
    found = figures(Found.pooled([each["found"] for each in seeds]))
    bound = float(np.sqrt(np.mean([each["bound"] ** 2 for each in seeds])))
    passes, cpu, base = (float(np.mean([each[name] for each in seeds])) for name in ("passes", "cpu", "base"))
    more = {"bound": bound, "over_bound": found["rms"] / bound, "passes": passes, "cpu": cpu, "base": base}
    row = {"case": case.name, "way": way, "seeds": len(seeds), **found, **more, "over_base": cpu / base}
    known = {key: None if isinstance(value, float) and math.isnan(value) else value for key, value in row.items()}
    known |= {"asked": case.asked if way == case.asked_of else {}, "calibrated": case.calibrated}
    known["raised"] = sorted({words for each in seeds for words in each["raised"]})
    return {**known, "fails": failures(known)}


def rows_of(cases: list[Case], seeds: range, jobs: int) -> Iterator[Row]:
    """Measure cases, one thread a process; the answers depend on neither."""
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    work = [(case.name, seed) for case in cases for seed in (seeds[:1] if case in REAL else seeds)]
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), _alone) as pool:
        found = pool.map(of_seed, *zip(*work, strict=True))
        for case in cases:
            parts = [next(found) for name, _ in work if name == case.name]
            for way in parts[0]:
                yield row_of(case, way, [part[way] for part in parts])


def _alone() -> None:
    """Begin a process: one thread, and all that is imported or made ready at the first call."""
    cv2.setNumThreads(1)
    xc.estimate_shifts(np.random.default_rng(0).normal(size=(3, 64, 64)), "template")


def parse_arguments(words: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.board", description="The board of cases.")
    parser.add_argument("--cases", nargs="+", metavar="NAME", default=[""], help="those whose names begin so")
    parser.add_argument("--seeds", type=int, default=20, metavar="N", help="series of each case")
    parser.add_argument("--first-seed", type=int, default=0, metavar="N")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="default, where no cases are chosen: results/board.json"
    )
    parser.add_argument("--compare", type=Path, metavar="FILE", help="say which figures are 1.2 x worse, or better")
    return parser.parse_args(words)


def main(words: list[str] | None = None) -> None:
    """Run the board."""
    arguments = parse_arguments(words)
    cases = [case for case in _ALL.values() if case.name.startswith(tuple(arguments.cases))]
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    path = arguments.json or (RESULTS / "board.json" if arguments.cases == [""] else None)
    run = {"seeds": arguments.seeds, "first_seed": arguments.first_seed, "jobs": arguments.jobs}
    before = json.loads(arguments.compare.read_text())["rows"] if arguments.compare else []
    payload = {"environment": environment(), "parameters": run}
    console, rows = Console(width=240), []
    for row in rows_of(cases, seeds, arguments.jobs):
        rows.append(row)
        console.print(f"{row['case']}, {row['way']}: rms {row['rms']}; fails: {'; '.join(row['fails']) or 'nothing'}")
        if path:  # after each row, so that a run that is broken off leaves those it has
            path.write_text(json.dumps({**payload, "rows": rows}, indent=1, allow_nan=False) + "\n")
    for name in {case.name for case in cases} - {row["case"] for row in rows}:
        console.print(f"{name}: left out, there is no such folder in ../shared/data")
    console.print(table(rows))
    for name, worse, better in compared(rows, before):
        console.print(f"{name}: " + "; ".join([*(f"worse: {w}" for w in worse), *(f"better: {b}" for b in better)]))
