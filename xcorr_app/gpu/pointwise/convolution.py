"""Sizes of a convolution without padding, of which a pointwise one is that of single elements."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Convolution:
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
    """

    images: int
    channels: int
    height: int
    width: int
    filters: int
    filter_height: int
    filter_width: int
    stride: int = 1

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
