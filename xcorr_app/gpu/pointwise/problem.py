"""What a pointwise convolution is asked for: a matrix times the channel vector of every pixel of a stack."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from xcorr_app.errors import ArgumentError, DataTypeError, ShapeError
from xcorr_app.gpu.runtime.types import INPUT_TYPES

MAX_CHANNELS = 4096
MAX_ELEMENTS = 2**31 - 2**17
"""Of a stack, a result or all filters in one launch, whose offsets are 32 bits wide; the last blocks reach beyond."""
LARGEST_KEPT = 2**13
"""Elements of a matrix that is kept on the device: to look up larger ones takes as long as to bring them there."""
POINTWISE_TYPES = INPUT_TYPES
"""NumPy name of every type that stacks and results may have, and its name in CUDA C++."""


@dataclass(frozen=True)
class PointwiseProblem:
    """Sizes and types of one product; the stack is dense, ``[outer][channels][inner]``.

    Attributes
    ----------
    outer : int
        Elements of the axes before the channels' together: images, or pixels where the channels are interleaved.
    channels, filters : int
        Channels of the stack and of the result, 1 to 4096.
    inner : int
        Pixels of a plane; 1 where the channels are interleaved.
    image_type, result_type : str
        NumPy names, of `POINTWISE_TYPES`.
    density : bool
        The optical density is mixed, not the value.
    clip : bool
        Negative results become zero.
    count : bool
        Values beyond the range of an integer result are counted.
    """

    outer: int
    channels: int
    filters: int
    inner: int
    image_type: str = "float32"
    result_type: str = "float32"
    density: bool = False
    clip: bool = False
    count: bool = False

    def __post_init__(self) -> None:
        if not (1 <= self.channels <= MAX_CHANNELS and 1 <= self.filters <= MAX_CHANNELS):
            raise ArgumentError(f"1 to {MAX_CHANNELS} channels are mixed, not {self.channels} into {self.filters}")
        if min(self.outer, self.inner) < 1:
            raise ShapeError(f"there is no pixel to mix: {self}")
        for name in (self.image_type, self.result_type):
            if name not in POINTWISE_TYPES:
                raise DataTypeError(f"channels are read and written as {', '.join(POINTWISE_TYPES)}, not {name}")

    @property
    def interleaved(self) -> bool:
        """Whether the channels of a pixel lie side by side."""
        return self.inner == 1 and self.outer > 1

    @property
    def pixels(self) -> int:
        """Of all images together."""
        return self.outer * self.inner

    @property
    def image_bytes(self) -> int:
        """Bytes of one element of the stack."""
        return np.dtype(self.image_type).itemsize

    @property
    def result_bytes(self) -> int:
        """Bytes of one element of the result."""
        return np.dtype(self.result_type).itemsize

    def macros(self) -> dict[str, str | int]:
        """Types of the elements and what is done to them, as the kernels that mix take them."""
        return {
            "IMAGE_TYPE": POINTWISE_TYPES[self.image_type],
            "RESULT_TYPE": POINTWISE_TYPES[self.result_type],
            "DENSITY": int(self.density),
            "CLIP": int(self.clip),
            "COUNT_CLIPPED": int(self.count and self.result_type != "float32"),
        }

    def in_parts_of(self, most: int) -> Iterator[tuple[int, PointwiseProblem]]:
        """Cut the stack along its outer axis."""
        for start in range(0, self.outer, most):
            yield start, replace(self, outer=min(most, self.outer - start))
