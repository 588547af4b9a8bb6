"""Which kernel mixes channels, and how it is started: a problem in; grid and defines out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.pointwise.mix import MIX_CHANNELS, mix_launch
from xcorr_app.gpu.pointwise.mix_bytes import bytes_launch, can_mix_bytes, has_widest_loads
from xcorr_app.gpu.pointwise.mix_split import can_split, split_launch
from xcorr_app.gpu.pointwise.problem import PointwiseProblem
from xcorr_app.gpu.pointwise.shallow import shallow_launch
from xcorr_app.gpu.pointwise.shallow_plan import ShallowProblem, is_shallow
from xcorr_app.gpu.pointwise.tiles import MOST_ELEMENTS, dynamic_launch, tiled_launch
from xcorr_app.gpu.runtime.launch import Launch, ceil_div
from xcorr_app.gpu.runtime.limits import KNOWN_DEVICES, DeviceLimits

__all__ = ["POINTWISE_KERNELS", "kernel_for", "parts_of", "pointwise_launch"]

POINTWISE_KERNELS = ("mix", "mix_bytes", "mix_split", "shallow", "pointwise", "pointwise_tiled")
"""Every kernel by name: streaming for few channels, the same on tensor cores for integers and for any type, few
channels to many, dynamic blocking, the plain tiled product."""

_CHANNELS_OF_MIX, _FILTERS_OF_MIX, _PIXELS_OF_OTHERS = 16, 8, 2**18
"""Where others could, `mix` takes up to so many channels, or so few results, or fewer pixels."""
_MOST_OF_MIX = 16
"""Channels beyond which bytes on tensor cores are quicker for integers of `_PIXELS_OF_BYTES` and more, where more than
8 channels go in and more than 2 come out."""
_PIXELS_OF_BYTES = 2**14
_CHANNELS_OF_BYTES = 12
"""So they are from here on, to as many results, where planes are read 16 bytes at a time; but for 16 of 16 bits."""
_FILTERS_OF_SPLIT = 16
"""Of float32, `mix_split` makes up to so many results at the copy rate; `shallow` does with more."""
_CHANNELS_OF_SHALLOW = 32
"""Where tensor cores could multiply floats, `shallow` takes up to so many channels."""
_MOST_PIXELS = 2**36
"""Of a launch of `mix`, each counted once for four of its results: blocks are at most 2^31, of 64 pixels or more."""


def kernel_for(problem: PointwiseProblem, *, alignment: int = 16, limits: DeviceLimits = KNOWN_DEVICES["h200"]) -> str:
    """Choose the kernel: the rule that measurements set.

    Examples
    --------
    >>> kernel_for(PointwiseProblem(16, 8, 8, 2048 * 2048))
    'mix'
    >>> kernel_for(PointwiseProblem(16, 32, 32, 2048 * 2048, "uint16", "uint16"))
    'mix_bytes'
    >>> kernel_for(PointwiseProblem(16, 32, 16, 2048 * 2048))
    'mix_split'
    >>> kernel_for(PointwiseProblem(16, 32, 32, 2048 * 2048))
    'shallow'
    >>> kernel_for(PointwiseProblem(32, 24, 144, 56 * 56))
    'shallow'
    >>> kernel_for(PointwiseProblem(32, 512, 512, 14 * 14))
    'pointwise_tiled'
    """
    if max(problem.channels, problem.filters) <= MIX_CHANNELS:
        if can_mix_bytes(problem, alignment, limits) and _is_quicker_by_bytes(problem, alignment):
            return "mix_bytes"
        few = problem.channels <= _CHANNELS_OF_MIX or problem.filters <= _FILTERS_OF_MIX
        if problem.interleaved or few or problem.pixels < _PIXELS_OF_OTHERS:
            return "mix"
        shallow = _is_shallow(problem)
        floats = problem.image_type == problem.result_type == "float32" and problem.filters > _FILTERS_OF_SPLIT
        if can_split(problem, alignment, limits) and not (floats and shallow):
            return "mix_split"
        return "shallow" if shallow else "mix"
    plain = problem.image_type == problem.result_type == "float32" and not (problem.density or problem.clip)
    deeper = problem.channels > _CHANNELS_OF_SHALLOW and plain and limits.has_tensor_cores
    if not deeper and _is_shallow(problem):
        return "shallow"
    return "pointwise_tiled" if plain else "pointwise"


def _is_quicker_by_bytes(problem: PointwiseProblem, alignment: int) -> bool:
    """Whether integers are mixed sooner by `mix_bytes` than by `mix`, as measured."""
    if problem.pixels < _PIXELS_OF_BYTES:
        return False
    if max(problem.channels, problem.filters) > _MOST_OF_MIX:
        return problem.channels > 8 and problem.filters > 2
    if min(problem.channels, problem.filters) < _CHANNELS_OF_BYTES or not has_widest_loads(problem, alignment):
        return False
    return problem.channels < _MOST_OF_MIX or max(problem.image_bytes, problem.result_bytes) == 1


def _is_shallow(problem: PointwiseProblem) -> bool:
    """Whether `shallow` computes a problem and is expected to be faster than the tiled product."""
    if problem.interleaved or problem.channels * problem.inner > MOST_ELEMENTS:
        return False
    return is_shallow(ShallowProblem.of_pixels(problem))


def parts_of(
    problem: PointwiseProblem,
    kernel: str = "auto",
    *,
    alignment: int = 16,
    limits: DeviceLimits = KNOWN_DEVICES["h200"],
) -> Iterator[tuple[int, PointwiseProblem]]:
    """Cut a stack into launches whose grids and offsets keep their limits."""
    if kernel == "auto":
        kernel = kernel_for(problem, alignment=alignment, limits=limits)
    if kernel in ("mix", "mix_bytes", "mix_split"):
        most = _MOST_PIXELS // (problem.inner * ceil_div(problem.filters, 4))
    else:
        most = MOST_ELEMENTS // (problem.inner * max(problem.channels, problem.filters))
    yield from problem.in_parts_of(max(1, most))


def pointwise_launch(
    problem: PointwiseProblem,
    kernel: str = "auto",
    *,
    alignment: int = 16,
    limits: DeviceLimits = KNOWN_DEVICES["h200"],
    tuning: Mapping[str, int] | None = None,
) -> Launch:
    """Choose grid and defines of a kernel."""
    if kernel == "auto":
        kernel = kernel_for(problem, alignment=alignment, limits=limits)
    if kernel == "mix":
        return mix_launch(problem, alignment=alignment, tuning=tuning)
    if kernel == "mix_bytes":
        return bytes_launch(problem, limits, alignment=alignment, tuning=tuning)
    if kernel == "mix_split":
        return split_launch(problem, limits, alignment=alignment, tuning=tuning)
    if kernel == "shallow":
        if problem.interleaved:
            raise ArgumentError(f"shallow mixes planes, not channels that lie side by side: {problem}")
        device = limits
        return shallow_launch(ShallowProblem.of_pixels(problem), alignment=alignment, device=device, tuning=tuning)
    if kernel == "pointwise":
        return dynamic_launch(problem, limits, tuning=tuning)
    if kernel == "pointwise_tiled":
        return tiled_launch(problem, limits, alignment=alignment, tuning=tuning)
    raise ArgumentError(f"unknown pointwise kernel {kernel!r}; choose from auto, {', '.join(POINTWISE_KERNELS)}")
