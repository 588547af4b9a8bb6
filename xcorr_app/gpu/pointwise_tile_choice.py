"""Which tile the tiled pointwise product takes, and who shares its channels: a model of the time on one device.

Where the tiles of a product are fewer than a device's multiprocessors (a batch of one, planes of 7 x 7), groups of a
block's warps share the channels, and blocks do where that is not enough: blocks cost a second launch.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass

from xcorr_app.gpu.launch import WARP, ceil_div
from xcorr_app.gpu.pointwise_planner import MultiprocessorLimits
from xcorr_app.gpu.pointwise_problem import PointwiseProblem

__all__ = [
    "LARGEST_PLANE",
    "MOST_DEPTH",
    "TILES",
    "Choice",
    "ProductTile",
    "choose_tile",
    "modelled_cycles",
    "takes_planes",
]

LARGEST_PLANE = 256
"""Pixels of a plane that tiles hold whole."""
MOST_DEPTH = 128
"""Channels of a tile; the stored matrix ends with as many rows of zeros."""

_GROUP_DEPTHS = (4, 8, 12, 16)  # channels of a tile for each group of warps
_SEGMENTS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16)
_MOST_RESIDENT, _MOST_RESIDENT_THREADS = 16, 1024  # blocks and threads, on any architecture
_MOST_COPIES = 8  # of 16 bytes that a thread makes for a tile
_MOST_OFFSETS = 4  # of pixels that a thread copies where channels are interleaved, for its registers
_LANES_OF_PIXEL = 8  # that copy neighbouring channels there
# The model's constants, in cycles of a multiprocessor: the first five fitted to the 33 times of layers in
# `pointwise_bench.json`, of tiles without groups (root mean square of the logarithm: 0.15); the others are estimates.
_CYCLES_OF_LAUNCH = 5450.0  # also first tile and last store
_WARPS_HALF = 2.9  # warps of a multiprocessor that reach half of the issue rate
_SLOTS_OF_COPY = 37.0  # for a warp's copy, of 4 bytes a lane or of 16
_SLOTS_OF_SUM = 16.0  # for storing a sum; twice where planes are not whole vectors
_BYTES_PER_CYCLE = 1340.0  # between memory and device, cold
_CYCLES_OF_SECOND_LAUNCH = 3800.0
_SLOTS_OF_STEP = 20.0  # barrier and loop
_CACHE_BYTES_PER_CYCLE = 2900.0  # between second-level cache and device
_CYCLES_OF_GROUPS = 400.0  # two barriers, and sums on their way through shared memory


@dataclass(frozen=True)
class ProductTile:
    """Shape of a block.

    Attributes
    ----------
    lanes_m : int
        Lanes of a warp along the filters: 1, 2, 4 ... 32.
    warps_m, warps_n, warps_k : int
        Warps of a block along the filters and the pixels, and groups of such warps that share the channels.
    micro_m, micro_n : int
        Filters and pixels of a thread.
    """

    lanes_m: int
    warps_m: int
    warps_n: int
    warps_k: int = 1
    micro_m: int = 8
    micro_n: int = 8

    @property
    def filters(self) -> int:
        """Filters of the block."""
        return self.lanes_m * self.warps_m * self.micro_m

    @property
    def columns(self) -> int:
        """Pixels of the block, of which whole planes may leave some empty."""
        return WARP // self.lanes_m * self.warps_n * self.micro_n

    @property
    def threads(self) -> int:
        """Threads of the block."""
        return WARP * self.warps_m * self.warps_n * self.warps_k

    @property
    def sums(self) -> int:
        """Sums of a thread."""
        return self.micro_m * self.micro_n

    @property
    def resident_blocks(self) -> int:
        """Blocks that the registers of a multiprocessor are to hold."""
        registers = 64 if self.sums <= 16 else 96 if self.sums <= 32 else 128 if self.sums <= 64 else 255
        return max(1, min(_MOST_RESIDENT, min(65536 // registers, _MOST_RESIDENT_THREADS) // self.threads))

    def columns_used(self, plane: int) -> int:
        """Return the pixels of the block; those of whole planes where `plane` is not zero."""
        return self.columns // plane * plane if plane else self.columns

    def shared_floats(self, depth: int, buffers: int, plane: int) -> int:
        """Return the floats of shared memory, for tiles of `depth` channels and for the sums after them."""
        row = self.columns_used(plane) if plane else self.columns + 4
        tiles = buffers * depth * (self.filters + 4 + row)
        through_shared = plane or self.warps_k > 1
        return max(tiles, self.warps_k * self.filters * row if through_shared else self.threads * self.micro_n)

    def depths(self, *, interleaved: bool = False) -> list[int]:
        """Return the channels that a tile may hold: more copies a thread would take more registers than there are."""
        if interleaved and self.columns > self.threads // _LANES_OF_PIXEL * _MOST_OFFSETS:
            return []
        groups = _GROUP_DEPTHS[: 2 if interleaved else None]
        depths = [group * self.warps_k for group in groups if group * self.warps_k <= MOST_DEPTH]
        return [depth for depth in depths if depth * self.columns <= 4 * _MOST_COPIES * self.threads]

    def defines(self) -> dict[str, int]:
        """Return the kernel's macros."""
        shape = {"LANES_M": self.lanes_m, "WARPS_M": self.warps_m, "WARPS_N": self.warps_n, "WARPS_K": self.warps_k}
        return {**shape, "MICRO_M": self.micro_m, "MICRO_N": self.micro_n, "MIN_BLOCKS": self.resident_blocks}


