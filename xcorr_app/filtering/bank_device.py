"""Banks of filters over images in device memory: a plan a bank and shape, kept; and what happens where memory runs out.

To check a bank, to choose kernels and to bring filters to the device takes longer than the kernels of most images: all
that does not depend on the pixels is done once. A bank is known again by a checksum of its bytes, so that one that was
changed in place is another.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import xxhash

from xcorr_app.decision import Decision
from xcorr_app.filtering.array_choice import decide_bank, is_wide
from xcorr_app.filtering.bank_request import BankMethod, BankRequest, checked_bank
from xcorr_app.filtering.boundary import Mode
from xcorr_app.filtering.device import filter_device_frames
from xcorr_app.gpu.im2win.bank_run import KernelBank, bank_on_device
from xcorr_app.gpu.im2win.options import Im2winOptions, kernel_and_macros
from xcorr_app.gpu.runtime.arrays import Array, array_namespace
from xcorr_app.gpu.runtime.limits import device_limits
from xcorr_app.gpu.runtime.memory import in_parts, with_second_try
from xcorr_app.gpu.runtime.placement import current_device, on_device_of

OnHost = Callable[[npt.NDArray[Any], BankRequest], npt.NDArray[Any]]
"""The same bank over NumPy images (N, C_i, H, W)."""


@dataclass(frozen=True, eq=False)
class BankPlan:
    """How one bank runs over images of one shape and type on one device.

    Attributes
    ----------
    request : BankRequest
        What was asked for, checked.
    decision : Decision
        What computes, and why.
    taps : KernelBank
        The bank as the kernels read it.
    """

    request: BankRequest
    decision: Decision
    taps: KernelBank


def bank_of_device_images(
    images: Array,
    bank: npt.ArrayLike,
    mode: Mode,
    cval: float,
    stride: int,
    method: BankMethod | Im2winOptions,
    on_host: OnHost,
) -> Array:
    """Correlate images with every filter of a bank, on the device that holds them."""
    with on_device_of(images):
        plan = _plan(images, bank, mode, cval, stride, method)
        request = plan.request
        stack = images if images.shape == request.stack_shape else images.reshape(request.stack_shape)
        xp, what = array_namespace(images), f"a result of shape {request.shape}"
        result = with_second_try(xp.empty, request.shape, request.target, what=what)

        def some(start: int, stop: int) -> None:
            whole = stop - start == len(stack)
            part, out = (stack, result) if whole else (stack[start:stop], result[start:stop])
            if plan.decision.engine == "im2win":
                at_once(plan.decision.kernel if isinstance(method, str) else method, part, plan.taps, request, out)
            else:
                one_by_one(part, request, out)

        def alone(i: int) -> None:
            result[i : i + 1].set(on_host(stack[i : i + 1].get(), request))

        for _ in in_parts(some, len(stack), alone=alone):
            pass
        return result if request.shape == request.result_shape else result.reshape(request.result_shape)


def at_once(kernel: str | Im2winOptions, images: Array, taps: KernelBank, request: BankRequest, out: Array) -> None:
    """All filters together, by a kernel of the table of Im2win."""
    source = images.astype(np.int16) if images.dtype == np.int8 else images
    how: Any = {"boundary": request.mode, "outside": request.cval, "stride": request.stride}
    bank_on_device(source, taps, out, kernel=kernel, **how)


def one_by_one(images: Array, request: BankRequest, out: Array) -> None:
    """Filter by filter; what is not finite becomes NaN, which it is in the other kernel too."""
    xp, step = array_namespace(images), slice(None, None, request.stride)
    if images.dtype == np.int8:
        images = images.astype(np.int16)
    elif images.dtype.kind == "f":
        images = xp.where(xp.isfinite(images), images, images.dtype.type(np.nan))
    elif is_wide(images.dtype):
        images = images.astype(np.float64)
    target: Any = {"dtype": "same" if is_wide(images.dtype) else "float32"}
    options: Any = {"cval": request.cval, "origin": 0, "flip": False, "count": False, **target}
    for j, of_filter in enumerate(request.filters):
        for r, taps in enumerate(of_filter):
            sums = filter_device_frames(images[:, r], taps, request.mode, **options)[0][:, step, step]
            out[:, j] = sums if r == 0 else out[:, j] + sums


def _plan(
    images: Array, bank: npt.ArrayLike, mode: Mode, cval: float, stride: int, method: BankMethod | Im2winOptions
) -> BankPlan:
    kept: list[BankPlan] = []
    if isinstance(bank, np.ndarray) and bank.dtype.kind in "biuf":
        content = xxhash.xxh3_128_digest((bank if bank.flags.c_contiguous else np.ascontiguousarray(bank)).data)
        of_bank = (bank.shape, bank.dtype.str, content)
        kept = _kept(current_device(), images.shape, images.dtype, of_bank, mode, cval, stride, method)
    if not kept:
        request = checked_bank(images.shape, images.dtype, bank, mode, cval, stride, method)
        device = device_limits(current_device())
        sizes = request.stack_shape, images.dtype, request.filters.shape
        decision = decide_bank(*sizes, device, mode, request.stride, kernel_and_macros(method)[0])
        kept.append(BankPlan(request, decision, KernelBank.of(request.filters)))
    return kept[0]


@functools.lru_cache(maxsize=64)
def _kept(*_: object) -> list[BankPlan]:
    """Place of the plan for what was asked; empty until it was made."""
    return []
