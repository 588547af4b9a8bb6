"""The published Im2win convolution: its tiles and the steps of its optimisation as options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.im2win.tiles import TILE_DEPTHS, Tile

_LANES, _ROWS, _COLUMNS = 4, 32, 64
"""Lanes of a warp along the filters, and what such a warp covers with 8 x 8 sums a thread."""
_ONE_SUM = {"MICRO_M": 1, "MICRO_N": 1, "VECTOR": 1, "LANES_M": 4, "WARPS_M": 8, "WARPS_N": 4, "MIN_BLOCKS": 1}
_SIZES: Mapping[str, tuple[int, ...]] = {
    "tile_filters": (32, 64, 96, 128),
    "tile_columns": (64, 128, 256),
    "tile_depth": TILE_DEPTHS,
}


@dataclass(frozen=True)
class Im2winOptions:
    """The published Im2win convolution, every step of which can be left out; all of them are taken by default.

    All options give the same bits, unless the depth of a tile changes among how many blocks the products of a result
    are divided.

    Parameters
    ----------
    window_tensor : bool
        The window tensor is made first, as published; otherwise its elements are taken from the images (kernel
        ``"implicit"``).
    micro_kernel : bool
        A thread sums 8 x 8 results in registers; otherwise one, in tiles of 32 x 32.
    vector_loads : bool
        16 bytes of shared memory at a time, which need the micro-kernel; otherwise 4.
    double_buffer : bool
        Two tiles in shared memory, of which one is filled while the other is multiplied; otherwise one.
    prefetch : bool
        The next tile is asked for before the present one is multiplied, which needs the double buffer.
    prefetch_registers : bool
        So are the next elements of a tile.
    tile_filters, tile_columns : {32, 64, 96, 128}, {64, 128, 256}, optional
        The document's M_B and N_B: filters and columns (output pixels of all images) of a block; where one is given,
        the other is 128. By default a model of the time chooses both.
    tile_depth : {8, 9, 10, 12, 15, 16}, optional
        Its K_B: products of a result in a tile, chosen to waste few by default.

    Raises
    ------
    ArgumentError
        For a value that there is not, and for a tile's size without the micro-kernel.

    Examples
    --------
    >>> Im2winOptions(prefetch=False, tile_depth=8).tuning()
    {'PREFETCH': 0, 'TILE_K': 8}
    """

    window_tensor: bool = True
    micro_kernel: bool = True
    vector_loads: bool = True
    double_buffer: bool = True
    prefetch: bool = True
    prefetch_registers: bool = True
    tile_filters: int | None = None
    tile_columns: int | None = None
    tile_depth: int | None = None

    def __post_init__(self) -> None:
        for name, known in _SIZES.items():
            value = getattr(self, name)
            whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool) and value in known
            if value is not None and not whole:
                raise ArgumentError(f"{name} is {value!r}: kernel 'im2win' takes {', '.join(map(str, known))}")
        if not self.micro_kernel and (self.tile_filters or self.tile_columns):
            raise ArgumentError("without the micro-kernel a block's tile is 32 x 32: leave out its size")

    @property
    def kernel(self) -> str:
        """Name in the table of kernels."""
        return "im2win" if self.window_tensor else "implicit"

    def tuning(self) -> dict[str, int]:
        """Macros that replace those of the launch."""
        changed: dict[str, int] = {}
        if self.tile_filters or self.tile_columns:
            warps = (self.tile_filters or 128) // _ROWS, (self.tile_columns or 128) // _COLUMNS
            changed |= Tile(_LANES, *warps).defines()
        if not self.micro_kernel:
            changed |= _ONE_SUM
        elif not self.vector_loads:
            changed["VECTOR"] = 1
        if not self.double_buffer:
            changed["BUFFERS"] = 1
        if not (self.prefetch and self.double_buffer):
            changed["PREFETCH"] = 0
        if not self.prefetch_registers:
            changed["FRAGMENTS"] = 1
        return changed | ({} if self.tile_depth is None else {"TILE_K": int(self.tile_depth)})


def kernel_and_macros(asked: str | Im2winOptions) -> tuple[str, dict[str, int]]:
    """Name of a kernel that was asked for, alone or by its options, and the macros that these set."""
    return (asked, {}) if isinstance(asked, str) else (asked.kernel, asked.tuning())


_PLAIN = {"double_buffer": False, "prefetch_registers": False}
STEPS: Mapping[str, Im2winOptions] = {
    "tiles in shared memory": Im2winOptions(micro_kernel=False, **_PLAIN),
    "+ micro-kernel": Im2winOptions(vector_loads=False, **_PLAIN),
    "+ vector loads": Im2winOptions(**_PLAIN),
    "+ double buffer": Im2winOptions(prefetch=False, prefetch_registers=False),
    "+ prefetch": Im2winOptions(),
}
"""From the basic form to the full kernel, one step more each time."""

ABLATION: Mapping[str, Im2winOptions] = {
    "no micro-kernel": Im2winOptions(micro_kernel=False),
    "no vector loads": Im2winOptions(vector_loads=False),
    "no double buffer": Im2winOptions(double_buffer=False),
    "no prefetch to shared memory": Im2winOptions(prefetch=False),
    "no prefetch to registers": Im2winOptions(prefetch_registers=False),
}
"""One step left out at a time."""
