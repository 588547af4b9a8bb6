"""Every kernel that mixes channels: what it takes, its launch and expected cost; and the rule that measurements set."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.pointwise import mix, mix_bytes, mix_split, shallow, tiles
from xcorr_app.gpu.pointwise.mix import MIX_CHANNELS
from xcorr_app.gpu.pointwise.problem import MAX_ELEMENTS, PointwiseProblem
from xcorr_app.gpu.pointwise.shallow_plan import (
    ShallowProblem,
    is_shallow,
    plan_for,
    shallow_cycles,
    why_not_pixels,
)
from xcorr_app.gpu.pointwise.tile_choice import choose_tile, modelled_cycles, takes_planes
from xcorr_app.gpu.runtime.kernel_table import KernelEntry
from xcorr_app.gpu.runtime.launch import Launch, ceil_div
from xcorr_app.gpu.runtime.limits import KNOWN_DEVICES, DeviceLimits

__all__ = ["KERNELS", "POINTWISE_KERNELS", "MixingTask", "kernel_for", "parts_of", "pointwise_launch"]

_CHANNELS_OF_MIX, _FILTERS_OF_MIX, _PIXELS_OF_OTHERS = 16, 8, 2**12
"""Where others could, `mix` takes up to so many channels, or so few results, or fewer pixels: at 16384 pixels of 32
channels of 16 bits it takes 7.6 us, `mix_split` 2.8."""
_MAX_MIX_SIZE = 16
"""Channels beyond which bytes on tensor cores are faster for integers of `_PIXELS_OF_OTHERS` and more, where more than
8 channels go in and more than 2 come out."""
_CHANNELS_OF_BYTES = 12
"""So they are from here on, to as many results, where planes are read 16 bytes at a time; but for 16 of 16 bits."""
_FILTERS_OF_SPLIT = 16
"""Of float32, `mix_split` makes up to so many results at the copy rate; `shallow` does with more."""
_CHANNELS_AT_ONCE, _PIXELS_OF_SPLIT = 8, 2**15
"""Of more channels of float32 than a thread of `mix` waits for at once, and fewer pixels than fill the device without
blocks that share the filters, `shallow` is the faster one: 32 to 16 channels of 112 x 112 take 3.5 us for 6.5."""
_CHANNELS_OF_SHALLOW = 32
"""Where tensor cores could multiply floats, `shallow` takes up to so many channels."""
_MAX_PIXELS = 2**36
"""Of a launch of `mix`, each counted once for four of its results: blocks are at most 2^31, of 64 pixels or more."""
_CYCLES_OF_MICROSECOND = 1880.0
# Expected times in microseconds, bytes and multiply-adds of a microsecond. Fitted to 51 problems of `auto_fit.json` and
# 69 of `pointwise_bench.json` and `kernel_trials.json`, all of one H200: the root mean square of the logarithm is 0.10
# (`mix_bytes`) to 0.23 (`mix`). So the rule below decides, which goes by more than these models know.
_COPY = 3.985e6
_MIX = (2.0, 0.93, 13.8e6, 0.13)
"""Launch; time over the copy's; multiply-adds; and what a thread waits for each channel."""
_SPLIT, _BYTES = (3.0, 1.16, 60.0e6), (3.5, 0.9, {1: 55.0e6, 2: 35.0e6})
"""Launch, time over the copy's, and multiply-adds of whole tiles of 16 x 8 (`mix_split`) and, by the bytes of a pixel,
of 16 x 32."""
_READ_INTEGERS, _WRITTEN_INTEGERS = 8.0e6, 5.6e6
"""Elements that are made floats, or rounded, in a microsecond."""
_SHALLOW_LAUNCH, _SHALLOW, _SHALLOW_INTEGERS = 1.5, 1.08, 1.37
"""Microseconds that the model of `shallow` leaves out; its time over the model's, of floats and of others."""
_SHALLOW_STORES = {4: 0.0, 2: 0.6, 1: 1.3}
"""Copies of the results that stores of so many floats take more: their pieces end within lines."""


@dataclass(frozen=True)
class MixingTask:
    """What the table is asked.

    Attributes
    ----------
    problem : PointwiseProblem
        Of a part.
    alignment : int
        Power of two that divides the addresses of stack and result, in bytes.
    """

    problem: PointwiseProblem
    alignment: int = 16


def _why_not_mix(task: MixingTask, _: DeviceLimits) -> str | None:
    p = task.problem
    few = max(p.channels, p.filters) <= MIX_CHANNELS
    return None if few else f"mix computes up to {MIX_CHANNELS} channels, not {p.channels} to {p.filters}"


def _copied(p: PointwiseProblem) -> float:
    return p.pixels * (p.channels * p.image_bytes + p.filters * p.result_bytes) / _COPY


def _mix_cost(task: MixingTask, limits: DeviceLimits) -> float:
    p, (launch, copies, rate, of_channel) = task.problem, _MIX
    work = math.hypot(copies * _copied(p), p.pixels * p.channels * p.filters / rate + _converted(p)) * _share(limits)
    return launch + math.hypot(of_channel * p.channels, work)


