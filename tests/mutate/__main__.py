"""``python -m tests.mutate``: random single faults put into copies of the program, and the share that tests notice.

First every test file runs without a fault, to see which tests pass and which lines each runs. Then each fault is put in
alone, and tests that run its line are run, the nearest first, until one fails. A fault that none notices is printed:
either a test is missing, or the fault changes nothing. Exit code 1 where fewer than 85 % are noticed.
"""

from __future__ import annotations

import argparse
import compileall
import contextlib
import importlib
import json
import os
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from tests.mutate import slot
from tests.mutate.choice import Traces, rounds
from tests.mutate.mutants import mutants, mutated
from tests.mutate.nearest import ROOT, files_of_tests, importers, nearest

LAYERS = ("registration", "correlation", "io", "pipeline", "batch", "filtering", "report")
_ASKED = 0.85
_FOR_TRACES = 0.55
"""Share of the time in which tests are traced at most; files that are not done by then are left out."""
_KNOWN = 3
"""Files, the nearest to a fault, that must have been traced."""
_AT_ONCE = (
    "click", "cv2", "h5py", "hypothesis", "imagecodecs", "jinja2", "matplotlib.figure", "numpy.testing", "PIL.Image",
    "rich.console", "rich.progress", "scipy.fft", "scipy.ndimage", "scipy.optimize", "scipy.stats", "tifffile",
    "xxhash",
)  # fmt: skip
"""Libraries that are imported once, for all children."""
_VERSIONS = ("numpy", "scipy", "tifffile", "imagecodecs", "opencv-python-headless", "pytest", "hypothesis")


def main() -> None:
    """Print what became of every fault, then the share."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutate", description=__doc__)
    parser.add_argument("--count", type=int, default=150, help="faults in all")
    parser.add_argument("--seed", type=int, default=1, help="another one makes other faults")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes, each with its own copy")
    parser.add_argument("--minutes", type=float, default=24 * 60, help="end by then, with what is judged")
    parser.add_argument("--json", type=Path, help="file for the results")
    parser.add_argument("--only", nargs="*", help="faults that were printed, as FILE:NUMBER")
    chosen = parser.parse_args()
    begin = time.time()
    until = begin + 60 * chosen.minutes - 10
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"  # every processor has a worker
    os.environ["CUDA_VISIBLE_DEVICES"] = ""  # as on a machine without one: workers would share its memory
    for name in _AT_ONCE:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    for name in ("xcorr_app", "benchmarks"):
        compileall.compile_dir(ROOT / name, quiet=2)
    faults = [_place(text) for text in chosen.only] if chosen.only else _places(chosen.count, chosen.seed)
    with (
        tempfile.TemporaryDirectory(prefix="xcorr-mutate-", ignore_cleanup_errors=True) as folder,
        ProcessPoolExecutor(chosen.workers, get_context("fork"), slot.settle, (Path(folder),)) as pool,
    ):
        traces, late = _traced(pool, faults, begin + 60 * chosen.minutes * _FOR_TRACES)
        traced = time.time() - begin
        # A fault whose nearest tests are not known is not judged, whatever others would say of it.
        known = [place for place in faults if late.isdisjoint(nearest(place[0])[:_KNOWN])]
        # In random order, however long they take: what is judged in time speaks for all.
        jobs: list[Future[slot.Verdict]] = [pool.submit(slot.judge, _fault(*place, traces), until) for place in known]
        verdicts = []
        with contextlib.suppress(BrokenProcessPool):  # the system ended a worker: what is judged counts
            for job in as_completed(jobs):
                verdicts.append(job.result())
                _print(verdicts[-1])
    judged = [verdict for verdict in verdicts if verdict.outcome != slot.UNJUDGED]
    counts = Counter(verdict.outcome for verdict in judged)
    share = counts[slot.NOTICED] / max(1, len(judged))
    print(
        f"{len(judged)} of {len(faults)} judged: {counts[slot.NOTICED]} noticed, {counts[slot.SURVIVED]} not: "
        f"{share:.1%}; {len(traces)} tests traced in {traced:.0f} s, {time.time() - begin:.0f} s in all"
    )
    if chosen.json is not None:
        _write(chosen.json, chosen.seed, faults, verdicts, traces)
    sys.exit(share < _ASKED)


def _places(count: int, seed: int) -> list[tuple[Path, int]]:
    everywhere = [
        (path.relative_to(ROOT), number)
        for layer in LAYERS
        for path in sorted((ROOT / "xcorr_app" / layer).rglob("*.py"))
        for number, _ in enumerate(mutants(path.read_text()))
    ]
    return slot.sample(everywhere, count, seed)


def _place(text: str) -> tuple[Path, int]:
    path, _, number = text.rpartition(":")
    return Path(path), int(number)


def _traced(pool: ProcessPoolExecutor, faults: list[tuple[Path, int]], until: float) -> tuple[Traces, frozenset[Path]]:
    """Run every file without a fault, those nearest to faults first; say which files have no test that passes."""
    traces: dict[str, Any] = {}
    orders = [nearest(module) for module in {module for module, _ in faults}]
    ranks = {path: min(order.index(path) for order in orders) for path in files_of_tests()}
    files = sorted(ranks, key=lambda path: (ranks[path], -(ROOT / path).stat().st_size))
    late = set()
    jobs = [pool.submit(slot.trace, str(path), until) for path in files]
    for job in as_completed(jobs):
        file, found = job.result()
        traces |= found
        if not found:
            if time.time() >= until:
                late.add(Path(file))
            print(f"left out, no test passes in time without a fault: {file}", flush=True)
    return traces, frozenset(late)


def _fault(module: Path, number: int, traces: Traces) -> slot.Fault:
    mutant = mutated((ROOT / module).read_text(), number)
    tests = rounds(module, mutant.lines, importers(module), nearest(module), traces)
    costs = [(some, sum(traces[test][0] for test in some)) for some in tests]
    return slot.Fault(str(module), number, mutant.line, mutant.before, mutant.after, mutant.source, costs)


def _print(verdict: slot.Verdict) -> None:
    by = f" by {verdict.by}" + (f" ({verdict.how})" if verdict.how != "fails" else "") if verdict.by else ""
    place = f"{verdict.file}:{verdict.number} line {verdict.line}"
    change = f"{verdict.before} -> {verdict.after}"
    print(f"{verdict.outcome}{by}: {place}: {change} [{verdict.tests} tests, {verdict.seconds:.0f} s]", flush=True)


def _write(path: Path, seed: int, faults: list[tuple[Path, int]], verdicts: list[slot.Verdict], traces: Traces) -> None:
    order = {(str(file), number): index for index, (file, number) in enumerate(faults)}
    judged = [verdict for verdict in verdicts if verdict.outcome != slot.UNJUDGED]
    noticed = sum(verdict.outcome == slot.NOTICED for verdict in judged)
    record = {
        "date": datetime.now(UTC).date().isoformat(),
        "versions": {"python": sys.version.split()[0]} | {name: _version(name) for name in _VERSIONS},
        "seed": seed,
        "asked": len(faults),
        "judged": len(judged),
        "noticed": noticed,
        "share": round(noticed / max(1, len(judged)), 4),
        "tests": len(traces),
        "left_out": sorted({str(file) for file in files_of_tests()} - {test.split("::")[0] for test in traces}),
        "mutants": [
            asdict(verdict) | {"seconds": round(verdict.seconds, 1)}
            for verdict in sorted(verdicts, key=lambda verdict: order[verdict.file, verdict.number])
        ],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1) + "\n")


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


if __name__ == "__main__":
    main()
