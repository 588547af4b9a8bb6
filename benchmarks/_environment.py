"""What a measurement ran on, and where its numbers are kept.

Scripts of this folder import ``environment`` and ``write_result``, so that every file of ``results/`` tells
the same story: processor, cores, versions, device and driver if there is one, and the date. No host name, no
paths.
"""

from __future__ import annotations

import datetime as dt
import importlib.metadata
import json
import os
import platform
import shutil
import subprocess
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parent / "results"

# Distribution names that may provide one library; the first that is installed is reported.
_LIBRARIES = {
    "numpy": ("numpy",),
    "scipy": ("scipy",),
    "opencv": ("opencv-python-headless", "opencv-python", "opencv-contrib-python-headless"),
    "scikit-image": ("scikit-image",),
    "tifffile": ("tifffile",),
    "pystackreg": ("pystackreg",),
    "cupy": ("cupy-cuda13x", "cupy-cuda12x", "cupy"),
    "torch": ("torch",),
}


def _cpu_model() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _versions() -> dict[str, str]:
    found = {}
    for library, distributions in _LIBRARIES.items():
        for distribution in distributions:
            try:
                found[library] = importlib.metadata.version(distribution)
            except importlib.metadata.PackageNotFoundError:
                continue
            break
    return found


def _devices() -> list[dict[str, str]]:
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    answer = subprocess.run(
        [program, "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"],
        capture_output=True,
        text=True,
        check=False,
    )
    if answer.returncode != 0:
        return []
    fields = ("name", "driver", "memory")
    return [
        dict(zip(fields, (part.strip() for part in line.split(",")), strict=True))
        for line in answer.stdout.splitlines()
        if line.strip()
    ]


def environment() -> dict[str, Any]:
    """Processor, cores, operating system, versions of the libraries measured, devices and the date."""
    return {
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "cpu": _cpu_model(),
        "cores": _usable_cores(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": _versions(),
        "devices": _devices(),
    }


def write_result(name: str, payload: dict[str, Any]) -> Path:
    """Write ``payload`` with the environment to ``benchmarks/results/NAME.json`` and return that path."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps({"environment": environment(), **payload}, indent=2) + "\n")
    return path
