"""Which tile the tiled pointwise product takes, and who shares its channels: a model of the time on one device.

Where the tiles of a product are fewer than a device's multiprocessors (a batch of one, planes of 7 x 7), groups of a
block's warps share the channels, and blocks do where that is not enough: blocks cost a second launch.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass

from xcorr_app.gpu.pointwise.problem import PointwiseProblem
from xcorr_app.gpu.pointwise.tile_shapes import TILES, ProductTile
from xcorr_app.gpu.runtime.launch import WARP, ceil_div
from xcorr_app.gpu.runtime.limits import DeviceLimits

__all__ = [
    "LARGEST_PLANE",
    "Choice",
    "choose_tile",
    "modelled_cycles",
    "takes_planes",
]

LARGEST_PLANE = 256
"""Pixels of a plane that tiles hold whole."""

_SEGMENTS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16)
# The model's constants, in cycles of a multiprocessor at 1.88 GHz, fitted to 1640 times of tiles on one H200, of all
# layers at batch 32 and 128 (root mean square of the logarithm of those near the best of each: 0.07). Those of a trip
# and of the second launch are larger than the fit's, for a batch of one, of which it knows nothing.
_CYCLES_OF_LAUNCH = 8000.0  # also first tile and last store: 4.3 us
_WARPS_HALF = 2.0  # warps of a multiprocessor that reach half of the issue rate
_BLOCKS_HALF = 0.42  # the same of blocks, whose warps wait for each other
_SLOTS_OF_STEP = 12.0  # barrier and loop
_SLOTS_OF_SUM = 8.8  # for storing a sum; twice where planes are not whole vectors
_SLOTS_OF_PRODUCT = 3.5  # of a warp on tensor cores, of 16 x 8 x 8 elements
_SLOTS_OF_SPLIT = 5.2  # for reading one of its values and making two parts of it
_SLOTS_OF_CONFLICT = 1.5  # more, for one of a whole plane, whose rows meet in the banks of shared memory
_BYTES_PER_CYCLE = 2350.0  # between memory and device, cold
_CACHE_BYTES_PER_CYCLE = 4800.0  # between second-level cache and device
_BESIDES_RUN = 31.0  # floats that a run of neighbouring ones costs more than it has
_CYCLES_OF_TRIP = 500.0  # to memory and back, which a block waits for where its tiles on their way are few
_CYCLES_OF_GROUPS = 250.0  # two barriers, and sums on their way through shared memory
_CYCLES_OF_SECOND_LAUNCH = 3000.0


@dataclass(frozen=True)
class Choice:
    """A tile and who shares its channels.

    Attributes
    ----------
    tile : ProductTile
        Of the block.
    depth : int
        Channels of a tile.
    buffers : int
        Tiles in shared memory.
    segments : int
        Blocks that share the channels.
    """

    tile: ProductTile
    depth: int
    buffers: int
    segments: int


def takes_planes(problem: PointwiseProblem, alignment: int) -> bool:
    """Whether whole planes are copied: small ones whose sizes keep four pixels from being copied at once."""
    odd = problem.inner % 4 != 0 and 1 < problem.inner <= LARGEST_PLANE
    return odd and alignment >= 16 and problem.channels % 4 == 0 and problem.filters % 4 == 0


@functools.lru_cache(maxsize=1024)
def choose_tile(
    problem: PointwiseProblem, limits: DeviceLimits, *, planes: bool = False, segments: int | None = None
) -> Choice:
    """Choose the block's shape and who shares the channels, for the least time."""
    plane = problem.inner if planes else 0
    choices = _candidates(problem, limits, plane, segments)
    return min(choices, key=lambda choice: modelled_cycles(problem, limits, choice, plane))


def _candidates(problem: PointwiseProblem, limits: DeviceLimits, plane: int, segments: int | None) -> Iterator[Choice]:
    for tile in TILES:
        if not tile.takes(plane) or (tile.split and not limits.has_tensor_cores):
            continue
        for depth in tile.depths(interleaved=problem.interleaved):
            steps = ceil_div(problem.channels, depth)
            numbers = [n for n in _SEGMENTS if n == 1 or n <= steps // 2]
            buffers = 3 if tile.split or tile.warps_k > 1 else 2
            if 4 * tile.shared_floats(depth, buffers, plane) > limits.shared_bytes:
                continue
            for number in numbers if segments is None else [min(segments, steps)]:
                yield Choice(tile, depth, buffers, number)


def modelled_cycles(problem: PointwiseProblem, limits: DeviceLimits, choice: Choice, plane: int) -> float:
    """Return what the model expects of a choice."""
    tile, depth, segments = choice.tile, choice.depth, choice.segments
    columns = tile.columns_used(plane)
    blocks = ceil_div(problem.filters, tile.filters) * ceil_div(problem.pixels, columns) * segments
    steps = ceil_div(ceil_div(problem.channels, depth), segments)
    wide = plane or (not problem.interleaved and problem.inner % 4 == 0)
    # Issue slots of a warp.
    slots = steps * (_slots_of_tile(tile, depth, plane) + _SLOTS_OF_STEP)
    slots += _SLOTS_OF_SUM * tile.sums / tile.warps_k * (1 if wide else 2)
    # Of the busiest multiprocessor, whose blocks come in waves.
    warps = tile.threads / WARP
    shared_bytes = 4 * tile.shared_floats(depth, choice.buffers, plane) + limits.shared_bytes_reserved
    most = max(1, min(tile.resident_blocks, limits.shared_bytes_per_multiprocessor // shared_bytes))
    waves, rest = divmod(ceil_div(blocks, limits.multiprocessors), most)
    rounds = waves + (rest > 0)
    work = ((waves * most + rest + rounds * _BLOCKS_HALF) * warps + rounds * _WARPS_HALF) / 4 * slots
    work += _CYCLES_OF_GROUPS if tile.warps_k > 1 else 0
    dearer = 1 + _BESIDES_RUN / (plane * depth or columns)
    cached = 4 * blocks * steps * depth * (tile.filters + columns) * dearer / _CACHE_BYTES_PER_CYCLE
    results = 4 * problem.pixels * problem.filters
    moved = (4 * problem.channels * (problem.pixels + problem.filters) * dearer + results) / _BYTES_PER_CYCLE
    waits = rounds * max(0.0, steps / (choice.buffers - 1) - 1) * _CYCLES_OF_TRIP  # the first is the launch's
    cycles = _CYCLES_OF_LAUNCH + math.hypot(work, cached, moved, waits)  # the largest, and some of the others
    if segments > 1:
        cycles += _CYCLES_OF_SECOND_LAUNCH + 2 * segments * results / _CACHE_BYTES_PER_CYCLE
    return cycles


def _slots_of_tile(tile: ProductTile, depth: int, plane: int) -> float:
    """Return the issue slots in which a warp multiplies its share of a tile of `depth` channels."""
    if tile.split:  # products have half as many rows and columns as a thread has sums, and an eighth of the channels
        product = 3 * tile.sums / 4 * _SLOTS_OF_PRODUCT + (2 * tile.micro_m + tile.micro_n) * _SLOTS_OF_SPLIT
        product += tile.micro_n * _SLOTS_OF_CONFLICT if plane else 0
        return depth / tile.warps_k / 8 * product + tile.sums
    loads = tile.micro_m / 4 + (tile.micro_n if plane else tile.micro_n / 4)
    return depth / tile.warps_k * (tile.sums + loads)