def _tiles() -> Iterator[ProductTile]:
    """Yield the shapes: large ones, those of filters that powers of two miss, and small ones for groups."""
    for lanes_m, warps_m, warps_n in ((4, 4, 2), (4, 2, 4), (4, 3, 2), (4, 2, 2), (4, 1, 4), (4, 2, 1), (4, 1, 2)):
        yield ProductTile(lanes_m, warps_m, warps_n)  # 128 x 128, 64 x 256, 96 x 128, 64 x 128, 32 x 256 ...
    for warps_m in (3, 5):
        yield ProductTile(1, warps_m, 1)  # 24 and 40 x 256
        yield ProductTile(2, warps_m, 1)  # 48 and 80 x 128
    yield ProductTile(2, 7, 1)  # 112 x 128
    yield ProductTile(4, 5, 2)  # 160 x 128
    yield ProductTile(2, 1, 2)  # 16 x 256
    for lanes_m in (4, 8, 16):
        yield ProductTile(lanes_m, 1, 7, micro_n=7)  # 32 x 392, 64 x 196, 128 x 98: whole planes of 49
    for warps_k in (1, 2, 4, 8):
        yield ProductTile(4, 1, 1, warps_k)  # 32 x 64
        yield ProductTile(4, 1, 1, warps_k, micro_n=4)  # 32 x 32
        yield ProductTile(2, 1, 1, warps_k, micro_n=4)  # 16 x 64
        yield ProductTile(4, 1, 1, warps_k, 4, 4)  # 16 x 32
        yield ProductTile(2, 1, 1, warps_k, 4, 4)  # 8 x 64
        yield ProductTile(4, 1, 1, warps_k, micro_n=7)  # 32 x 56, whole planes
        yield ProductTile(4, 1, 1, warps_k, 4, 7)  # 16 x 56
        if warps_k in (2, 4):
            yield ProductTile(4, 2, 1, warps_k)  # 64 x 64
            yield ProductTile(4, 1, 2, warps_k)  # 32 x 128


TILES = tuple(_tiles())
"""What `choose_tile` chooses from; the first of equals."""


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
    """Whether whole planes are copied: small ones whose sizes keep four pixels from being copied at once.

    Parameters
    ----------
    problem : PointwiseProblem
        Any.
    alignment : int
        Power of two that divides the addresses of stack and result, in bytes.

    Returns
    -------
    bool
        Channels and filters in fours keep every copy and every store of the kernel on 16 bytes.
    """
    odd = problem.inner % 4 != 0 and 1 < problem.inner <= LARGEST_PLANE
    return odd and alignment >= 16 and problem.channels % 4 == 0 and problem.filters % 4 == 0


