"""Where the numbers of a measurement are kept, with what it ran on.

Scripts of this folder import ``write_result``, so that every file of ``results/`` tells the same story: processor,
cores, versions, device and driver if there is one, and the date. No host name, no paths.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from benchmarks.harness.environment import environment

RESULTS = Path(__file__).resolve().parent / "results"


def as_installed() -> dict[str, str]:
    """Environment for a command that starts as an installed one does, whose modules are compiled once and for all."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def write_result(name: str, payload: dict[str, Any]) -> Path:
    """Write ``payload`` with the environment to ``benchmarks/results/NAME.json`` and return that path."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps({"environment": environment(), **payload}, indent=2) + "\n")
    return path