def _split_cost(task: MixingTask, limits: DeviceLimits) -> float:
    launch, copies, rate = _SPLIT
    return launch + _of_products(task.problem, 8, copies, rate, _converted(task.problem)) * _share(limits)


def _bytes_cost(task: MixingTask, limits: DeviceLimits) -> float:
    launch, copies, rates = _BYTES
    return launch + _of_products(task.problem, 32, copies, rates[task.problem.image_bytes], 0.0) * _share(limits)


def _of_products(p: PointwiseProblem, depth: int, copies: float, rate: float, besides: float) -> float:
    products = p.pixels * ceil_div(p.channels, depth) * depth * ceil_div(p.filters, 16) * 16
    return math.hypot(copies * _copied(p), products / rate + besides)


def _converted(p: PointwiseProblem) -> float:
    read = 0.0 if p.image_type == "float32" else p.channels / _READ_INTEGERS
    return p.pixels * (read + (0.0 if p.result_type == "float32" else p.filters / _WRITTEN_INTEGERS))


def _share(limits: DeviceLimits) -> float:
    return KNOWN_DEVICES["h200"].multiprocessors / limits.multiprocessors


def _shallow_cost(task: MixingTask, limits: DeviceLimits) -> float:
    p, problem = task.problem, ShallowProblem.of_pixels(task.problem)
    work = shallow_cycles(problem, limits, task.alignment) / _CYCLES_OF_MICROSECOND
    if (p.image_type, p.result_type) != ("float32", "float32"):
        return _SHALLOW_LAUNCH + _SHALLOW_INTEGERS * work
    patch, _ = plan_for(problem, limits, alignment=task.alignment)
    stores = _SHALLOW_STORES[patch.vector_out] * 4 * p.pixels * p.filters / _COPY * _share(limits)
    return _SHALLOW_LAUNCH + _SHALLOW * work + stores


def _tiled_cost(task: MixingTask, limits: DeviceLimits) -> float:
    planes = takes_planes(task.problem, task.alignment)
    choice = choose_tile(task.problem, limits, planes=planes)
    plane = task.problem.inner if planes else 0
    return modelled_cycles(task.problem, limits, choice, plane) / _CYCLES_OF_MICROSECOND


def _why_not_shallow(task: MixingTask, limits: DeviceLimits) -> str | None:
    if refusal := why_not_pixels(task.problem):
        return refusal
    try:
        shallow_cycles(ShallowProblem.of_pixels(task.problem), limits, task.alignment)
    except ArgumentError as error:  # no thread holds the values of one result
        return str(error)
    return None


Tuning = Mapping[str, int] | None


def _mix_launch(task: MixingTask, _: DeviceLimits, tuning: Tuning = None) -> Launch:
    return mix.mix_launch(task.problem, alignment=task.alignment, tuning=tuning)


def _shallow_launch(task: MixingTask, limits: DeviceLimits, tuning: Tuning = None) -> Launch:
    problem = ShallowProblem.of_pixels(task.problem)
    return shallow.shallow_launch(problem, alignment=task.alignment, device=limits, tuning=tuning)


KERNELS: Mapping[str, KernelEntry[MixingTask]] = {
    entry.name: entry
    for entry in (
        KernelEntry(
            "mix",
            ("pointwise/mix",),
            _why_not_mix,
            _mix_launch,
            _mix_cost,
            mix.TUNABLES,
            "Pointwise convolution, the thread tile alone",
        ),
        KernelEntry(
            "mix_bytes",
            ("pointwise/mix_bytes",),
            lambda task, limits: mix_bytes.why_not_bytes(task.problem, task.alignment, limits),
            lambda task, limits, tuning=None: mix_bytes.bytes_launch(
                task.problem, limits, alignment=task.alignment, tuning=tuning
            ),
            _bytes_cost,
            mix_bytes.TUNABLES,
            "beyond pointwise convolution: exact products of bytes on tensor cores",
        ),
        KernelEntry(
            "mix_split",
            ("pointwise/mix_split",),
            lambda task, limits: mix.why_not_streamed("mix_split", task.problem, task.alignment, limits),
            lambda task, limits, tuning=None: mix_split.split_launch(
                task.problem, limits, alignment=task.alignment, tuning=tuning
            ),
            _split_cost,
            mix_split.TUNABLES,
            "beyond pointwise convolution: three products in TF32 for one in float32",
        ),
        KernelEntry(
            "shallow",
            ("pointwise/shallow",),
            _why_not_shallow,
            _shallow_launch,
            _shallow_cost,
            shallow.TUNABLES,
            "the one-level limit of the tiles of pointwise convolution and Im2win",
        ),
        KernelEntry(
            "blocking",
            ("pointwise/pointwise",),
            lambda *_: None,
            lambda task, limits, tuning=None: tiles.dynamic_launch(task.problem, limits, tuning=tuning),
            None,
            tiles.BLOCKING_TUNABLES,
            "Pointwise convolution with dynamic blocking: its planner, three levels of tiles, layouts L1 and L2",
        ),
        KernelEntry(
            "tiled",
            ("pointwise/pointwise_tiled", "pointwise/add_segments"),
            lambda task, _: tiles.why_not_tiled(task.problem),
            lambda task, limits, tuning=None: tiles.tiled_launch(
                task.problem, limits, alignment=task.alignment, tuning=tuning
            ),
            _tiled_cost,
            tiles.TILED_TUNABLES,
            "Pointwise convolution, with tiles chosen by a model of the time, on tensor cores too",
        ),
    )
}
"""By the name under which a user asks for it."""

