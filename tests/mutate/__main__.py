"""``python -m tests.mutate``: random single faults put into copies of the program, and the share that tests notice.

Each fault is put in alone, and the files of tests nearest to its module are run, some at a time, until one fails that
passes without it. A fault that none notices is printed: either a test is missing, or the fault changes nothing. Exit
code 1 where fewer than 85 % are noticed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from tests.mutate.mutants import mutants, mutated
from tests.mutate.nearest import ROOT, nearest

LAYERS = ("registration", "correlation", "io", "pipeline", "batch", "filtering", "report")
_ASKED = 0.85
_ROUNDS = ((0, 3), (3, 9), (9, 21), (21, 45))
"""Of the files from the nearest on: these notice most, and need not wait for the others."""
_SECONDS = 300.0
"""A round may take; most take some ten."""
_MEMORY = 12 << 30
"""Bytes that a run may ask for: a fault that takes all memory ends itself alone."""
_COPIED = ("xcorr_app", "kernels", "tests", "benchmarks", "sample_data", "docs", "packaging")
_FILES = ("pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE", "Makefile", "mkdocs.yml", "CITATION.cff")


@dataclass(frozen=True)
class Verdict:
    """What became of a fault."""

    file: str
    number: int
    line: int
    before: str
    after: str
    noticed: bool
    by: str
    seconds: float

    def __str__(self) -> str:
        said = f"noticed by {self.by}" if self.noticed else "survived"
        place = f"{self.file}:{self.number} line {self.line}"
        return f"{said}: {place}: {self.before} -> {self.after} [{self.seconds:.0f} s]"


def main() -> None:
    """Print what became of every fault, then the share."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutate", description=__doc__)
    parser.add_argument("--count", type=int, default=150, help="faults in all")
    parser.add_argument("--seed", type=int, default=1, help="another one makes other faults")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes, each with its own copy")
    parser.add_argument("--minutes", type=float, default=24 * 60, help="begin no fault after these")
    parser.add_argument("--json", type=Path, help="file for the results")
    parser.add_argument("--only", nargs="*", help="faults that were printed, as FILE:NUMBER")
    chosen = parser.parse_args()
    until = time.time() + 60 * chosen.minutes
    faults = chosen.only or _sample(chosen.count, chosen.seed)
    verdicts = []
    with (
        tempfile.TemporaryDirectory(prefix="xcorr-mutate-", ignore_cleanup_errors=True) as folder,
        ProcessPoolExecutor(chosen.workers) as pool,
    ):
        # In random order, however long they take: what is judged in time speaks for all.
        for job in as_completed([pool.submit(_judge, Path(folder), fault, until) for fault in faults]):
            if (verdict := job.result()) is not None:
                verdicts.append(verdict)
                print(verdict, flush=True)
    counts = Counter(verdict.noticed for verdict in verdicts)
    share = counts[True] / max(1, len(verdicts))
    print(f"{len(verdicts)} of {len(faults)} judged: {counts[True]} noticed, {counts[False]} not: {share:.1%}")
    if chosen.json is not None:
        kept = {"seed": chosen.seed, "asked": len(faults), "judged": len(verdicts), "noticed": counts[True]}
        kept |= {"date": datetime.now(UTC).date().isoformat(), "share": round(share, 4)}
        record = kept | {"mutants": [asdict(verdict) for verdict in verdicts]}
        chosen.json.write_text(json.dumps(record, indent=1) + "\n")
    sys.exit(share < _ASKED)


def _sample(count: int, seed: int) -> list[str]:
    """Every fault is as likely as any other."""
    everywhere = [
        f"{path.relative_to(ROOT)}:{number}"
        for layer in LAYERS
        for path in sorted((ROOT / "xcorr_app" / layer).rglob("*.py"))
        for number, _ in enumerate(mutants(path.read_text()))
    ]
    return random.Random(seed).sample(everywhere, min(count, len(everywhere)))  # noqa: S311 - nothing is kept secret


def _judge(folder: Path, fault: str, until: float) -> Verdict | None:
    """Put the fault into this process's copy, run the tests, and take it out again; None where the time is out."""
    if time.time() > until:
        return None
    begin, tree = time.time(), _copy(folder / f"slot-{os.getpid()}")
    module, _, number = fault.rpartition(":")
    mutant = mutated((tree / module).read_text(), int(number))
    by = ""
    for first, last in _ROUNDS:
        files = [str(path) for path in nearest(Path(module))[first:last]]
        failure = _under(mutant.source, tree / module, tree, files)
        # A test that fails without the fault as well, now and then, notices nothing.
        if failure and not _failure(tree, [failure] if "::" in failure else files):
            by = failure
            break
    seconds = round(time.time() - begin, 1)
    return Verdict(module, int(number), mutant.line, mutant.before, mutant.after, bool(by), by, seconds)


def _copy(place: Path) -> Path:
    """The project, with real stacks beside it where it has them."""
    tree = place / "tree"
    if not tree.exists():
        for name in _COPIED:
            shutil.copytree(ROOT / name, tree / name)
        for name in _FILES:
            shutil.copy2(ROOT / name, tree)
        if (ROOT.parent / "shared").is_dir():
            (place / "shared").symlink_to(ROOT.parent / "shared")
    return tree


def _under(source: str, module: Path, tree: Path, files: list[str]) -> str:
    """The first failure under a fault; the module is then as it was, its time included, so that its code is kept."""
    before, times = module.read_bytes(), module.stat()
    try:
        module.write_text(source)
        return _failure(tree, files)
    finally:
        module.write_bytes(before)
        os.utime(module, ns=(times.st_atime_ns, times.st_mtime_ns))


def _failure(tree: Path, tests: list[str]) -> str:
    """Name the first test that fails, or say how the run ended; nothing where all pass."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    one = {"PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1", "CUDA_VISIBLE_DEVICES": "", "XCORR_FUZZ": "100"}
    one["XCORR_TEST_SHARE"] = "all"
    words = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", f"--basetemp={tree.parent}/tests"]
    run = subprocess.Popen(
        [*words, *tests],
        cwd=tree,
        env=os.environ | threads | one,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,  # with what it starts it is one group, and ends as one
        preexec_fn=_limit_memory,
    )
    try:
        said, _ = run.communicate(timeout=_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(run.pid, signal.SIGKILL)
        run.communicate()
        return "a run that does not end"
    if run.returncode in (0, 5):  # all passed, or none was chosen
        return ""
    failed = re.search(r"^(?:FAILED|ERROR) (\S+::\S+)", said, re.MULTILINE)
    return failed[1] if failed else f"a run that ends with code {run.returncode}"


def _limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))


if __name__ == "__main__":
    main()
