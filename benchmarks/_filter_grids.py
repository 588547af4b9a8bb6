"""Which macros of the filter kernels are tried on which cases of ``python -m benchmarks``, and with which values."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.filters.own import kernel_attempts, separable_attempts, sliding_attempts
from benchmarks.harness.suites import SUITES
from benchmarks.im2win.own import layer_attempts
from benchmarks.pointwise.own import mixing_attempts

__all__ = ["GRIDS", "OPEN", "Grid", "tunings"]

Tuning = dict[str, int]


@dataclass(frozen=True)
class Grid:
    """What is tried of one kernel.

    Attributes
    ----------
    suite : str
        Whose cases they are.
    cases : tuple of str
        Names of the cases.
    attempts : callable
        Takes a tuning and returns what `Contender.attempts` is.
    values : mapping
        Values of every macro.
    listed : tuple of dict
        Tunings that are tried beside the table's own in place of all that the values make.
    """

    suite: str
    cases: tuple[str, ...]
    attempts: Callable[[Tuning], Any]
    values: Mapping[str, tuple[int, ...]]
    listed: tuple[Tuning, ...] = ()

    def tried(self) -> Iterator[Tuning]:
        """Yield the tunings to try, the table's own first."""
        return iter(({}, *self.listed)) if self.listed else tunings(self.values)

    def chosen(self, only: str) -> list[Any]:
        """Return the cases whose name contains a text."""
        return [case for case in SUITES[self.suite].cases if case.name in self.cases and only in case.name]


def tunings(values: Mapping[str, tuple[int, ...]]) -> Iterator[Tuning]:
    """Yield tunings: the table's own, then every one that changes a single macro, then two, and so on."""
    for count in range(len(values) + 1):
        for names in itertools.combinations(values, count):
            for chosen in itertools.product(*(values[name] for name in names)):
                yield dict(zip(names, chosen, strict=True))


def _stacks(*sides: int, element: str = "float32") -> tuple[str, ...]:
    return tuple(f"64 x 1024^2 {element} {side}x{side}" for side in sides)


def _images(*sides: int) -> tuple[str, ...]:
    return tuple(f"one image 4096^2 float32 {side}x{side}" for side in sides)


def _gaussians(*sigmas: int) -> tuple[str, ...]:
    names = (f"64 x 1024^2 {element} gaussian sigma {sigma}" for sigma in sigmas for element in ("float32", "uint16"))
    return tuple(names)


def _layers(*numbers: int) -> tuple[str, ...]:
    """Cases of Im2win by the number of the layer."""
    return tuple(SUITES["im2win"].cases[number - 1].name for number in numbers)


def _mixing(*channels: int) -> tuple[str, ...]:
    return tuple(f"unmix {n} -> {n}, 16 x 2048^2 {element}" for n in channels for element in ("float32", "uint16"))


_PRODUCT_TILE = {
    "WARPS_M": (1, 2, 3, 4),
    "WARPS_N": (1, 2, 4),
    "LANES_M": (2, 4, 8),
    "MICRO_N": (8, 16),
    "TILE_K": (8, 9, 12, 16),
    "MIN_BLOCKS": (1, 2, 3, 4),
    "FRAGMENTS": (1, 2),
}
_POINTWISE_LAYERS = (
    "batch 32: 32 -> 64, 112^2",
    "batch 32: 24 -> 144, 56^2",
    "batch 32: 144 -> 24, 56^2",
    "batch 32: 512 -> 512, 14^2",
    "batch 32: 960 -> 320, 7^2",
    "batch 1: 512 -> 512, 14^2",
)

GRIDS: dict[str, Grid] = {
    "reuse": Grid(
        "filter",
        (*_stacks(3, 5, 7, 9, 11), *_stacks(3, 5, 7, 9, element="uint16"), *_images(3, 7), "width 08"),
        lambda tuning: kernel_attempts("reuse", tuning),
        {
            "BLOCKS": (2, 3, 4, 6),
            "GROUPS": (1, 2, 4),
            "COLUMNS": (4, 8),
            "BLOCK_ROWS": (16, 32, 64, 128),
            "ROWS_AHEAD": (1, 2, 3),
        },
    ),
    "reuse_wide": Grid(
        "filter",
        (*_stacks(9, 15, 31), *_stacks(15, element="uint16"), *_images(31), "width 25", "width 63"),
        lambda tuning: kernel_attempts("reuse_wide", tuning),
        {"ROWS": (6, 8, 10), "CHUNK": (8, 16), "FLUSH_ROWS": (0, 8), "COLUMNS": (4, 8), "ROWS_AHEAD": (1, 2)},
    ),
    "separable": Grid(
        "filter",
        _gaussians(1, 2, 4, 8),
        lambda tuning: separable_attempts(tuning, "separable"),
        {"WARPS": (2, 4, 8), "BLOCKS": (2, 3, 4, 5), "LANE_COLUMNS": (1, 2, 4), "ROW_SUMS": (4, 8)},
    ),
    "sliding": Grid(
        "filter",
        _gaussians(8, 64, 250),
        sliding_attempts,
        {
            "WARPS": (2, 4, 8),
            "BLOCKS": (2, 4, 6),
            "CHUNK": (4, 8, 16),
            "START_CHUNK": (2, 4, 8),
            "START_FLUSH": (32, 64, 128),
        },
    ),
    "im2win": Grid(
        "im2win", _layers(*range(1, 13)), lambda tuning: layer_attempts({"tuning": tuning or None}), _PRODUCT_TILE
    ),
    "mix": Grid(
        "pointwise",
        _mixing(2, 4, 8, 16, 32),
        lambda tuning: mixing_attempts("mix", tuning),
        {
            "PIXELS": (1, 2, 4, 8),
            "FILTERS": (8, 16, 32),
            "LOADS": (2, 4, 8),
            "UNROLL": (1, 2, 4),
            "MIN_BLOCKS": (1, 2, 3, 4),
        },
    ),
    "pointwise": Grid(
        "pointwise",
        _POINTWISE_LAYERS,
        lambda tuning: mixing_attempts("pointwise", tuning),
        {"CHANNEL_COUNT": (1, 2, 4, 8, 16, 32), "ROUNDS": (1, 2, 4), "MIN_BLOCKS": (1, 2, 3, 4)},
    ),
    "pointwise_tiled": Grid(
        "pointwise", _POINTWISE_LAYERS, lambda tuning: mixing_attempts("pointwise_tiled", tuning), _PRODUCT_TILE
    ),
}
"""By the name of the kernel."""


