"""What the family works on: stacks of frames, their types of pixel, and how many taps a method has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from xcorr_app.errors import ArgumentError, ShapeError
from xcorr_app.gpu.runtime.launch import WARP, ceil_div

PIXEL_TYPES = {
    "uint8": "unsigned char",
    "int8": "signed char",
    "uint16": "unsigned short",
    "int16": "short",
    "uint32": "unsigned int",
    "int32": "int",
    "float16": "Half",
    "float32": "float",
    "float64": "double",
}
"""NumPy name of every type of pixel, and its name in the kernels."""

COPIED = {1: "unsigned char", 2: "unsigned short", 4: "unsigned int", 8: "double"}
"""What pixels are copied as, by their bytes: bits, whatever they mean."""

TAPS = {"nearest": 1, "linear": 2, "cubic": 4, "lanczos": 8}
"""Taps of each method along an axis."""

_LARGEST_SIDE = 2**27
_ROWS = (64, 32, 16, 8)
_WAVES = 3
"""Times that the device's threads should at least be filled: a last wave that is part full costs little."""
_MAX_BLOCKS = 2**31 - 1


def sum_type(dtype: str) -> str:
    """Type that holds every value of a pixel exactly: float where that is enough."""
    return "double" if dtype in ("uint32", "int32", "float64") else "float"


def largest_piece(most: int, *sizes: int) -> int:
    """Return the largest power of two, up to `most`, that divides all sizes."""
    together = most
    for size in sizes:
        together |= size
    return together & -together


def address_of(array: Any) -> int:
    """Address of an array on the device."""
    return int(array.data.ptr)


def alignment_of(address: int) -> int:
    """Bytes, up to 16, that an address is a multiple of."""
    return largest_piece(16, address)


def pixel_bytes(value: float, dtype: np.dtype[Any]) -> bytes:
    """Bytes of a value as a pixel; what float16 or float32 cannot hold becomes infinite, as where arrays are filled."""
    with np.errstate(over="ignore"):
        return np.asarray(value).astype(dtype).tobytes()


def strips(count: int, across: int, height: int, at_once: int) -> tuple[int, int, int]:
    """Choose the rows of a thread, of which `across` lie beside each other in a frame; threads and blocks of a frame.

    Many rows, since the strips of neighbouring threads share some of what they read, where enough strips are left to
    fill a device that has so many threads `at_once`.
    """
    enough = (rows for rows in _ROWS if count * across * ceil_div(height, rows) >= _WAVES * at_once)
    rows = next(enough, _ROWS[-1])
    of_a_frame = across * ceil_div(height, rows)
    threads = min(128, ceil_div(of_a_frame, WARP) * WARP)
    blocks = ceil_div(of_a_frame, threads)
    if count * blocks > _MAX_BLOCKS or blocks * threads > _MAX_BLOCKS:
        raise ArgumentError(f"{count} frames of {height} rows are more than one launch can have")
    return rows, threads, blocks


def packed_sizes(outside: bytes, frame_shape: tuple[int, int], **sizes: int) -> npt.NDArray[Any]:
    """Pack the bytes of the pixel outside and sizes, in this order, as the kernels take them: a struct by value."""
    fields = [("outside", "u8"), *((name, "i4") for name in ("height", "width", *sizes))]
    return np.array((int.from_bytes(outside, "little"), *frame_shape, *sizes.values()), np.dtype(fields, align=True))


@dataclass(frozen=True)
class TranslationProblem:
    """A stack whose frames are moved, each by its own shift.

    Attributes
    ----------
    frame_shape : tuple of int
        (height, width) of a frame, in pixels.
    count : int
        Number of frames.
    dtype : str
        NumPy's name of the pixels' type.
    method : str
        One of `TAPS`.
    fills_outside : bool
        Whether what lies outside a frame is a value of its own; else the frame goes on with its edge.
    counts : bool
        Whether pixels that have to be clipped are counted.
    """

    frame_shape: tuple[int, int]
    count: int = 1
    dtype: str = "uint16"
    method: str = "linear"
    fills_outside: bool = True
    counts: bool = False

    def __post_init__(self) -> None:
        if min(*self.frame_shape, self.count) < 1 or max(self.frame_shape) >= _LARGEST_SIDE:
            raise ShapeError(f"frames need 1 to 2^27 - 1 pixels a side, and a stack one frame: {self}")
        if self.dtype not in PIXEL_TYPES:
            raise ArgumentError(f"pixels of {self.dtype} are not known; choose from {', '.join(PIXEL_TYPES)}")
        if self.method not in TAPS:
            raise ArgumentError(f"method {self.method!r} is not known; choose from {', '.join(TAPS)}")

    @property
    def itemsize(self) -> int:
        """Bytes of a pixel."""
        return np.dtype(self.dtype).itemsize

    @property
    def taps(self) -> int:
        """Taps along an axis."""
        return TAPS[self.method]

    @property
    def overshoots(self) -> bool:
        """Whether results can leave the range of integers: some weights are negative."""
        return self.taps > 2 and np.dtype(self.dtype).kind != "f"
