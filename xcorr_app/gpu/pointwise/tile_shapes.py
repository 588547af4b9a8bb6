"""Shapes of the blocks of the tiled pointwise product, by multiply-adds and on tensor cores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from xcorr_app.gpu.runtime.launch import WARP

__all__ = ["MAX_DEPTH", "TILES", "ProductTile"]

MAX_DEPTH = 128
"""Channels of a tile; the stored matrix ends with as many rows of zeros."""

_GROUP_DEPTHS = (4, 8, 12, 16)  # channels of a tile for each group of warps
_SPLIT_DEPTHS = (16, 32)  # the same on tensor cores
_MAX_RESIDENT, _MAX_RESIDENT_THREADS = 16, 1024  # blocks and threads, on any architecture
_MAX_COPIES = 8  # of 16 bytes that a thread makes for a tile
_MAX_OFFSETS = 4  # of pixels that a thread copies where channels are interleaved, for its registers
_LANES_OF_PIXEL = 8  # that copy neighbouring channels there


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
    split : bool
        Multiplies on tensor cores, three products in TF32 for one.
    """

    lanes_m: int
    warps_m: int
    warps_n: int
    warps_k: int = 1
    micro_m: int = 8
    micro_n: int = 8
    split: bool = False

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
        if self.split:  # sums of a tile beside those of all
            registers = 128 if self.sums <= 32 else 160 if self.sums <= 40 else 216
        else:
            registers = 64 if self.sums <= 16 else 96 if self.sums <= 32 else 128 if self.sums <= 64 else 255
        return max(1, min(_MAX_RESIDENT, min(65536 // registers, _MAX_RESIDENT_THREADS) // self.threads))

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
        if interleaved and (self.split or self.columns > self.threads // _LANES_OF_PIXEL * _MAX_OFFSETS):
            return []
        groups = _SPLIT_DEPTHS if self.split else _GROUP_DEPTHS[: 2 if interleaved else None]
        depths = [group * self.warps_k for group in groups if group * self.warps_k <= MAX_DEPTH]
        return [depth for depth in depths if depth * self.columns <= 4 * _MAX_COPIES * self.threads]

    def defines(self) -> dict[str, int]:
        """Return the kernel's macros."""
        shape = {"LANES_M": self.lanes_m, "WARPS_M": self.warps_m, "WARPS_N": self.warps_n, "WARPS_K": self.warps_k}
        shape |= {"MICRO_M": self.micro_m, "MICRO_N": self.micro_n, "SPLIT": int(self.split)}
        return {**shape, "MIN_BLOCKS": self.resident_blocks}

    @classmethod
    def of(cls, macros: Mapping[str, int]) -> ProductTile:
        """Return the shape that a kernel's macros give."""
        warps = (macros["WARPS_M"], macros["WARPS_N"], macros["WARPS_K"])
        return cls(macros["LANES_M"], *warps, macros["MICRO_M"], macros["MICRO_N"], macros["SPLIT"] == 1)

    def takes(self, plane: int) -> bool:
        """Whether there is a place for whole planes of so many pixels; where 0, for vectors of pixels."""
        return self.columns >= plane if plane else self.micro_n % (8 if self.split else 4) == 0


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


def _split_tiles() -> Iterator[ProductTile]:
    """Yield shapes for tensor cores, each the fastest for some layer; groups of warps are for few pixels."""
    for warps_m, warps_n in ((1, 2), (1, 4), (1, 8), (2, 2), (2, 4), (3, 2)):
        yield ProductTile(8, warps_m, warps_n, 1, 4, 8, split=True)  # 32 x 64, 32 x 128, 32 x 256, 64 x 64 ...
    yield ProductTile(8, 1, 4, 1, 8, 8, split=True)  # 64 x 128: fewer values are split for a product
    yield ProductTile(8, 2, 2, 1, 4, 16, split=True)  # the same
    for warps_m, warps_n in ((4, 1), (2, 2)):
        yield ProductTile(8, warps_m, warps_n, 1, 4, 14, split=True)  # 128 x 49 and 64 x 98, whole planes
    for warps_k in (2, 4):
        yield ProductTile(8, 1, 2, warps_k, 4, 8, split=True)  # 32 x 64
        yield ProductTile(8, 1, 1, warps_k, 4, 14, split=True)  # 32 x 49
    yield ProductTile(8, 1, 1, 4, 4, 8, split=True)  # 32 x 32
    yield ProductTile(8, 2, 2, 2, 4, 8, split=True)  # 64 x 64


TILES = (*_tiles(), *_split_tiles())
"""What `choose_tile` chooses from; the first of equals."""
