"""The table of the tensor-core kernels: what each takes, how it is launched, what it costs."""

from __future__ import annotations

import functools

from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.runtime.kernel_table import KernelEntry
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.gpu.tensor import costs
from xcorr_app.gpu.tensor.hankel import hankel_launch
from xcorr_app.gpu.tensor.hankel_frames import frames_launch

_MAX_SCRATCH = 256 << 20
"""Bytes of the references' Hankel-expanded copy, and of the sums of all pieces."""
_NO_WGMMA = "the device has no asynchronous products of four warps (wgmma), which compute capability 9.0 has"


def _accepts(_: Problem, limits: DeviceLimits) -> str | None:
    return limits.why_no_tensor_cores


def _accepts_warpgroup(problem: Problem, limits: DeviceLimits) -> str | None:
    if not limits.has_wgmma:
        return _NO_WGMMA
    return None if costs.shares_one(problem) >= 4 else "hankel-warpgroup multiplies four matrices that share one"


def _accepts_frames(problem: Problem, limits: DeviceLimits) -> str | None:
    if not limits.has_wgmma:
        return _NO_WGMMA
    chosen = frames_launch(problem, device=limits)
    fits = 4 * max(chosen.hankel_words, chosen.workspace) <= _MAX_SCRATCH
    return None if fits else "hankel-frames would take more than 256 MiB for references or sums"


KERNELS: dict[str, KernelEntry[Problem]] = {
    entry.name: entry
    for entry in (
        KernelEntry(
            "hankel",
            ("tensor/hankel", "tensor/uncentre"),
            _accepts,
            hankel_launch,
            costs.hankel_cost,
        ),
        KernelEntry(
            "hankel-warpgroup",
            ("tensor/hankel_warpgroup", "tensor/to_fp16"),
            _accepts_warpgroup,
            functools.partial(hankel_launch, warpgroup=True),
            costs.warpgroup_cost,
        ),
        KernelEntry(
            "hankel-frames",
            ("tensor/hankel_frames", "tensor/to_fp16_hankel", "tensor/sum_frames"),
            _accepts_frames,
            frames_launch,
            costs.frames_cost,
        ),
    )
}
"""Every kernel by name: all make planes of centred sums in fp16, and ``hankel`` splits values too."""
