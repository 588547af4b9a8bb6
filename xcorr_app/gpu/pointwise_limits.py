"""Limits of devices for the planner of pointwise convolutions: of the one at hand, and of some by name."""

from __future__ import annotations

import functools
import importlib

from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.pointwise_planner import MultiprocessorLimits

__all__ = ["KNOWN_DEVICES", "limits_by_name", "multiprocessor_limits"]

KNOWN_DEVICES = {
    "h200": MultiprocessorLimits(132, 65536, 255, 233472, 232448, 1024),
    "h100": MultiprocessorLimits(132, 65536, 255, 233472, 232448, 1024),
    "a100": MultiprocessorLimits(108, 65536, 255, 167936, 166912, 1024),
    "rtx4090": MultiprocessorLimits(128, 65536, 255, 102400, 101376, 1024),
    "t4": MultiprocessorLimits(40, 65536, 255, 65536, 65536, 0, tensor_cores=False),
}
"""What their drivers answer, for plans on a machine without them."""

_REGISTERS_PER_THREAD = 255  # of every architecture that the kernels run on; no attribute tells it


def limits_by_name(name: str) -> MultiprocessorLimits:
    """Return the limits of a device of `KNOWN_DEVICES`.

    Parameters
    ----------
    name : str
        In small or capital letters.

    Returns
    -------
    MultiprocessorLimits
        As its driver answers.

    Raises
    ------
    ArgumentError
        For another name.
    """
    if name.lower() not in KNOWN_DEVICES:
        raise ArgumentError(f"the limits of {name!r} are not known: choose from {', '.join(KNOWN_DEVICES)}")
    return KNOWN_DEVICES[name.lower()]


@functools.cache
def multiprocessor_limits(device: int) -> MultiprocessorLimits:
    """Ask the driver for a device's limits.

    Parameters
    ----------
    device : int
        Its number.

    Returns
    -------
    MultiprocessorLimits
        Read once and kept.
    """
    found = importlib.import_module("cupy").cuda.Device(device)
    attributes = found.attributes
    return MultiprocessorLimits(
        multiprocessors=attributes["MultiProcessorCount"],
        registers=attributes["MaxRegistersPerMultiprocessor"],
        registers_per_thread=_REGISTERS_PER_THREAD,
        shared_bytes=attributes["MaxSharedMemoryPerMultiprocessor"],
        shared_bytes_per_block=attributes["MaxSharedMemoryPerBlockOptin"],
        # Missing before CUDA 11.2; 1 KiB from compute capability 8.0 on.
        shared_bytes_reserved=attributes.get("ReservedSharedMemoryPerBlock", 1024),
        tensor_cores=int(found.compute_capability) >= 80,
    )
