"""Try other strips, columns and blocks than the launcher's for moving frames on one GPU.

    python benchmarks/moving_tunings.py [--methods linear cubic] [--seconds 60] [--json FILE]

For each case and method the launcher's own choice comes first; then columns and rows of a thread are varied, then
threads and blocks at the best of those. Every answer is compared with that of the launcher's choice before it is
timed; the table shows the best five.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.harness.clock import Clock
from benchmarks.harness.environment import environment
from benchmarks.moving import CASES, Case, scene
from xcorr_app.gpu.resample.problem import TranslationProblem
from xcorr_app.gpu.resample.run import translate_on_device
from xcorr_app.gpu.resample.translation import translation_launch
from xcorr_app.gpu.runtime.device import require_cuda

CLOCK = Clock(repeats=5, min_seconds=0.005)
COLUMNS, ROWS = (2, 4, 8, 16), (8, 16, 32, 64, 128)
THREADS, BLOCKS = (64, 128, 256), (2, 3, 4, 5, 6, 7, 8)

Tuning = Mapping[str, int]


def shapes() -> Iterator[Tuning]:
    """Columns and rows of a thread."""
    for columns in COLUMNS:
        for rows in ROWS:
            yield {"COLUMNS": columns, "ROWS": rows}


def occupancies(best: Tuning) -> Iterator[Tuning]:
    """Threads of a block and blocks of a multiprocessor, as its registers allow, at the best shape."""
    for threads in THREADS:
        for blocks in BLOCKS:
            if 256 <= threads * blocks <= 1024:
                yield {**best, "THREADS": threads, "BLOCKS": blocks}


def sweep(case: Case, method: str, deadline: float) -> list[dict[str, Any]]:
    """Microseconds a frame of the launcher's choice, then of the others, until the time is over."""
    cupy = importlib.import_module("cupy")
    frames, shifts = scene(case, case.frames)
    stack, moves = cupy.asarray(frames), cupy.asarray(shifts)
    out = cupy.empty_like(stack)
    expected, _ = translate_on_device(stack, moves, method, outside=0.0)
    rows: list[dict[str, Any]] = []

    def tried(tuning: Tuning) -> None:
        out.fill(77)
        translate_on_device(stack, moves, method, outside=0.0, out=out, tuning=tuning)
        if not bool((out == expected).all()):
            raise AssertionError(f"{case.name}, {method}: {dict(tuning)} gives other results")
        run = lambda: translate_on_device(stack, moves, method, outside=0.0, out=out, tuning=tuning)  # noqa: E731
        rows.append({"tuning": dict(tuning), "us": CLOCK.on_device(run).seconds / case.frames * 1e6})

    problem = TranslationProblem((case.side, case.side), case.frames, case.dtype, method)
    for choices in (iter([{}]), shapes(), None):
        best = min(rows, key=lambda row: row["us"])["tuning"] if rows else {}
        for tuning in occupancies(best) if choices is None else choices:
            columns = tuning.get("COLUMNS", 1) * np.dtype(case.dtype).itemsize
            if columns > 32 or time.monotonic() > deadline:
                continue
            translation_launch(problem, tuning=tuning)
            tried(tuning)
    return rows


def main() -> None:
    """Sweep, print, write."""
    parser = argparse.ArgumentParser(description="Tunings of moving frames")
    parser.add_argument("--methods", nargs="+", default=["linear", "cubic", "lanczos"])
    parser.add_argument("--seconds", type=float, default=30.0, help="of each case and method")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    require_cuda()
    found = []
    for case in CASES:
        for method in given.methods:
            rows = sweep(case, method, time.monotonic() + given.seconds)
            found.append({"case": case.name, "method": method, "rows": rows})
            print(f"{case.name} {method}: {rows[0]['us']:.3f} us by the launcher's choice, {len(rows)} tried")
            for row in sorted(rows, key=lambda row: row["us"])[:5]:
                print(f"  {row['us']:.3f}  {row['tuning']}", flush=True)
    if given.json is not None:
        given.json.write_text(
            json.dumps({"environment": environment(), "unit": "us a frame", "found": found}, indent=1)
        )


if __name__ == "__main__":
    main()
