"""What a run ran on: versions, processor, device."""

from __future__ import annotations

import functools
import importlib.metadata
import os
import platform
from contextlib import suppress
from pathlib import Path

from xcorr_app.system import worker_count

_PACKAGES = ("numpy", "scipy", "tifffile", "imagecodecs", "opencv-python-headless")
_DEVICE_PACKAGES = ("cupy-cuda13x", "cupy-cuda12x", "cupy")


@functools.cache
def versions() -> dict[str, str]:
    """Versions of Python, of this package and of the packages that results may depend on."""
    found = {"xcorr-app": own_version(), "python": platform.python_version()}
    for name in (*_PACKAGES, *_DEVICE_PACKAGES):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def own_version() -> str:
    """Version of this package."""
    import xcorr_app

    return xcorr_app.__version__


@functools.cache
def processor() -> str:
    """Name of the processor and the number of cores this process may use."""
    # Python's own answer starts another program.
    name = _model_name() or platform.processor() or platform.machine()
    return f"{name}, {worker_count()} of {os.cpu_count()} cores"


def _model_name() -> str | None:
    """What Linux calls the processor."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return None