POINTWISE_KERNELS = tuple(KERNELS)


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
    'tiled'
    """
    if max(problem.channels, problem.filters) <= MIX_CHANNELS:
        by_bytes = mix_bytes.why_not_bytes(problem, alignment, limits) is None
        if by_bytes and _is_faster_by_bytes(problem, alignment):
            return "mix_bytes"
        few = problem.channels <= _CHANNELS_OF_MIX or problem.filters <= _FILTERS_OF_MIX
        floats = problem.image_type == problem.result_type == "float32"
        waits = problem.channels > _CHANNELS_AT_ONCE and problem.pixels < _PIXELS_OF_SPLIT
        if floats and waits and _is_shallow(problem):
            return "shallow"
        widens = problem.image_type == "uint8" and problem.result_type == "float32"
        waits_of_bytes = widens and problem.channels > _CHANNELS_OF_MIX and problem.pixels >= _PIXELS_OF_OTHERS
        if waits_of_bytes and few and _is_shallow(problem):
            return "shallow"
        if problem.interleaved or few or problem.pixels < _PIXELS_OF_OTHERS:
            return "mix"
        shallow = _is_shallow(problem)
        prefers_shallow = floats and problem.filters > _FILTERS_OF_SPLIT
        by_split = mix.why_not_streamed("mix_split", problem, alignment, limits) is None
        if by_split and not (prefers_shallow and shallow):
            return "mix_split"
        return "shallow" if shallow else "mix"
    plain = tiles.why_not_tiled(problem) is None
    deeper = problem.channels > _CHANNELS_OF_SHALLOW and plain and limits.has_tensor_cores
    # Stores of less than 16 bytes, to so many planes, take up to twice as long as the tiles'.
    in_pieces = plain and not mix.allows_vector(problem, alignment, 4)
    if not deeper and not in_pieces and _is_shallow(problem):
        return "shallow"
    return "tiled" if plain else "blocking"


def _is_faster_by_bytes(problem: PointwiseProblem, alignment: int) -> bool:
    """Whether integers are mixed faster by `mix_bytes` than by `mix`, as measured."""
    if problem.pixels < _PIXELS_OF_OTHERS:
        return False
    if max(problem.channels, problem.filters) > _MAX_MIX_SIZE:
        return problem.channels > 8 and problem.filters > 2
    if min(problem.channels, problem.filters) < _CHANNELS_OF_BYTES:
        return False
    if not mix_bytes.has_widest_loads(problem, alignment):
        return False
    return problem.channels < _MAX_MIX_SIZE or max(problem.image_bytes, problem.result_bytes) == 1


def _is_shallow(problem: PointwiseProblem) -> bool:
    """Whether `shallow` computes a problem and is expected to be faster than the tiled product."""
    return why_not_pixels(problem) is None and is_shallow(ShallowProblem.of_pixels(problem))


def parts_of(
    problem: PointwiseProblem,
    kernel: str = "auto",
    *,
    alignment: int = 16,
    limits: DeviceLimits = KNOWN_DEVICES["h200"],
) -> Iterator[tuple[int, PointwiseProblem]]:
    """Cut a stack into launches whose grids and offsets keep their limits: where a part begins, and its problem."""
    if kernel == "auto":
        kernel = kernel_for(problem, alignment=alignment, limits=limits)
    if kernel in ("mix", "mix_bytes", "mix_split"):
        most = _MAX_PIXELS // (problem.inner * ceil_div(problem.filters, 4))
    else:
        most = MAX_ELEMENTS // (problem.inner * max(problem.channels, problem.filters))
    yield from problem.in_parts_of(max(1, most))


def pointwise_launch(
    problem: PointwiseProblem,
    kernel: str = "auto",
    *,
    alignment: int = 16,
    limits: DeviceLimits = KNOWN_DEVICES["h200"],
    tuning: Tuning = None,
) -> Launch:
    """Choose grid and defines of a kernel of the table; ``"auto"`` is the one that `kernel_for` names."""
    if kernel == "auto":
        kernel = kernel_for(problem, alignment=alignment, limits=limits)
    if kernel not in KERNELS:
        raise ArgumentError(f"unknown pointwise kernel {kernel!r}; choose from auto, {', '.join(KERNELS)}")
    launch: Launch = KERNELS[kernel].launch(MixingTask(problem, alignment), limits, tuning)
    return launch
