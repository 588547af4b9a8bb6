"""The kernels that filters and mixing can be computed by, as a user names them; all of them run on a GPU."""

from __future__ import annotations

import importlib
from typing import Literal, TypeAlias, get_args

from xcorr_app.errors import ArgumentError, DeviceError
from xcorr_app.gpu.pointwise.blocking_options import BlockingOptions
from xcorr_app.gpu.runtime.arrays import Array
from xcorr_app.gpu.runtime.device import cuda_status
from xcorr_app.gpu.stencil.exchange import ExchangeOptions

FilterKernel: TypeAlias = Literal["auto", "reuse", "exchange", "separable", "sliding"]
FILTER_KERNELS: tuple[FilterKernel, ...] = get_args(FilterKernel)
MixingKernel: TypeAlias = Literal["auto", "mix", "blocking"]
MIXING_KERNELS: tuple[MixingKernel, ...] = get_args(MixingKernel)


def kernel_name(kernel: str | ExchangeOptions) -> str:
    """Name of the kernel that was asked for; raises ArgumentError for others."""
    name = "exchange" if isinstance(kernel, ExchangeOptions) else kernel
    if name not in FILTER_KERNELS:
        raise ArgumentError(f"kernel {kernel!r} is unknown: take one of {', '.join(FILTER_KERNELS)}")
    return name


def mixing_name(kernel: MixingKernel | BlockingOptions) -> str:
    """Name of the kernel of channel mixing that was asked for; raises ArgumentError for others."""
    name = "blocking" if isinstance(kernel, BlockingOptions) else kernel
    if name not in MIXING_KERNELS:
        raise ArgumentError(f"kernel {kernel!r} is unknown: take one of {', '.join(MIXING_KERNELS)}")
    return name


def require_gpu(kernel: str) -> None:
    """Raise DeviceError where no GPU can run a kernel that was asked for."""
    status = cuda_status()
    if not status.available:
        raise DeviceError(f"kernel {kernel!r} runs on a GPU ({status.reason}); 'auto' gives the same on the CPU")


def on_gpu(kernel: str, array: Array) -> Array:
    """Bring a NumPy array to the GPU that a kernel was asked for on; raises as `require_gpu` does."""
    require_gpu(kernel)
    return importlib.import_module("cupy").asarray(array.astype(array.dtype.newbyteorder("="), copy=False))


def macros_of(kernel: str | ExchangeOptions | BlockingOptions) -> dict[str, int]:
    """Macros that a kernel's options set."""
    return {} if isinstance(kernel, str) else kernel.tuning()
