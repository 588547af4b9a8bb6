"""Every kernel that mixes channels: what it takes, and its launch; and the rule that measurements set."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.pointwise import blocking, mix
from xcorr_app.gpu.pointwise.mix import MIX_CHANNELS
from xcorr_app.gpu.pointwise.problem import MAX_ELEMENTS, PointwiseProblem
from xcorr_app.gpu.runtime.launch import Launch, ceil_div
from xcorr_app.gpu.runtime.limits import H200, DeviceLimits

_FMA_OF_BLOCKING, _PIXELS_OF_BLOCKING = 1e8, 1024
"""Up to so many multiply-adds, of so many pixels or more, `blocking` takes .15 to .76 of the time of CuPy's ``matmul``
in all 19 layers of `ablation_pointwise.json` with more than 64 channels (three networks, batch 1 to 128, one H200)."""
_MAX_PIXELS = 2**36
"""Of a launch of `mix`, each counted once for four of its results: blocks are at most 2^31, of 64 pixels or more."""


def _why_not_mix(p: PointwiseProblem) -> str | None:
    few = max(p.channels, p.filters) <= MIX_CHANNELS
    return None if few else f"mix computes up to {MIX_CHANNELS} channels, not {p.channels} to {p.filters}"


WHY_NOT: Mapping[str, Callable[[PointwiseProblem], str | None]] = {"mix": _why_not_mix, "blocking": lambda _: None}
"""By the name under which a user asks for it: why it does not take a problem; None where it does."""


def kernel_for(problem: PointwiseProblem) -> str | None:
    """Choose the kernel: the rule that measurements set; None where the library's matrix product takes less.

    Examples
    --------
    >>> kernel_for(PointwiseProblem(16, 8, 8, 2048 * 2048))
    'mix'
    >>> kernel_for(PointwiseProblem(8, 192, 64, 14 * 14))
    'blocking'
    >>> kernel_for(PointwiseProblem(32, 512, 512, 14 * 14)) is None
    True
    """
    channels, filters, pixels = problem.channels, problem.filters, problem.outer * problem.inner
    if max(channels, filters) <= MIX_CHANNELS:
        return "mix"
    is_small = channels * filters * pixels <= _FMA_OF_BLOCKING and pixels >= _PIXELS_OF_BLOCKING
    return "blocking" if is_small else None


def parts_of(problem: PointwiseProblem, kernel: str) -> Iterator[tuple[int, PointwiseProblem]]:
    """Cut a stack into launches whose grids and offsets keep their limits: where a part begins, and its problem."""
    if kernel == "mix":
        most = _MAX_PIXELS // (problem.inner * ceil_div(problem.filters, 4))
    else:
        most = MAX_ELEMENTS // (problem.inner * max(problem.channels, problem.filters))
    yield from problem.in_parts_of(max(1, most))


def pointwise_launch(
    problem: PointwiseProblem,
    kernel: str = "auto",
    *,
    alignment: int = 16,
    limits: DeviceLimits = H200,
    tuning: Mapping[str, int] | None = None,
) -> Launch:
    """Choose grid and defines of a kernel; of ``"auto"`` that of `kernel_for`, else `blocking`, which has tunables."""
    if kernel == "auto":
        kernel = kernel_for(problem) or "blocking"
    if kernel not in WHY_NOT:
        raise ArgumentError(f"unknown pointwise kernel {kernel!r}; choose from auto, {', '.join(WHY_NOT)}")
    if kernel == "mix":
        return mix.mix_launch(problem, alignment=alignment)
    return blocking.dynamic_launch(problem, limits, tuning=tuning)