def _open(kernel: str, case: str, *listed: Tuning) -> Grid:
    """Tunings that a table leaves open, of a kernel by name and one case."""
    if kernel == "separable":
        return Grid("filter", (case,), lambda tuning: separable_attempts(tuning, kernel), {}, listed)
    return Grid("filter", (case,), lambda tuning: kernel_attempts(kernel, tuning), {}, listed)


def _open_gaussian(element: str, sigma: int, *listed: Tuning) -> Grid:
    return _open("separable", f"64 x 1024^2 {element} gaussian sigma {sigma}", *listed)


def _open_stack(kernel: str, element: str, side: int, *listed: Tuning) -> Grid:
    return _open(kernel, f"64 x 1024^2 {element} {side}x{side}", *listed)


def _strip(columns: int, blocks: int, **others: int) -> Tuning:
    """Columns of a lane of the fused pass, and blocks of two warps on a multiprocessor."""
    return {"LANE_COLUMNS": columns, "ROW_SUMS": 8, "BLOCKS": blocks, **others}


OPEN: tuple[Grid, ...] = (
    # BLOCK_ROWS: 52 fills five blocks of four warps with strips of 512 columns, 86 three, 128 two (or four of 256).
    _open_stack("reuse", "uint16", 3, {"ROWS_AHEAD": 3}, {"BLOCKS": 4, "BLOCK_ROWS": 64}),
    _open_stack("reuse", "uint16", 5, {"GROUPS": 2, "BLOCKS": 3, "BLOCK_ROWS": 86}, {"ROWS_AHEAD": 3}),
    _open_stack("reuse", "uint16", 7, {"BLOCKS": 2, "BLOCK_ROWS": 128}, {"ROWS_AHEAD": 3}),
    _open_stack("reuse", "uint16", 9, {"GROUPS": 1, "BLOCKS": 4, "BLOCK_ROWS": 128}, {"ROWS_AHEAD": 3}),
    _open_stack("reuse", "uint16", 15, {"COLUMNS": 4, "BLOCKS": 5, "BLOCK_ROWS": 205}),
    _open_stack("reuse", "float32", 7, {"COLUMNS": 8, "GROUPS": 1}, {"COLUMNS": 8, "GROUPS": 2, "BLOCKS": 3}),
    _open_stack("reuse", "float32", 9, {"COLUMNS": 4, "GROUPS": 4, "BLOCKS": 2}, {"COLUMNS": 4, "GROUPS": 2}),
    _open_stack("reuse", "float32", 11, {"COLUMNS": 4, "GROUPS": 2}, {"BLOCKS": 4, "BLOCK_ROWS": 128}),
    _open_stack("reuse", "float32", 15, {"COLUMNS": 4, "GROUPS": 2}),
    _open("reuse", "width 08", {"BLOCK_ROWS": 43}, {"COLUMNS": 4, "GROUPS": 2}),
    _open("reuse", "width 13", {"COLUMNS": 4, "GROUPS": 2}, {"BLOCKS": 4, "BLOCK_ROWS": 32}),
    _open("reuse_wide", "width 13", {"ROWS_AHEAD": 2}),
    _open("reuse_wide", "width 17", {"ROWS": 8}, {"BLOCKS": 5}),
    _open("reuse_wide", "width 33", {"FLUSH_ROWS": 0}, {"FLUSH_ROWS": 32}),
    _open("reuse_wide", "width 48", {"FLUSH_ROWS": 0}, {"FLUSH_ROWS": 32}, {"CHUNK": 24}),
    _open_gaussian("float32", 1, {"WARPS": 4, "BLOCKS": 5}, _strip(2, 8), _strip(2, 12)),
    _open_gaussian("float32", 2, {"WARPS": 4, "BLOCKS": 4}, {"WARPS": 8, "BLOCKS": 2}, _strip(2, 10, WARPS=2)),
    _open_gaussian("float32", 4, {"WARPS": 4, "BLOCKS": 4}, _strip(2, 7)),
    _open_gaussian("float32", 8, {"WARPS": 4, "BLOCKS": 2}, _strip(2, 4, TOGETHER=2), _strip(1, 5)),
    _open_gaussian("uint16", 1, {"WARPS": 4, "BLOCKS": 4}, _strip(4, 7)),
    _open_gaussian("uint16", 2, {"WARPS": 4, "BLOCKS": 4}, _strip(4, 6)),
    _open_gaussian("uint16", 4, {"WARPS": 4, "BLOCKS": 2}, _strip(4, 5)),
    _open_gaussian("uint16", 8, {"WARPS": 4, "BLOCKS": 2}, {"APART": 0}, _strip(1, 5)),
)
"""What the tables of the single-channel filters leave open: one run of some 150 seconds times all of it."""
