"""What the document on column and row reuse evaluates: direct, either reuse and both, by the width of the filter.

Zeros lie outside the images, as the document pads them, so that cuDNN needs no padded copy. Peers are the algorithms of
cuDNN one by one, PyTorch's ``conv2d`` and CuPy's ``ndimage``.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from benchmarks.ablation.correlation import CLOCK
from benchmarks.ablation.cudnn import ALGORITHMS, Convolution2d
from benchmarks.filters.cases import FilterCase
from benchmarks.filters.cupy_peers import cupy_contenders
from benchmarks.filters.data import Expected, FilterData, random_stack
from benchmarks.filters.own import kernel_attempts
from benchmarks.filters.torch_peers import torch_contenders
from benchmarks.harness.contender import Attempt, Contender
from benchmarks.work.rotation import rotating
from benchmarks.work.suite import Suite
from xcorr_app.gpu.stencil.reuse import FILTER_KERNELS, TUNABLES

__all__ = ["REUSE", "published_kernel", "steps_of"]

WIDTHS = (3, 5, 7, 9)
_SIDE = 1024
_IMAGES = {"one image 1024^2": 1, "64 images 1024^2": 64}


def published_kernel(width: int) -> str:
    """Name the published exchange for filters of a width; empty where there is none."""
    return next((name for name in (f"exchange_{width}", "exchange") if name in FILTER_KERNELS), "")


def steps_of(width: int) -> dict[str, tuple[str, dict[str, int]]]:
    """Return kernel and macros of every step, the published ones where the exchange takes such a width."""
    kernel, found = published_kernel(width), {}
    if kernel and {"COLUMN_REUSE", "ROW_REUSE"} <= TUNABLES[kernel]:
        for name, column, row in (("direct", 0, 0), ("column reuse", 1, 0), ("row reuse", 0, 1), ("both", 1, 1)):
            found[name] = (kernel, {"COLUMN_REUSE": column, "ROW_REUSE": row})
    return found | {"ring buffer (in use)": ("reuse", {})}


def _cases() -> Iterator[FilterCase]:
    for group, images in _IMAGES.items():
        for width in WIDTHS:
            sizes = {"images": images, "height": _SIDE, "width": _SIDE, "rows": width, "columns": width}
            yield FilterCase(
                name=f"{group}: {width} x {width}",
                group=group,
                boundary="constant",
                in_quick=images > 1,
                **sizes,  # type: ignore[arg-type]
            )


def _own(case: FilterCase) -> Iterator[Contender]:
    for name, (kernel, macros) in steps_of(case.columns).items():
        yield Contender(name, kernel_attempts(kernel, macros), choice=name)
    yield from cupy_contenders(_ungrouped(case))


def _of_torch(case: FilterCase, search: bool) -> Iterator[Contender]:
    if search:
        yield from torch_contenders(_ungrouped(case), search)
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


REUSE = Suite("ablation-reuse", tuple(_cases()), random_stack, Expected, _own, _of_torch, clock=CLOCK)
