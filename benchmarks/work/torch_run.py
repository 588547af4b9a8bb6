"""PyTorch in a process of its own: what cuDNN answers first depends on settings made before its first call."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import xcorr_app
from benchmarks.harness.clock import Clock
from benchmarks.harness.effort import Effort
from benchmarks.harness.fastest import Outcome
from benchmarks.work.case import Work

__all__ = ["FAILED_PROCESS", "effort_of", "read_outcomes", "torch_outcomes"]

FAILED_PROCESS = "PyTorch"
"""Name of the contender whose failure stands for all that a process owed when it ended."""
_MAX_SECONDS = 240


def torch_outcomes(
    suite: str, cases: Sequence[Work], effort: Effort, device: int, *, search: bool
) -> dict[str, list[Outcome]]:
    """Time the contenders of a suite that run in PyTorch."""
    with tempfile.TemporaryDirectory() as folder:
        request, answer = Path(folder, "request.json"), Path(folder, "outcomes.jsonl")
        asked = {
            "suite": suite,
            "cases": [case.name for case in cases],
            "clock": asdict(effort.clock),
            "attempts": effort.attempts,
            "device": device,
            "search": search,
        }
        request.write_text(json.dumps(asked))
        reason = _run(request, answer)
        found = read_outcomes(answer)
    if reason:
        for case in cases:
            found.setdefault(case.name, [Outcome(FAILED_PROCESS, failure=reason)])
    return found


def read_outcomes(path: Path) -> dict[str, list[Outcome]]:
    """Read what a process has written, a line a case; a line that is not whole is left out."""
    return dict(_outcomes(path)) if path.exists() else {}


def _outcomes(path: Path) -> Iterator[tuple[str, list[Outcome]]]:
    for line in path.read_text().splitlines(keepends=True):
        if line.endswith("\n"):
            entry = json.loads(line)
            yield entry["case"], [Outcome(**outcome) for outcome in entry["outcomes"]]


def effort_of(asked: dict[str, Any]) -> Effort:
    """Return the effort that a request asks for."""
    return Effort(Clock(**asked["clock"]), attempts=asked["attempts"])


def _run(request: Path, answer: Path) -> str:
    """Run the process; returns why it failed, or nothing."""
    root = str(Path(xcorr_app.__file__).resolve().parent.parent)
    paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    try:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.work.torch_process", str(request), str(answer)],
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
