"""How a pointwise convolution (a matrix times every pixel's channel vector) is cut into tiles: dynamic blocking.

The output, filters by pixels, is cut three times. A *block tile* belongs to a thread block, of four warps as published;
its 2 x 2 quarters are *warp tiles*; what one thread of a warp sums up is a *thread tile*. So many groups of lanes,
``lane_groups = 32 / channel_count``, share the warp tile, and the ``channel_count`` lanes of a group share the
channels, to be added up at the end by a segmented reduction.

Layout L1 spreads the filters over the groups and gives every thread the same few pixels; L2, for few filters, spreads
the pixels and gives every thread all filters of the warp. The planner tries every channel count, every width of the
side that may vary and both numbers of blocks a multiprocessor, keeps what registers and shared memory allow, and takes

1. the largest arithmetic intensity ``M_A = thread tile * Iter / values a thread fetches a step``;
2. among those within 1 % of it, the fewest block tiles ``M_B``;
3. among those, the fewest registers.

What the method leaves open is settled thus. Every division rounds up, so tails of filters, pixels and channels are
masked by the kernel. The side that may vary is at most 32 pixels a block in L1, and 32 pixels for every group of lanes
in L2, so that a thread never holds more than 16 of them. Every width from the square thread tile down to one is a
candidate, since with very many filters the square one does not fit the registers. `Iter` is the number of full tiles,
of 32 pixels, in a block's share: counted in the tiles that are chosen, it would make the smallest tile the best, and
counted in wider ones, the largest channel count. A channel count is tried only where
at least half of it has channels to work on. An SM's share, for `M_B`, is all filters by its part of the pixels.

`BlockingOptions` has the constants that the document sets. The plan depends on nothing but its arguments, and needs no
device.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.pointwise.blocking_options import AS_PUBLISHED, BlockingOptions
from xcorr_app.gpu.runtime.limits import DeviceLimits

MAX_CHANNELS = 4096
LANES = 32
CHANNEL_COUNTS = (1, 2, 4, 8, 16, 32)
BLOCKS_PER_MULTIPROCESSOR = (2, 4)
MAX_PIXELS = 32
REGISTERS_BESIDES = 72
"""For addresses, counters and masks, and for reading fours of values: by what the compiler reports of the kernel."""
_OF_OTHER_WARPS = 16
"""More of them in blocks of other than four warps."""
CLOSE = 0.01
_REGISTER_UNIT = 8
_VALUE_BYTES = 4


def registers_for(limits: DeviceLimits, blocks: int, options: BlockingOptions = AS_PUBLISHED) -> int:
    """Registers a thread may use where `blocks` blocks share a multiprocessor."""
    share = min(limits.registers, options.registers or limits.registers) // (blocks * options.warps * LANES)
    return min(limits.registers_per_thread, share - share % _REGISTER_UNIT)


def shared_for(limits: DeviceLimits, blocks: int, options: BlockingOptions = AS_PUBLISHED) -> int:
    """Bytes of shared memory a block may ask for where `blocks` blocks share a multiprocessor."""
    share = limits.shared_bytes_per_multiprocessor // blocks - limits.shared_bytes_reserved
    return min(limits.shared_bytes, share, options.shared_bytes // blocks if options.shared_bytes else share)


@dataclass(frozen=True)
class PointwisePlan:
    """One way of cutting the work, which fits the device.

    Attributes
    ----------
    filters, channels, pixels
        The problem: rows and columns of the matrix, and pixels of all images together.
    layout
        L1: filters across the groups of lanes; L2: pixels.
    blocks_per_multiprocessor
        Meant to run at the same time.
    channel_count
        Lanes that share the channels of an output.
    warp_filters, warp_pixels
        Size of a warp tile; a block tile is twice as large both ways.
    thread_filters, thread_pixels
        Size of a thread tile.
    tiles_per_block
        Block tiles that a block walks, along the pixels.
    registers
        Estimated, a thread.
    shared_bytes
        A block, both halves of the double buffer.
    intensity
        `M_A`.
    block_tiles
        `M_B`.
    warps
        Of a block, along the filters and along the pixels.
    """

    filters: int
    channels: int
    pixels: int
    layout: Literal["L1", "L2"]
    blocks_per_multiprocessor: int
    channel_count: int
    warp_filters: int
    warp_pixels: int
    thread_filters: int
    thread_pixels: int
    tiles_per_block: int
    registers: int
    shared_bytes: int
    intensity: float
    block_tiles: int
    warps: tuple[int, int] = (2, 2)

    @property
    def block_filters(self) -> int:
        """Filters of a block tile."""
        return self.warps[0] * self.warp_filters

    @property
    def block_pixels(self) -> int:
        """Pixels of a block tile."""
        return self.warps[1] * self.warp_pixels

    @property
    def lane_groups(self) -> int:
        """Groups of lanes in a warp, each of which sums outputs of its own."""
        return LANES // self.channel_count

    @property
    def grid(self) -> tuple[int, int]:
        """Blocks along the pixels and along the filters."""
        tiles = _up(self.pixels, self.block_pixels)
        return _up(tiles, self.tiles_per_block), _up(self.filters, self.block_filters)

    @property
    def channel_steps(self) -> int:
        """Steps in which a block goes through the channels."""
        return _up(self.channels, self.channel_count)

    def explain(self) -> str:
        """Say in a few lines what was chosen, and why."""
        spread = "filters" if self.layout == "L1" else "pixels"
        grid = " x ".join(map(str, self.grid))
        lines = [
            f"{self.filters} filters x {self.channels} channels on {self.pixels} pixels",
            f"layout {self.layout}: {spread} across lanes, as {self.filters} filters ask for",
            f"{self.warps[0]} x {self.warps[1]} warps a block",
            f"block tile {self.block_filters} filters x {self.block_pixels} pixels",
            f"warp tile {self.warp_filters} x {self.warp_pixels}",
            f"thread tile {self.thread_filters} x {self.thread_pixels}",
            f"{self.channel_count} lanes share an output's channels: {self.channel_steps} steps, then a reduction",
            f"{self.blocks_per_multiprocessor} blocks an SM, {self.tiles_per_block} tiles a block, grid {grid}",
            f"about {self.registers} registers a thread, {self.shared_bytes} bytes of shared memory a block",
            f"arithmetic intensity M_A {self.intensity:.4g}, block tiles M_B {self.block_tiles}",
        ]
        return "\n".join(lines)


def plan_pointwise(
    filters: int, channels: int, pixels: int, limits: DeviceLimits, options: BlockingOptions = AS_PUBLISHED
) -> PointwisePlan:
    """Choose tiles for a pointwise convolution.

    Examples
    --------
    >>> h200 = DeviceLimits(132, 232448, 65536, 255, 233472, 1024)
    >>> plan = plan_pointwise(8, 8, 2048 * 2048, h200)
    >>> plan.layout, plan.thread_filters, plan.thread_pixels
    ('L2', 4, 4)
    """
    if not (1 <= filters <= MAX_CHANNELS and 1 <= channels <= MAX_CHANNELS and pixels >= 1):
        raise ArgumentError(
            f"{filters} filters, {channels} channels, {pixels} pixels: filters and channels are 1 to {MAX_CHANNELS}, "
            "pixels at least 1"
        )
    fitting = list(candidates(filters, channels, pixels, limits, options))
    if not fitting:
        asked = "" if options == AS_PUBLISHED else f" with {options}"
        raise ArgumentError(f"no tiles for {filters} filters fit this device{asked}: {limits}")
    largest = max(plan.intensity for plan in fitting)
    close = [plan for plan in fitting if plan.intensity >= (1 - CLOSE) * largest]
    # What comes after the registers only makes the choice the same in every order of candidates.
    return min(
        close,
        key=lambda plan: (
            plan.block_tiles,
            plan.registers,
            -plan.intensity,
            plan.channel_count,
            plan.blocks_per_multiprocessor,
            plan.warp_pixels,
        ),
    )


def candidates(
    filters: int, channels: int, pixels: int, limits: DeviceLimits, options: BlockingOptions = AS_PUBLISHED
) -> Iterator[PointwisePlan]:
    """Yield every plan that fits the device; arguments as for `plan_pointwise`."""
    layout: Literal["L1", "L2"] = "L1" if filters >= options.filters_for_l1 else "L2"
    of_block = _up(filters, 2) if filters >= getattr(options, f"halved_from_{layout.lower()}") else filters
    threads, (down, across) = options.warps * LANES, options.arrangement
    warp_filters = _up(of_block, down)
    outputs = _up(filters * pixels, limits.multiprocessors)
    for blocks in BLOCKS_PER_MULTIPROCESSOR if options.blocks is None else (options.blocks,):
        share = _up(outputs, down * warp_filters * blocks)
        for count in CHANNEL_COUNTS if options.channel_count is None else (options.channel_count,):
            if count >= 2 * channels and options.channel_count is None:
                break
            groups = LANES // count
            for thread_filters, thread_pixels in _thread_tiles(layout, warp_filters, share, groups, across):
                warp_pixels = thread_pixels if layout == "L1" else thread_pixels * groups
                block_filters, block_pixels = down * warp_filters, across * warp_pixels
                fetched = _up(count * block_filters, threads) + _up(count * block_pixels, threads)
                tile = thread_filters * thread_pixels
                besides = REGISTERS_BESIDES + (0 if options.warps == AS_PUBLISHED.warps else _OF_OTHER_WARPS)
                registers = tile + thread_filters + thread_pixels + fetched + besides
                shared = (block_filters + block_pixels) * count * _VALUE_BYTES * 2
                fits = registers <= registers_for(limits, blocks, options)
                if not fits or shared > shared_for(limits, blocks, options):
                    continue
                yield PointwisePlan(
                    filters=filters,
                    channels=channels,
                    pixels=pixels,
                    layout=layout,
                    blocks_per_multiprocessor=blocks,
                    channel_count=count,
                    warp_filters=warp_filters,
                    warp_pixels=warp_pixels,
                    thread_filters=thread_filters,
                    thread_pixels=thread_pixels,
                    tiles_per_block=_up(share, block_pixels),
                    registers=registers,
                    shared_bytes=shared,
                    intensity=tile * _up(share, MAX_PIXELS) / fetched,
                    block_tiles=_up(_up(pixels, limits.multiprocessors), block_pixels)
                    * _up(filters, block_filters)
                    * limits.multiprocessors,
                    warps=options.arrangement,
                )


def _thread_tiles(layout: str, warp_filters: int, share: int, groups: int, across: int) -> Iterator[tuple[int, int]]:
    """Yield (filters, pixels) of thread tiles, from the square one, or the widest there is, down to one pixel."""
    if layout == "L1":
        filters = _up(warp_filters, groups)
        most = _up(min(share, MAX_PIXELS), across)
    else:
        filters = warp_filters
        most = _up(_up(min(share, MAX_PIXELS * groups), across), groups)
    for pixels in range(min(filters, most), 0, -1):
        yield filters, pixels


def _up(amount: int, part: int) -> int:
    """Divide, rounding up."""
    return -(-amount // part)
