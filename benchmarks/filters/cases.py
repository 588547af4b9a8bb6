"""The cases of ``python -m benchmarks filter``.

A dense filter takes one multiply-add for every tap and pixel. A Gaussian's floor is the copy alone: methods exist whose
arithmetic does not grow with sigma. Bytes are those of images and results, each once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from benchmarks.harness.case import Work

Task = Literal["dense", "gaussian"]
"""``dense``: taps of full rank; ``gaussian``."""

WIDTHS = range(1, 64)
"""Square filters of every width that the kernels compute: none may stand out."""
_WIDTH_GROUP = "every width from 1 to 63, 16 x 1024^2 float32"
_STACK, _SIDE = 64, 1024


@dataclass(frozen=True, kw_only=True)
class FilterCase(Work):
    """One filter over a stack of images.

    Attributes
    ----------
    images, height, width : int
        Of the stack.
    rows, columns : int
        Of the taps; 0 for a Gaussian.
    sigma : float
        Of a Gaussian, in pixels along both axes; 0 for dense taps.
    element : str
        NumPy name of the type of images and results.
    boundary : str
        What lies outside an image: ``mirror``, which PyTorch pads with too (and calls reflect), or ``constant``, zeros,
        which cuDNN needs no padded copy for.
    task : str
        One of `Task`.
    """

    images: int = _STACK
    height: int = _SIDE
    width: int = _SIDE
    rows: int = 0
    columns: int = 0
    sigma: float = 0.0
    element: str = "float32"
    boundary: str = "mirror"
    task: Task = "dense"

    @property
    def fma(self) -> float:
        """Multiply-adds of a dense filter; none of a Gaussian."""
        return float(self.images * self.height * self.width * self.rows * self.columns)

    @property
    def moved_bytes(self) -> float:
        """Bytes of images and results, each once."""
        return 2.0 * self.images * self.height * self.width * np.dtype(self.element).itemsize


def _stacks(sides: tuple[int, ...], quick: tuple[int, ...], element: str = "float32") -> list[FilterCase]:
    return [
        FilterCase(
            name=f"64 x 1024^2 {element} {side}x{side}",
            rows=side,
            columns=side,
            element=element,
            in_quick=side in quick,
        )
        for side in sides
    ]


def _zero_outside() -> list[FilterCase]:
    return [
        FilterCase(
            name=f"64 x 1024^2 float32 {side}x{side}, zeros outside",
            rows=side,
            columns=side,
            boundary="constant",
        )
        for side in (3, 5, 7)
    ]


def _gaussians() -> list[FilterCase]:
    return [
        FilterCase(
            name=f"64 x 1024^2 {element} gaussian sigma {sigma}",
            sigma=sigma,
            element=element,
            task="gaussian",
            in_quick=element == "float32" and sigma in (2, 64),
        )
        for element in ("float32", "uint16")
        for sigma in (1, 2, 4, 8, 64, 250)
    ]


def _single_images() -> list[FilterCase]:
    return [
        FilterCase(
            name=f"one image 4096^2 float32 {side}x{side}",
            images=1,
            height=4096,
            width=4096,
            rows=side,
            columns=side,
            in_quick=side in (3, 31),
        )
        for side in (3, 7, 15, 31)
    ]


def _widths() -> list[FilterCase]:
    return [
        FilterCase(
            name=f"width {side:02d}",
            group=_WIDTH_GROUP,
            images=16,
            rows=side,
            columns=side,
            in_quick=side in (1, 2, 3, 8, 9, 17, 25, 33, 48, 63),
        )
        for side in WIDTHS
    ]


CASES: tuple[FilterCase, ...] = (
    *_stacks((3, 5, 7, 9, 11, 15, 21, 31), quick=(3, 7, 15)),
    *_zero_outside(),
    *_stacks((3, 5, 7, 9, 15, 31), quick=(3,), element="uint16"),
    *_gaussians(),
    *_single_images(),
    *_widths(),
)
"""Every case, in the order in which they are run."""
