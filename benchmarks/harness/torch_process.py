"""PyTorch in a process of its own: what cuDNN answers first depends on settings made before its first call.

`torch_outcomes` starts ``python -m benchmarks.harness.torch_process REQUEST OUTCOMES``, which makes its own data and
checks every answer against float64 itself.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.harness.case import Work
from benchmarks.harness.clock import Clock
from benchmarks.harness.fastest import Outcome, free_device_memory

FAILED_PROCESS = "PyTorch"
"""Name of the contender whose failure stands for all that a process owed when it ended."""
_MAX_SECONDS = 900
_ROOT = Path(__file__).resolve().parents[2]


def torch_outcomes(
    suite: str, cases: Sequence[Work], clock: Clock, device: int, *, search: bool
) -> dict[str, list[Outcome]]:
    """Time the contenders of a suite that run in PyTorch."""
    with tempfile.TemporaryDirectory() as folder:
        request, answer = Path(folder, "request.json"), Path(folder, "outcomes.jsonl")
        names = [case.name for case in cases]
        asked = {"suite": suite, "cases": names, "clock": asdict(clock), "device": device, "search": search}
        request.write_text(json.dumps(asked))
        reason = _run(request, answer)
        lines = answer.read_text().splitlines(keepends=True) if answer.exists() else []
    whole = [json.loads(line) for line in lines if line.endswith("\n")]
    found = {entry["case"]: [Outcome(**outcome) for outcome in entry["outcomes"]] for entry in whole}
    if reason:
        for name in names:
            found.setdefault(name, [Outcome(FAILED_PROCESS, failure=reason)])
    return found


def _run(request: Path, answer: Path) -> str:
    """Run the process; returns why it failed, or nothing."""
    paths = [str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    try:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.harness.torch_process", str(request), str(answer)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            capture_output=True,
            text=True,
            check=False,
            timeout=_MAX_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return f"PyTorch's process was ended after {_MAX_SECONDS} s"
    if done.returncode == 0:
        return ""
    last = (done.stderr.strip().splitlines() or ["no message"])[-1]
    return f"PyTorch's process ended with code {done.returncode}: {last}"[:200]


def main(request: Path, answer: Path) -> None:
    """Time every contender of every case that a request names and write a line a case."""
    from benchmarks.suites import ALL_SUITES

    asked = json.loads(request.read_text())
    suite, search, clock = ALL_SUITES[asked["suite"]], bool(asked["search"]), Clock(**asked["clock"])
    _prepare(asked["device"], search=search)
    cupy = importlib.import_module("cupy")
    by_name = {case.name: case for case in suite.cases}
    with answer.open("w") as file:
        for name in asked["cases"]:
            case = by_name[name]
            contenders = list(suite.of_torch(case, search))
            outcomes = suite.outcomes(case, contenders, cupy, clock) if contenders else []
            free_device_memory()
            file.write(json.dumps({"case": name, "outcomes": [asdict(outcome) for outcome in outcomes]}) + "\n")
            file.flush()


def _prepare(device: int, *, search: bool) -> None:
    """Settings that count only if they are made before the first call."""
    torch = importlib.import_module("torch")
    torch.backends.cudnn.benchmark = search
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.set_grad_enabled(False)
    torch.cuda.set_device(device)
    importlib.import_module("cupy").cuda.Device(device).use()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
