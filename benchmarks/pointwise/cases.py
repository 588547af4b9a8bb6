"""The cases of ``python -m benchmarks pointwise``: unmixing of large stacks, and the layers of networks.

Multiply-adds are channels times filters times pixels; bytes are those of stack, matrix and result, each once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from benchmarks.harness.case import Work
from benchmarks.pointwise.layers import LAYERS

Task = Literal["unmix", "layer"]

BATCHES = (1, 32, 128)
"""Images of a batch."""
_UNMIX_SIDE, _UNMIX_IMAGES = 2048, 16
_QUICK_EVERY = 4  # layers of which a quick run takes one


@dataclass(frozen=True, kw_only=True)
class PointwiseCase(Work):
    """One matrix over the channels of a stack of planes.

    Attributes
    ----------
    images, channels, filters, side : int
        The stack is (images, channels, side, side), the result has filters for channels.
    element, result : str
        NumPy names of the types of the stack and of the result.
    task : str
        One of `Task`.
    """

    images: int
    channels: int
    filters: int
    side: int
    element: str = "float32"
    result: str = "float32"
    task: Task = "layer"

    @property
    def pixels(self) -> int:
        """Of a plane."""
        return self.side * self.side

    @property
    def fma(self) -> float:
        """Multiply-adds of all images."""
        return float(self.images * self.pixels * self.channels * self.filters)

    @property
    def moved_bytes(self) -> float:
        """Bytes of stack, matrix and result, each once."""
        stack = self.channels * np.dtype(self.element).itemsize
        result = self.filters * np.dtype(self.result).itemsize
        return float(self.images * self.pixels * (stack + result) + 4 * self.channels * self.filters)


def _unmixing(channels: int, element: str, result: str) -> PointwiseCase:
    types = element if element == result else f"{element} to {result}"
    return PointwiseCase(
        name=f"unmix {channels} -> {channels}, 16 x 2048^2 {types}",
        images=_UNMIX_IMAGES,
        channels=channels,
        filters=channels,
        side=_UNMIX_SIDE,
        element=element,
        result=result,
        task="unmix",
        in_quick=channels in (3, 8) and element == result,
    )


def _layers(batch: int) -> list[PointwiseCase]:
    return [
        PointwiseCase(
            name=f"batch {batch}: {channels} -> {filters}, {side}^2",
            group=f"pointwise layers, batch {batch}",
            images=batch,
            channels=channels,
            filters=filters,
            side=side,
            in_quick=number % _QUICK_EVERY == 0,
        )
        for number, (channels, filters, side) in enumerate(LAYERS)
    ]


CASES: tuple[PointwiseCase, ...] = (
    *(_unmixing(channels, "float32", "float32") for channels in (2, 3, 4, 8, 16, 32)),
    *(_unmixing(channels, "uint16", "uint16") for channels in (2, 3, 4, 8, 16, 32)),
    *(_unmixing(channels, "uint16", "float32") for channels in (4, 8)),
    *(case for batch in BATCHES for case in _layers(batch)),
)
"""Every case, in the order in which they are run."""
