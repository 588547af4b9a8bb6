"""What a file of results begins with, whatever was measured, and how it is written."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.harness.device_rates import DeviceRates
from benchmarks.harness.environment import environment
from xcorr_app.errors import DeviceError
from xcorr_app.gpu.runtime.device import DeviceStatus, cuda_status
from xcorr_app.io.writing.atomic import atomic_write_text

__all__ = ["require_device", "run_record", "write_json"]


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


def run_record(status: DeviceStatus, rates: DeviceRates, *, quick: bool, has_torch: bool) -> dict[str, Any]:
    """Gather what is true of a whole run.

    Parameters
    ----------
    status : DeviceStatus
        What it ran on.
    rates : DeviceRates
        The ceilings measured in it.
    quick : bool
        Whether it was a quick one.
    has_torch : bool
        Whether PyTorch took part.

    Returns
    -------
    dict
        Environment, device and rates.
    """
    return {
        "environment": environment(),
        "device": asdict(status),
        "rates": {
            "tfma_per_second": rates.fma / 1e12,
            "copy_terabytes_per_second": rates.copy / 1e12,
            "empty_kernel_microseconds": rates.empty * 1e6,
        },
        "quick": quick,
        "pytorch": has_torch,
    }


def write_json(record: dict[str, Any], path: Path) -> None:
    """Write a record so that the file appears whole or not at all; what is not a number becomes null.

    Parameters
    ----------
    record : dict
        `run_record` and what was measured.
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
