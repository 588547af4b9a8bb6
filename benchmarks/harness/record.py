"""Whether there is what a benchmark measures, and how its file of results is written."""

from __future__ import annotations

import importlib.util
import json
import math
from pathlib import Path
from typing import Any

from xcorr_app.errors import DeviceError
from xcorr_app.gpu.runtime.device import DeviceStatus, cuda_status
from xcorr_app.io.writing.atomic import atomic_write_text


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
