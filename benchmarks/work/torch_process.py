"""The process in which PyTorch's contenders run: ``python -m benchmarks.work.torch_process REQUEST OUTCOMES``.

Started by `torch_run`. It makes its own data and checks every answer against float64 itself.
"""

from __future__ import annotations

import importlib
import json
import sys
from dataclasses import asdict
from pathlib import Path

from benchmarks.harness.fastest import free_device_memory
from benchmarks.harness.suites import ALL_SUITES
from benchmarks.work.suite import outcomes_of
from benchmarks.work.torch_run import effort_of

__all__ = ["main"]


def main(request: Path, answer: Path) -> None:
    """Time every contender of every case that a request names and write a line a case."""
    asked = json.loads(request.read_text())
    suite, search = ALL_SUITES[asked["suite"]], bool(asked["search"])
    _prepare(asked["device"], search=search)
    cupy = importlib.import_module("cupy")
    effort = effort_of(asked)
    by_name = {case.name: case for case in suite.cases}
    with answer.open("w") as file:
        for name in asked["cases"]:
            case = by_name[name]
            contenders = list(suite.of_torch(case, search))
            outcomes = outcomes_of(suite, case, contenders, cupy, effort) if contenders else []
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
