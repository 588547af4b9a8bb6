"""Whether there is what a benchmark measures, and how its file of results is written."""

from __future__ import annotations

import importlib.util
import json
import math
import os
from pathlib import Path
from typing import Any

from benchmarks.harness.environment import environment
from xcorr_app.errors import DeviceError
from xcorr_app.gpu.runtime.device import DeviceStatus, cuda_status
from xcorr_app.io.writing.atomic import atomic_write_text

RESULTS = Path(__file__).resolve().parents[1] / "results"


def require_device() -> DeviceStatus:
    """Return the status of the current CUDA device.

    Returns
    -------
    DeviceStatus
        Of a device that can be used.

    Raises
    ------
    DeviceError
        Where there is none; the message says why.
    """
    status = cuda_status()
    if not status.available:
        raise DeviceError(f"the benchmark measures a GPU and there is none: {status.reason}")
    return status


def has_torch() -> bool:
    """Whether PyTorch is installed."""
    return importlib.util.find_spec("torch") is not None


def as_installed() -> dict[str, str]:
    """Environment for a command that starts as an installed one does, whose modules are compiled once and for all."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def write_result(name: str, payload: dict[str, Any]) -> Path:
    """Write what was measured, and on what, to ``benchmarks/results/NAME.json``, and return that path."""
    path = RESULTS / f"{name}.json"
    write_json({"environment": environment(), **payload}, path)
    return path


def write_json(record: dict[str, Any], path: Path) -> None:
    """Write a record so that the file appears whole or not at all; what is not a number becomes null.

    Parameters
    ----------
    record : dict
        What was measured, and on what.
    path : pathlib.Path
        File to write or to replace.

    Raises
    ------
    OutputError
        Where it cannot be written.
    """
    atomic_write_text(path, json.dumps(_numbers_only(record), indent=1, allow_nan=False) + "\n")


def _numbers_only(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _numbers_only(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_numbers_only(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
