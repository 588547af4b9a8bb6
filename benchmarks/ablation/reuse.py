"""What the document on column and row reuse evaluates: direct, either reuse and both, by the width of the filter.

Then the published kernel's own options, one after the other: rows of a sub-block (its k), warps, the last sub-block,
and elements indexed by the lane, which it sets out from.

Zeros lie outside the images, as the document pads them, so that cuDNN needs no padded copy. Peers are the algorithms of
cuDNN one by one, PyTorch's ``conv2d`` and CuPy's ``ndimage``.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from benchmarks.ablation.correlation import CLOCK, QUICK
from benchmarks.ablation.cudnn import ALGORITHMS, Convolution2d
from benchmarks.filters.cases import FilterCase
from benchmarks.filters.data import Expected, FilterData, random_stack
from benchmarks.filters.peers import cupy_contenders, torch_contenders
from benchmarks.filters.suite import kernel_attempts
from benchmarks.harness.contender import Attempt, Contender, rotating
from benchmarks.harness.suite import Suite

WIDTHS = (3, 5, 7, 9)
_SIDE = 1024
_IMAGES = {"one image 1024^2": 1, "64 images 1024^2": 64}
_OPTIONS_OF = {f"options of the exchange, {name}": images for name, images in (("one image", 1), ("64 images", 64))}


_STEPS = {
    name: {"COLUMN_REUSE": column, "ROW_REUSE": row}
    for name, column, row in (("direct", 0, 0), ("column reuse", 1, 0), ("row reuse", 0, 1), ("both", 1, 1))
}
_OPTIONS: dict[str, dict[str, int]] = {
    "as published": {},
    **{f"{rows} rows a sub-block": {"BLOCK_ROWS": rows} for rows in (7, 14, 28, 112, 224)},
    **{f"{warps} warp{'s' * (warps > 1)} a block": {"WARPS": warps} for warps in (1, 2, 8)},
    "the last sub-block not shared": {"SHARED_LAST": 0},
    "edges not apart": {"EDGES_APART": 0},
    "taps from constant memory": {"SHARED_TAPS": 0},
    "elements indexed by the lane": {"RUN_TIME_INDEX": 1},
}
_OPTIONS_SIDE = 1000
"""Columns of which the last sub-block has few."""


def ways_of(case: FilterCase) -> dict[str, tuple[str, dict[str, int]]]:
    """Return kernel and macros of every way."""
    published = _OPTIONS if case.group in _OPTIONS_OF else _STEPS
    return {name: ("exchange", macros) for name, macros in published.items()} | {"ring buffer (in use)": ("reuse", {})}


def _cases() -> Iterator[FilterCase]:
    for group, images in (_IMAGES | _OPTIONS_OF).items():
        side = _OPTIONS_SIDE if group in _OPTIONS_OF else _SIDE
        for width in WIDTHS:
            sizes = {"images": images, "height": side, "width": side, "rows": width, "columns": width}
            yield FilterCase(
                name=f"{group}: {width} x {width}",
                group=group,
                boundary="constant",
                in_quick=group == "64 images 1024^2",
                **sizes,  # type: ignore[arg-type]
            )


def _own(case: FilterCase) -> Iterator[Contender]:
    for name, (kernel, macros) in ways_of(case).items():
        yield Contender(name, kernel_attempts(kernel, macros), choice=name)
    if case.group in _IMAGES:
        yield from cupy_contenders(_ungrouped(case))


def _of_torch(case: FilterCase) -> Iterator[Contender]:
    if case.group in _IMAGES:
        yield from torch_contenders(_ungrouped(case))
        for name, number in ALGORITHMS.items():
            yield Contender(f"cuDNN, {name}", _by_cudnn(number))


def _ungrouped(case: FilterCase) -> FilterCase:
    """The peers of every width of `python -m benchmarks filter` are left out by its group."""
    return replace(case, group="")


def _by_cudnn(algorithm: int) -> Callable[[FilterCase, FilterData], Iterator[Attempt]]:
    def attempts(case: FilterCase, data: FilterData) -> Iterator[Attempt]:
        torch = importlib.import_module("torch")
        taps = torch.as_tensor(data.taps, device="cuda")[None, None].contiguous()
        stacks = [torch.as_tensor(stack, device="cuda")[:, None] for stack in data.stacks]
        around = (case.rows // 2, case.columns // 2)
        convolution = Convolution2d(algorithm, tuple(stacks[0].shape), tuple(taps.shape), padding=around)
        works: list[Callable[[], Any]] = [lambda stack=stack: convolution(stack, taps) for stack in stacks]
        yield rotating(works, Expected.read_corner, "torch", convolution.note)

    return attempts


SUITE = Suite(
    "ablation-reuse", __doc__, tuple(_cases()), random_stack, Expected, _own, _of_torch, clock=CLOCK, quick=QUICK
)
