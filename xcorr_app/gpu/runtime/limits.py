"""Limits and capabilities of a device, read from its driver once; and those of some devices by name."""

from __future__ import annotations

import functools
import importlib
from dataclasses import dataclass

_FAST_FLOAT64 = (60, 70, 80, 90, 100)
"""Compute capabilities that add in float64 at half the rate of float32."""


@dataclass(frozen=True)
class DeviceLimits:
    """Limits and capabilities of one device; the defaults fit any from compute capability 8.0 on.

    Attributes
    ----------
    multiprocessors : int
        Number of multiprocessors.
    shared_bytes : int
        The most shared memory that a block can ask for.
    registers : int
        32-bit registers of a multiprocessor.
    registers_per_thread : int
        The most that a thread can use.
    shared_bytes_per_multiprocessor : int
        Shared memory of a multiprocessor.
    shared_bytes_reserved : int
        Taken by the system from each block's share.
    compute_capability : int
        Ten times the major number plus the minor one.
    """

    multiprocessors: int = 132
    shared_bytes: int = 99 * 1024
    registers: int = 65536
    registers_per_thread: int = 255
    shared_bytes_per_multiprocessor: int = 100 * 1024
    shared_bytes_reserved: int = 1024
    compute_capability: int = 80

    @property
    def has_tensor_cores(self) -> bool:
        """Whether it multiplies fp16, TF32 and int8 matrices as the kernels ask (mma.sync of sm_80)."""
        return self.compute_capability >= 80

    @property
    def has_wgmma(self) -> bool:
        """Whether it has the asynchronous products of four warps, which compute capability 9.0 alone has."""
        return self.compute_capability == 90

    @property
    def has_fast_float64(self) -> bool:
        """Whether sums in float64 cost little more than those in float32."""
        return self.compute_capability in _FAST_FLOAT64

    @property
    def why_no_tensor_cores(self) -> str | None:
        """What it has and what tensor cores would need; None where it has them."""
        if self.has_tensor_cores:
            return None
        found = self.compute_capability / 10
        return f"the device has compute capability {found}; tensor cores for half precision with it need 8.0"


H200 = DeviceLimits(132, 232448, shared_bytes_per_multiprocessor=233472, compute_capability=90)
"""What its driver answers, for plans on a machine without one."""


@functools.cache
def device_limits(device: int) -> DeviceLimits:
    """Ask the driver for the limits of a device, by its number; read once and kept."""
    found = importlib.import_module("cupy").cuda.Device(device)
    attributes = found.attributes
    return DeviceLimits(
        multiprocessors=attributes["MultiProcessorCount"],
        shared_bytes=attributes["MaxSharedMemoryPerBlockOptin"],
        registers=attributes["MaxRegistersPerMultiprocessor"],
        shared_bytes_per_multiprocessor=attributes["MaxSharedMemoryPerMultiprocessor"],
        # Missing before CUDA 11.2; 1 KiB from compute capability 8.0 on.
        shared_bytes_reserved=attributes.get("ReservedSharedMemoryPerBlock", 1024),
        compute_capability=int(found.compute_capability),
    )
