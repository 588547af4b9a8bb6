"""What an Im2win convolution is asked for; the Python side of ``kernels/im2win/im2win.cuh``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass, replace

from xcorr_app.errors import ArgumentError, ShapeError
from xcorr_app.gpu.pointwise.problem import MAX_ELEMENTS
from xcorr_app.gpu.runtime.arrays import Array, array_namespace

__all__ = ["LAYERS", "MAX_ELEMENTS", "MAX_TILE_DEPTH", "WHY_NOT", "Im2winProblem", "stored_filters"]


MAX_TILE_DEPTH = 32
"""Most elements of K in a tile: the filters end with as many rows of zeros."""


@dataclass(frozen=True)
class Im2winProblem:
    """Sizes of a batch of images and a bank of filters that have as many channels (no flip, no padding).

    ``output[i, j, m, n] = sum over r, u, v of image[i, r, m * stride + u, n * stride + v] * filter[j, r, u, v]``.

    Attributes
    ----------
    images, channels, height, width : int
        Shape of the images.
    filters, filter_height, filter_width : int
        Number and size of the filters.
    stride : int
        Step between neighbouring outputs, in pixels, along both axes.

    Raises
    ------
    ShapeError, ArgumentError
        No launch can address it.
    """

    images: int
    channels: int
    height: int
    width: int
    filters: int
    filter_height: int
    filter_width: int
    stride: int = 1

    def __post_init__(self) -> None:
        if min(astuple(self)) < 1:
            raise ShapeError(f"images, filters and stride need sizes of at least one: {self}")
        if self.filter_height > self.height or self.filter_width > self.width:
            raise ShapeError(
                f"filters of {self.filter_height} x {self.filter_width} do not fit into images of "
                f"{self.height} x {self.width}: pad the images, or take smaller filters"
            )
        stored, padded_depth = self.stored_shape[1], self.stored_shape[0]
        if max(self.channels * self.height * self.width, stored * padded_depth, self.stride) > MAX_ELEMENTS:
            raise ArgumentError(
                f"one image or the filters have more than {MAX_ELEMENTS} elements: "
                f"cut the images or the bank into parts ({self})"
            )

    @property
    def out_height(self) -> int:
        """Rows of an output plane."""
        return (self.height - self.filter_height) // self.stride + 1

    @property
    def out_width(self) -> int:
        """Columns of an output plane."""
        return (self.width - self.filter_width) // self.stride + 1

    @property
    def out_shape(self) -> tuple[int, int, int, int]:
        """Shape of the output: images, filters, rows, columns."""
        return (self.images, self.filters, self.out_height, self.out_width)

    @property
    def columns(self) -> int:
        """Columns of the matrix product: output elements of one filter over all images."""
        return self.images * self.out_height * self.out_width

    @property
    def depth(self) -> int:
        """Products in an output element."""
        return self.channels * self.filter_height * self.filter_width

    @property
    def products(self) -> int:
        """Multiply-adds of the whole convolution."""
        return self.filters * self.columns * self.depth

    @property
    def stored_shape(self) -> tuple[int, int]:
        """Shape of the filters as kernels read them: elements and zeros that a tile may reach, filters and zeros."""
        return (self.depth + MAX_TILE_DEPTH, -(-self.filters // 4) * 4)

    @property
    def window_shape(self) -> tuple[int, int, int, int]:
        """Shape of the window tensor: images, channels, output rows, elements of a row."""
        return (self.images, self.channels, self.out_height, self.width * self.filter_height)

    @property
    def window_elements(self) -> int:
        """Elements of the window tensor."""
        images, channels, rows, row = self.window_shape
        return images * channels * rows * row

    def arguments(self, plane_pitch: int | None = None) -> tuple[int, ...]:
        """Return what the kernels take after their arrays."""
        sizes = (self.images, self.channels, self.height, self.width)
        pitch = self.out_height * self.out_width if plane_pitch is None else plane_pitch
        return (*sizes, self.filters, self.out_height, self.out_width, self.stride, pitch)

    def with_images(self, images: int) -> Im2winProblem:
        """Return the same problem for another number of images."""
        return replace(self, images=images)

    def images_per_part(self, window_bytes: int) -> int:
        """How many images to take at a time so that their window tensor takes so many bytes, as far as one does."""
        of_one = self.window_elements // self.images
        parts = -(-self.images // max(1, min(window_bytes // 4, MAX_ELEMENTS) // of_one))
        return -(-self.images // parts)


def stored_filters(filters: Array) -> Array:
    """Return filters as the kernels read them."""
    count, channels, height, width = filters.shape
    problem = Im2winProblem(1, channels, height, width, count, height, width)
    stored = array_namespace(filters).zeros(problem.stored_shape, "float32")
    stored[: problem.depth, :count] = filters.transpose(1, 3, 2, 0).reshape(problem.depth, count)
    return stored


def _why_no_window(problem: Im2winProblem) -> str | None:
    if problem.window_elements // problem.images > MAX_ELEMENTS:
        return f"one image's window tensor has more than {MAX_ELEMENTS} elements"
    return None


WHY_NOT: Mapping[str, Callable[[Im2winProblem], str | None]] = {
    "im2win": _why_no_window,
    "im2win-basic": _why_no_window,
    "implicit-basic": lambda _: None,
    "implicit": lambda _: None,
}
"""Every kernel by the name under which a user asks for it: why it does not take a problem; None where it does."""


def _square(channels: int, size: int, filters: int, filter_size: int, stride: int) -> Im2winProblem:
    return Im2winProblem(128, channels, size, size, filters, filter_size, filter_size, stride)


LAYERS = {
    1: _square(3, 227, 96, 11, 4),
    2: _square(3, 231, 96, 11, 4),
    3: _square(3, 227, 64, 7, 2),
    4: _square(64, 224, 64, 7, 2),
    5: _square(96, 24, 256, 5, 1),
    6: _square(256, 12, 512, 3, 1),
    7: _square(3, 224, 64, 3, 1),
    8: _square(64, 112, 128, 3, 1),
    9: _square(64, 56, 64, 3, 1),
    10: _square(128, 28, 128, 3, 1),
    11: _square(256, 14, 256, 3, 1),
    12: _square(512, 7, 512, 3, 1),
}
"""The twelve layers that Im2win is measured on, by the number that the document gives them (batch 128)."""