@functools.lru_cache(maxsize=1024)
def choose_tile(
    problem: PointwiseProblem, limits: MultiprocessorLimits, *, planes: bool = False, segments: int | None = None
) -> Choice:
    """Choose the block's shape and who shares the channels, for the least time.

    Parameters
    ----------
    problem : PointwiseProblem
        Of a part.
    limits : MultiprocessorLimits
        Of the device.
    planes : bool, optional
        Whether tiles hold whole planes.
    segments : int, optional
        The number to take, where it must not be chosen.

    Returns
    -------
    Choice
        The first of equals.
    """
    plane = problem.inner if planes else 0
    choices = _candidates(problem, limits, plane, segments)
    return min(choices, key=lambda choice: modelled_cycles(problem, limits, choice, plane))


def _candidates(
    problem: PointwiseProblem, limits: MultiprocessorLimits, plane: int, segments: int | None
) -> Iterator[Choice]:
    for tile in TILES:
        if not (tile.columns >= plane if plane else tile.micro_n % 4 == 0):
            continue
        for depth in tile.depths(interleaved=problem.interleaved):
            steps = ceil_div(problem.channels, depth)
            numbers = [n for n in _SEGMENTS if n == 1 or n <= steps // 2]
            for buffers in (2,) if tile.warps_k == 1 else (4, 3):
                if 4 * tile.shared_floats(depth, buffers, plane) > limits.shared_bytes_per_block:
                    continue
                for number in numbers if segments is None else [min(segments, steps)]:
                    yield Choice(tile, depth, buffers, number)


def modelled_cycles(problem: PointwiseProblem, limits: MultiprocessorLimits, choice: Choice, plane: int) -> float:
    """Return what the model expects of a choice.

    Parameters
    ----------
    problem : PointwiseProblem
        Of a part.
    limits : MultiprocessorLimits
        Of the device.
    choice : Choice
        Any.
    plane : int
        Pixels of a plane where tiles hold whole planes, 0 where they do not.

    Returns
    -------
    float
        Cycles of a multiprocessor.
    """
    tile, depth, segments = choice.tile, choice.depth, choice.segments
    columns = tile.columns_used(plane)
    blocks = ceil_div(problem.filters, tile.filters) * ceil_div(problem.pixels, columns) * segments
    steps = ceil_div(ceil_div(problem.channels, depth), segments)
    wide = plane or (not problem.interleaved and problem.inner % 4 == 0)
    # Issue slots of a warp.
    loads = tile.micro_m / 4 + (tile.micro_n if plane else tile.micro_n / 4)
    copies = depth * (columns / (4 if wide else 1) + tile.filters / 4) / tile.threads
    slots = steps * (depth / tile.warps_k * (tile.sums + loads) + _SLOTS_OF_STEP + _SLOTS_OF_COPY * copies)
    slots += _SLOTS_OF_SUM * tile.sums / tile.warps_k * (1 if wide else 2)
    # Of the busiest multiprocessor, whose blocks come in waves.
    warps = tile.threads / WARP
    shared_bytes = 4 * tile.shared_floats(depth, choice.buffers, plane) + limits.shared_bytes_reserved
    most = max(1, min(tile.resident_blocks, limits.shared_bytes // shared_bytes))
    waves, rest = divmod(ceil_div(blocks, limits.multiprocessors), most)
    work = (waves * (most * warps + _WARPS_HALF) + (rest * warps + _WARPS_HALF if rest else 0)) / 4 * slots
    work += _CYCLES_OF_GROUPS if tile.warps_k > 1 else 0
    cached = 4 * blocks * steps * depth * (tile.filters + columns) / _CACHE_BYTES_PER_CYCLE
    results = 4 * problem.pixels * problem.filters
    moved = (4 * problem.channels * (problem.pixels + problem.filters) + results) / _BYTES_PER_CYCLE
    cycles = _CYCLES_OF_LAUNCH + max(work, cached, moved)
    if segments > 1:
        cycles += _CYCLES_OF_SECOND_LAUNCH + 2 * segments * results / _CACHE_BYTES_PER_CYCLE
    return cycles
