"""The table of the tensor-core kernels: what each takes, how it is launched, what it costs."""

from __future__ import annotations

import functools
import math

from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.runtime.kernel_table import KernelEntry
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.gpu.tensor import costs
from xcorr_app.gpu.tensor.hankel import hankel_launch, moving_is_left
from xcorr_app.gpu.tensor.hankel_bytes import hankel_bytes_launch
from xcorr_app.gpu.tensor.hankel_frames import frames_launch
from xcorr_app.gpu.tensor.hankel_pieces import pieces_launch
from xcorr_app.gpu.tensor.small_hankel import small_hankel_launch
from xcorr_app.gpu.tensor.small_planes import small_planes_launch

__all__ = ["FP16_SUMS", "KERNELS"]

_MAX_SCRATCH = 256 << 20
"""Bytes of the references' Hankel-expanded copy, and of the sums of all pieces."""
_NO_WGMMA = "the device has no asynchronous products of four warps (wgmma), which compute capability 9.0 has"
_HANKEL = "Not in a document: a window of shifts as the product of a Hankel matrix"


def _accepts(_: Problem, limits: DeviceLimits) -> str | None:
    return limits.why_no_tensor_cores


def _accepts_warpgroup(problem: Problem, limits: DeviceLimits) -> str | None:
    if not limits.has_wgmma:
        return _NO_WGMMA
    return None if costs.shares_one(problem) >= 4 else "hankel-warpgroup multiplies four matrices that share one"


def _accepts_pieces(problem: Problem, limits: DeviceLimits) -> str | None:
    if limits.has_tensor_cores and (moving_is_left(problem) or pieces_launch(problem, device=limits) is None):
        return "hankel-pieces is for few pairs of wide matrices of which the right moves"
    return limits.why_no_tensor_cores


def _accepts_frames(problem: Problem, limits: DeviceLimits) -> str | None:
    if not limits.has_wgmma:
        return _NO_WGMMA
    chosen = frames_launch(problem, device=limits)
    fits = 4 * max(chosen.hankel_words, chosen.workspace) <= _MAX_SCRATCH
    return None if fits else "hankel-frames would take more than 256 MiB for references or sums"


def _accepts_small_peaks(problem: Problem, limits: DeviceLimits) -> str | None:
    if limits.has_tensor_cores and costs.small_peaks_cost(problem, limits) == math.inf:
        return "small-peaks is for matrices of up to 64 x 64 whose window one block holds"
    return limits.why_no_tensor_cores


def _accepts_small_planes(problem: Problem, limits: DeviceLimits) -> str | None:
    if limits.has_tensor_cores and costs.small_planes_cost(problem, limits) == math.inf:
        return "small-planes is for matrices of up to 64 x 64 whose window one block holds"
    return limits.why_no_tensor_cores


KERNELS: dict[str, KernelEntry[Problem]] = {
    entry.name: entry
    for entry in (
        KernelEntry(
            "hankel",
            ("tensor/hankel", "tensor/uncentre"),
            _accepts,
            hankel_launch,
            costs.hankel_cost,
            document=f"{_HANKEL}, by products of one warp (mma.sync)",
        ),
        KernelEntry(
            "hankel-warpgroup",
            ("tensor/hankel_warpgroup", "tensor/to_fp16"),
            _accepts_warpgroup,
            functools.partial(hankel_launch, warpgroup=True),
            costs.warpgroup_cost,
            document=f"{_HANKEL}, by products of four warps (wgmma)",
        ),
        KernelEntry(
            "hankel-pieces",
            ("tensor/hankel_pieces",),
            _accepts_pieces,
            pieces_launch,
            costs.pieces_cost,
            document=f"{_HANKEL}, few pairs cut into pieces",
        ),
        KernelEntry(
            "hankel-frames",
            ("tensor/hankel_frames", "tensor/to_fp16_hankel", "tensor/sum_frames"),
            _accepts_frames,
            frames_launch,
            costs.frames_cost,
            document=f"{_HANKEL}, the reference as that matrix and 64 frames as the rows of the other",
        ),
        KernelEntry(
            "hankel-bytes",
            ("tensor/hankel_bytes",),
            _accepts,
            hankel_bytes_launch,
            document=f"{_HANKEL}, of bytes, in whole numbers",
        ),
        KernelEntry(
            "small-peaks",
            ("tensor/small_hankel",),
            _accepts_small_peaks,
            small_hankel_launch,
            costs.small_peaks_cost,
            document=f"{_HANKEL}, a block for every pair of small matrices, from elements to the peak",
        ),
        KernelEntry(
            "small-planes",
            ("tensor/small_planes",),
            _accepts_small_planes,
            small_planes_launch,
            costs.small_planes_cost,
            document=f"{_HANKEL}, a block for every pair of small matrices, from elements to the plane",
        ),
    )
}
"""Every kernel by name."""

FP16_SUMS = ("hankel-frames", "hankel-warpgroup", "hankel-pieces", "hankel")
"""Those that make planes of centred sums in fp16; their cost is that of the sums. ``hankel`` splits values too."""
