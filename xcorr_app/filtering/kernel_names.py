"""The kernels that a filter can be computed by, as a user names them; all of them run on a GPU."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from xcorr_app.errors import ArgumentError, DeviceError
from xcorr_app.gpu.runtime.device import cuda_status
from xcorr_app.gpu.stencil.exchange import ExchangeOptions

FilterKernel: TypeAlias = Literal["auto", "reuse", "exchange", "separable", "banded", "sliding"]
FILTER_KERNELS: tuple[FilterKernel, ...] = get_args(FilterKernel)


def kernel_name(kernel: FilterKernel | ExchangeOptions, engine: str = "auto") -> str:
    """Name of the kernel that was asked for; raises ArgumentError for others, and beside an engine."""
    name = "exchange" if isinstance(kernel, ExchangeOptions) else kernel
    if name not in FILTER_KERNELS:
        raise ArgumentError(f"kernel {kernel!r} is unknown: take one of {', '.join(FILTER_KERNELS)}")
    if name != "auto" and engine != "auto":
        raise ArgumentError(f"kernel {name!r} is one of a GPU's, engine {engine!r} leaves the choice: give one of them")
    return name


def require_gpu(kernel: str) -> None:
    """Raise DeviceError where no GPU can run a kernel that was asked for."""
    status = cuda_status()
    if not status.available:
        raise DeviceError(f"kernel {kernel!r} runs on a GPU ({status.reason}); 'auto' gives the same on the CPU")


def macros_of(kernel: FilterKernel | ExchangeOptions) -> dict[str, int]:
    """Macros that a kernel's options set."""
    return kernel.tuning() if isinstance(kernel, ExchangeOptions) else {}
