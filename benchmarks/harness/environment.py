"""What was measured, and on what: commit, processor, cores, versions, devices with their drivers, and the date."""

from __future__ import annotations

import datetime as dt
import importlib.metadata
import platform
import shutil
import subprocess
from pathlib import Path
from typing import Any

from xcorr_app.system import worker_count

# Distribution names that may provide one library; the first that is installed is reported.
_LIBRARIES = {
    "xcorr-app": ("xcorr-app",),
    "numpy": ("numpy",),
    "scipy": ("scipy",),
    "opencv": ("opencv-python-headless", "opencv-python", "opencv-contrib-python-headless"),
    "scikit-image": ("scikit-image",),
    "tifffile": ("tifffile",),
    "pystackreg": ("pystackreg",),
    "suite2p": ("suite2p",),
    "jnormcorre": ("jnormcorre",),
    "openpiv": ("openpiv",),
    "cupy": ("cupy-cuda13x", "cupy-cuda12x", "cupy"),
    "torch": ("torch",),
}


def environment() -> dict[str, Any]:
    """Describe this machine for a file of results; no host name, no paths.

    Returns
    -------
    dict
        ``date``, ``commit`` of the checkout (marked where files differ from it), ``cpu``, ``cores``, ``system``,
        ``python``, ``versions`` of the libraries measured and ``devices`` (name, driver and memory of each, empty
        without an NVIDIA driver).
    """
    return {
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "commit": _commit(),
        "cpu": _cpu_model(),
        "cores": worker_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": _versions(),
        "devices": _devices(),
    }


def _commit() -> str | None:
    git = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--abbrev=12", "--dirty"]
    try:
        answer = subprocess.run(git, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    return answer.stdout.strip() or None


def _cpu_model() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _versions() -> dict[str, str]:
    installed = {each.metadata["Name"].lower(): each.version for each in importlib.metadata.distributions()}
    found = {library: [installed[name] for name in names if name in installed] for library, names in _LIBRARIES.items()}
    return {library: versions[0] for library, versions in found.items() if versions}


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
