"""What a bank of filters is asked for, the parts it is computed in, and the launch that pads the images of a part."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from xcorr_app.errors import ArgumentError, ShapeError
from xcorr_app.gpu.im2win.problem import Im2winProblem
from xcorr_app.gpu.pointwise.problem import MAX_ELEMENTS
from xcorr_app.gpu.runtime.launch import Launch, ceil_div
from xcorr_app.gpu.runtime.types import INPUT_TYPES
from xcorr_app.gpu.stencil.problem import BOUNDARIES, boundary_macro

PADDED_BYTES = 2**30
"""Memory of the padded images of a part, in bytes."""
LARGEST_KEPT = 2**19
"""Elements of a bank that is kept on the device: 64 of them are to leave the memory to images."""

_THREADS, _VECTOR = 256, 4


@dataclass(frozen=True)
class BankPart:
    """Some images, or some rows of the results of one image.

    Attributes
    ----------
    first_image, images : int
        Which images.
    first_row, rows : int
        Which rows of their results.
    """

    first_image: int
    images: int
    first_row: int
    rows: int


@dataclass(frozen=True)
class BankProblem:
    """Sizes and boundary of a correlation of images with a bank of filters.

    Attributes
    ----------
    images, channels, height, width : int
        Shape of the images.
    filters, filter_height, filter_width : int
        Shape of the bank, whose filters have as many channels.
    boundary : str
        One of `xcorr_app.gpu.stencil.problem.BOUNDARIES`.
    stride : int
        Step between neighbouring results, in pixels, along both axes.
    """

    images: int
    channels: int
    height: int
    width: int
    filters: int
    filter_height: int
    filter_width: int
    boundary: str = "reflect"
    stride: int = 1

    def __post_init__(self) -> None:
        if self.boundary not in BOUNDARIES:
            raise ArgumentError(f"unknown boundary {self.boundary!r}; choose from {', '.join(BOUNDARIES)}")
        if self.stride < 1:
            raise ArgumentError(f"stride {self.stride}: give a step of at least one pixel")
        if min(self.images, self.channels, self.height, self.width, self.filters, *self.result_shape) < 1:
            raise ShapeError(f"images and filters need sizes of at least one, and filters that fit: {self}")
        if self.padded_elements(1) > MAX_ELEMENTS:
            raise ArgumentError(f"a row of the padded images has more than {MAX_ELEMENTS} elements: {self}")

    @property
    def first(self) -> tuple[int, int]:
        """Row and column of the filters' element that lies on the result's own pixel."""
        return (0, 0) if self.boundary == "valid" else (self.filter_height // 2, self.filter_width // 2)

    @property
    def result_shape(self) -> tuple[int, int]:
        """Rows and columns of a result."""
        height, width = self.height, self.width
        if self.boundary == "valid":
            height, width = height - self.filter_height + 1, width - self.filter_width + 1
        return ((height - 1) // self.stride + 1, (width - 1) // self.stride + 1)

    def padded_shape(self, rows: int) -> tuple[int, int, int]:
        """Shape of what `rows` rows of one image's results are computed from."""
        height, width = ((results - 1) * self.stride for results in (rows, self.result_shape[1]))
        return (self.channels, height + self.filter_height, width + self.filter_width)

    def padded_elements(self, rows: int) -> int:
        """Elements of `padded_shape`."""
        channels, height, width = self.padded_shape(rows)
        return channels * height * width

    def parts(self, elements: int) -> Iterator[BankPart]:
        """Cut the work so that no part's padded images are larger than a limit."""
        rows, columns = self.result_shape
        limit = min(elements, MAX_ELEMENTS)
        of_one = max(self.padded_elements(rows), rows * columns)
        if of_one <= limit:
            step = ceil_div(self.images, ceil_div(self.images, limit // of_one))
            for first in range(0, self.images, step):
                yield BankPart(first, min(step, self.images - first), 0, rows)
            return
        of_row = self.channels * self.padded_shape(1)[2]
        most = max(1, (limit // max(of_row, columns) - self.filter_height) // self.stride + 1)
        step = ceil_div(rows, ceil_div(rows, most))
        for image in range(self.images):
            for first in range(0, rows, step):
                yield BankPart(image, 1, first, min(step, rows - first))

    def convolution(self, part: BankPart) -> Im2winProblem:
        """Return the convolution without padding that a part is."""
        sizes = (self.filters, self.filter_height, self.filter_width)
        return Im2winProblem(part.images, *self.padded_shape(part.rows), *sizes, self.stride)


def pad_launch(problem: BankProblem, part: BankPart, *, image_type: str, outside: float = 0.0) -> Launch:
    """Return the launch that pads the images of a part and converts them to float32."""
    if image_type not in INPUT_TYPES:
        raise ArgumentError(f"banks read {', '.join(INPUT_TYPES)}, not {image_type}; convert the images first")
    defines: dict[str, str | int] = {
        "IMAGE_TYPE": INPUT_TYPES[image_type],
        "BOUNDARY": boundary_macro(problem.boundary),
        "VECTOR": _VECTOR,
        "THREADS": _THREADS,
    }
    (channels, rows, columns), (top, left) = problem.padded_shape(part.rows), problem.first
    planes = part.images * channels
    bits = int(np.float32(outside).view(np.int32))
    numbers = (planes, problem.height, problem.width, rows, columns, top - part.first_row * problem.stride, left, bits)
    blocks = ceil_div(planes * rows * columns, _VECTOR * _THREADS)
    return Launch("im2win/im2win_pad", defines, blocks, _THREADS, extra=numbers)
