"""Which tile an Im2win convolution takes, and among how many blocks it shares K: a model of the time on one device."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from xcorr_app.gpu.im2win.problem import Im2winProblem
from xcorr_app.gpu.runtime.launch import WARP, ceil_div
from xcorr_app.gpu.runtime.limits import DeviceLimits

TILE_DEPTHS = (8, 9, 10, 12, 15, 16)
"""Elements of K in a tile."""

MAX_SEGMENTS = 16
"""Most blocks that share the depth of a tile of the output."""

_MICRO_M = 8
# The model's constants, in cycles of a multiprocessor; estimates from the instruction counts of the compiled kernels.
_SLOTS_OF_TILE = 70  # issue slots of a warp for a tile: barrier, offsets, the loop
_SLOTS_OF_COPY = 3  # for 4 bytes of the image or the window tensor, 16 bytes of stored filters
_SLOTS_OF_BLOCK = 200  # for the beginning of a block
_SLOTS_OF_STORE, _SLOTS_OF_ODD_STORE = 2.6, 6.0  # for a sum, where planes are whole vectors and where they are not
_CYCLES_OF_ELEMENT = 0.02  # for an element of a tile that comes through the caches
_LATENCY = 3000  # cycles of a block in which it waits for its first tile and its last store
_WARPS_HALF = 2.0  # warps of a multiprocessor that reach half of the issue rate
_RESIDENT_SUMS = 2**15  # of a multiprocessor, for its registers
_BYTES_PER_CYCLE = 2260  # that the device copies: 4.24 TB/s at 1.88 GHz
_CYCLES_OF_LAUNCH = 5000  # for the second launch, which adds up segments

_MAX_WORKSPACE = 32 << 20
"""Bytes that the sums of segments may take."""


@dataclass(frozen=True)
class Tile:
    """Shape of a block.

    Attributes
    ----------
    lanes_m : int
        Lanes of a warp along the filters: 1, 2, 4 ... 32.
    warps_m, warps_n : int
        Warps of a block along the filters and along the columns.
    micro_n : int
        Columns of a thread, of 8 filters each.
    """

    lanes_m: int
    warps_m: int
    warps_n: int
    micro_n: int = 8

    @property
    def filters(self) -> int:
        """Filters of the block."""
        return self.lanes_m * self.warps_m * _MICRO_M

    @property
    def columns(self) -> int:
        """Columns of the block."""
        return WARP // self.lanes_m * self.warps_n * self.micro_n

    @property
    def threads(self) -> int:
        """Threads of the block."""
        return WARP * self.warps_m * self.warps_n

    def defines(self) -> dict[str, int]:
        """Return the kernel's macros."""
        sizes = {"LANES_M": self.lanes_m, "WARPS_M": self.warps_m, "WARPS_N": self.warps_n}
        return {**sizes, "MICRO_M": _MICRO_M, "MICRO_N": self.micro_n, "MIN_BLOCKS": self.resident_blocks}

    @property
    def resident_blocks(self) -> int:
        """Blocks that the registers of a multiprocessor can hold."""
        return max(1, _RESIDENT_SUMS // (self.threads * _MICRO_M * self.micro_n))


TILES = (
    Tile(4, 4, 2),  # 128 x 128
    Tile(4, 2, 4),  # 64 x 256
    Tile(4, 3, 2),  # 96 x 128
    Tile(4, 2, 2),  # 64 x 128
    Tile(4, 1, 4),  # 32 x 256
    Tile(4, 2, 1),  # 64 x 64
    Tile(4, 1, 2),  # 32 x 128
    Tile(4, 1, 1),  # 32 x 64
    Tile(2, 1, 2),  # 16 x 256
    Tile(1, 1, 2),  # 8 x 512
    Tile(8, 2, 2, 16),  # 128 x 128
    Tile(8, 1, 4, 16),  # 64 x 256
    Tile(8, 1, 2, 16),  # 64 x 128
)
"""What `plan_for` chooses from; the first of equals."""


@dataclass(frozen=True)
class Plan:
    """A tile, its depth, and the number of blocks that share K.

    Attributes
    ----------
    tile : Tile
        Of the block.
    depth : int
        Elements of K in a tile.
    segments : int
        Blocks that share K.
    cycles : float
        What the model expects, in cycles of a multiprocessor.
    """

    tile: Tile
    depth: int
    segments: int
    cycles: float


@functools.lru_cache(maxsize=1024)
def plan_for(problem: Im2winProblem, device: DeviceLimits, *, segments: int | None = None) -> Plan:
    """Choose the block's shape and the segments of K that take least time."""
    depth = tile_depth(problem.depth)
    tiles_of_k = ceil_div(problem.depth, depth)
    fitting = 1 + _MAX_WORKSPACE // (4 * problem.filters * problem.columns)
    most = min(MAX_SEGMENTS, fitting, max(1, tiles_of_k // 8))
    numbers = range(1, most + 1) if segments is None else (min(segments, tiles_of_k),)
    plans = [Plan(tile, depth, n, _cycles(problem, tile, depth, n, device)) for tile in TILES for n in numbers]
    return min(plans, key=lambda plan: plan.cycles)


def tile_depth(depth: int) -> int:
    """Choose the elements of K in a tile: few tiles, and little beyond the last element."""

    def slots(of_tile: int) -> int:
        return ceil_div(depth, of_tile) * (of_tile * 68 + _SLOTS_OF_TILE)  # of 8 x 8 sums a thread

    return min(reversed(TILE_DEPTHS), key=slots)


def _cycles(problem: Im2winProblem, tile: Tile, depth: int, segments: int, device: DeviceLimits) -> float:
    blocks = ceil_div(problem.filters, tile.filters) * ceil_div(problem.columns, tile.columns) * segments
    tiles_of_k = ceil_div(ceil_div(problem.depth, depth), segments)
    sums = _MICRO_M * tile.micro_n
    step = sums + (_MICRO_M + tile.micro_n) / 4  # multiply-adds, loads from shared memory
    copies = depth * _SLOTS_OF_COPY * (tile.columns + tile.filters / 4) / tile.threads
    of_store = _SLOTS_OF_ODD_STORE if problem.out_height * problem.out_width % 4 else _SLOTS_OF_STORE
    slots = tiles_of_k * (depth * step + _SLOTS_OF_TILE + copies) + _SLOTS_OF_BLOCK + sums * of_store
    elements = tiles_of_k * depth * (tile.filters + tile.columns)
    of_block = tile.threads / WARP / 4 * slots + _CYCLES_OF_ELEMENT * elements  # four warps issue at once
    on_busiest = ceil_div(blocks, device.multiprocessors)
    resident = min(on_busiest, tile.resident_blocks)
    # Every wave of blocks, a last one of few too, waits as long as this many more blocks would take.
    waiting = ceil_div(on_busiest, resident) * _WARPS_HALF * WARP / tile.threads
    work = (on_busiest + waiting) * of_block + _LATENCY * (1 + on_busiest / (4 * resident))
    if segments == 1:
        return max(work, 4 * problem.filters * problem.columns / _BYTES_PER_CYCLE)
    # Passes over the output: partial sums are written, and read again.
    traffic = (2 * segments + 1) * 4 * problem.filters * problem.columns / _BYTES_PER_CYCLE
    return work + traffic + _CYCLES_OF_LAUNCH
