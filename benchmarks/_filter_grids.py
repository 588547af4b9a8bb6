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

__all__ = ["GRIDS", "Grid", "tunings"]

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
    """

    suite: str
    cases: tuple[str, ...]
    attempts: Callable[[Tuning], Any]
    values: Mapping[str, tuple[int, ...]]

    def tried(self) -> Iterator[Tuning]:
        """Yield the tunings to try, the table's own first."""
        return tunings(self.values)

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
    "blocking": Grid(
        "pointwise",
        _POINTWISE_LAYERS,
        lambda tuning: mixing_attempts("blocking", tuning),
        {"CHANNEL_COUNT": (1, 2, 4, 8, 16, 32), "ROUNDS": (1, 2, 4), "MIN_BLOCKS": (1, 2, 3, 4)},
    ),
    "tiled": Grid("pointwise", _POINTWISE_LAYERS, lambda tuning: mixing_attempts("tiled", tuning), _PRODUCT_TILE),
}
"""By the name of the kernel."""
