"""The one choice of filter banks and of channel mixing: what computes them, and why. Pure: limits come in.

The rules are those that measurements on an H200 set.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from xcorr_app.decision import Candidate, Decision
from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.im2win.bank import PADDED_BYTES, BankProblem
from xcorr_app.gpu.im2win.problem import WHY_NOT as WHY_NO_BANK
from xcorr_app.gpu.pointwise.kernels import WHY_NOT as WHY_NO_MIXING
from xcorr_app.gpu.pointwise.kernels import kernel_for
from xcorr_app.gpu.pointwise.mix import MIX_CHANNELS
from xcorr_app.gpu.pointwise.problem import MAX_CHANNELS, MAX_ELEMENTS, POINTWISE_TYPES, PointwiseProblem
from xcorr_app.gpu.runtime.limits import DeviceLimits

LARGEST_DIRECT = 100
"""Taps of a filter (one channel) up to which the CPU takes the sums directly."""
_FEW_FILTERS = 5
"""That leave half of a tile of eight empty."""
_TAPS, _PIXELS_TIMES_TAPS = (81, 225), (4e8, 1e9)
"""Taps of a filter, and taps times pixels of all images, from which a pass for each of so few takes less: of one
channel, and of several."""


@functools.lru_cache(maxsize=512)
def decide_bank(
    shape: tuple[int, int, int, int],
    image_type: np.dtype,
    bank_shape: tuple[int, int, int, int],
    limits: DeviceLimits | None,
    mode: str = "reflect",
    stride: int = 1,
    method: str = "auto",
) -> Decision:
    """Say what correlates images (N, C_i, H, W) with a bank (C_o, C_i, F_h, F_w), and why.

    `method` is a kernel of the table of banks by name; raises ArgumentError where it cannot run there.
    """
    filters, channels, rows, columns = bank_shape
    if limits is None:
        if method != "auto":
            raise ArgumentError(f"method {method!r} runs on a GPU: use 'auto'")
        direct = rows * columns <= LARGEST_DIRECT
        reason = f"{rows} x {columns} taps: " + ("OpenCV's sums" if direct else "one spectrum serves all filters")
        return Decision("opencv" if direct else "fft", "", reason, (Candidate("opencv"), Candidate("fft")))
    apart = Candidate("filters")
    if is_wide(image_type):
        if method != "auto":
            raise ArgumentError(f"method {method!r} sums in float32, images of {image_type} in float64: use 'auto'")
        return Decision("filters", "", "sums are float64: one filter after the other", (apart,))
    problem = BankProblem(*shape, filters, rows, columns, mode, stride)
    layer = problem.convolution(next(problem.parts(PADDED_BYTES // 4)))
    found = [Candidate("im2win", name) for name, why_not in WHY_NO_BANK.items() if why_not(layer) is None]
    candidates = (*found, apart)
    if method != "auto":
        if refusal := WHY_NO_BANK[method](layer):
            raise ArgumentError(f"{refusal}: use 'auto'")
        return Decision("im2win", method, "it was asked for", candidates)
    taps, several = rows * columns, int(channels > 1)
    work = shape[0] * math.prod(shape[2:]) * taps
    is_long = stride == 1 and taps >= _TAPS[several] and work >= _PIXELS_TIMES_TAPS[several]
    if filters <= _FEW_FILTERS and is_long:
        return Decision("filters", "", f"{filters} filters leave most of a tile of filters empty", candidates)
    why = f"{filters} filters of {channels} channels share what is read of the images"
    return Decision("im2win", "implicit", why, candidates)


def is_wide(dtype: np.dtype) -> bool:
    """Whether images of a type are summed in float64 and their results float64."""
    return bool(dtype.newbyteorder("=") == np.float64) or (dtype.kind in "iu" and dtype.itemsize > 2)


@functools.lru_cache(maxsize=512)
def decide_mixing(
    source: np.dtype,
    target: np.dtype,
    shape: tuple[int, int],
    outer: int,
    inner: int,
    limits: DeviceLimits | None,
    *,
    density: bool = False,
    clip: bool = False,
    named: str = "auto",
) -> Decision:
    """Say what multiplies the channels of a stack ``[outer][channels][inner]`` by a matrix of a shape, and why.

    `named` is a kernel of the table of mixing; raises ArgumentError where it cannot run there.
    """
    filters, channels = shape
    size, library = f"{channels} to {filters} channels", Candidate("matmul")
    if named != "auto" and limits is None:
        raise ArgumentError(f"kernel {named!r} runs on a GPU: use 'auto'")
    if limits is None:
        return Decision("matmul", "", "on the CPU the library multiplies strips", (library,))
    if not has_kernel(source, target, shape, inner):
        no_kernel = f"no kernel mixes {channels} channels of {source} into {filters} of {target}"
        if named != "auto":
            raise ArgumentError(f"{no_kernel}: use 'auto'")
        return Decision("matmul", "", no_kernel, (library,))
    problem = PointwiseProblem(outer, channels, filters, inner, source.name, target.name, density, clip)
    able = [name for name, why_not in WHY_NO_MIXING.items() if why_not(problem) is None]
    candidates = (*(Candidate("pointwise", name) for name in able), library)
    if named != "auto":
        if refusal := WHY_NO_MIXING[named](problem):
            raise ArgumentError(f"{refusal}: use 'auto'")
        return Decision("pointwise", named, "it was asked for", candidates)
    kernel = kernel_for(problem)
    if kernel is None:
        return Decision("matmul", "", f"{size}: the library's matrix product", candidates)
    reasons = {
        "mix": "a thread keeps all results of its pixels, at the rate of the copy",
        "blocking": "so few sums that a call of the library's matrix product takes longer",
    }
    return Decision("pointwise", kernel, f"{size}: {reasons[kernel]}", candidates)


def has_kernel(source: np.dtype, target: np.dtype, shape: tuple[int, ...], pixels: int) -> bool:
    """Whether the kernels mix channels of one type into another on a device, planes of so many pixels; else CuPy does.

    Integer results of many channels are left to its matrix product, since it sums them in float64.
    """
    if source.name not in POINTWISE_TYPES or target.name not in POINTWISE_TYPES:
        return False
    few, most = MIX_CHANNELS, MAX_CHANNELS
    return max(shape) <= few or (
        bool(target == np.float32) and max(shape) <= most and max(shape) * pixels <= MAX_ELEMENTS
    )
