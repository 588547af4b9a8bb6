"""What a launch is: a kernel, how it is compiled and started."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

WARP = 32

Types = Mapping[str, str | int]
"""Macros of the element types."""


def ceil_div(a: int, b: int) -> int:
    """Return a / b, rounded up."""
    return -(-a // b)


def busy_segments(parts: int, slots: int, most: int) -> int:
    """Into how many segments each part is cut so that `slots` blocks at a time are busy to the end.

    The smallest number if several, at most `most` or 64.
    """
    if parts >= 8 * slots:
        return 1

    def cost(segments: int) -> float:
        share = parts * segments / slots
        return math.ceil(share) / share * (1 + 0.01 * segments)

    return min(range(1, max(1, min(most, 64)) + 1), key=cost)


@dataclass(frozen=True)
class Launch:
    """How one kernel is compiled and started for one problem.

    Attributes
    ----------
    kernel : str
        Path below the kernels' root without its ending.
    defines : mapping
        Macros to compile it with.
    blocks, threads, shared_bytes : int
        Grid (one axis), block (one axis) and dynamic shared memory in bytes.
    extra : tuple of int
        Kernel arguments that follow the problem's.
    segments : int
        Planes that a launch leaves in a workspace where more than one, to be added up in a second step.
    zero_first : bool
        The kernel adds into the plane, or leaves shifts without overlap alone: it must be zero before.
    block_y : int
        Shifts dy a block computes; the sum over segments needs it.
    then : Launch or None
        A second launch on the same arrays.
    """

    kernel: str
    defines: Mapping[str, str | int]
    blocks: int
    threads: int
    shared_bytes: int = 0
    extra: tuple[int, ...] = ()
    segments: int = 1
    zero_first: bool = False
    block_y: int = 1
    then: Launch | None = None

    def __hash__(self) -> int:
        return hash((self.kernel, self.blocks, self.threads, self.extra))  # equal launches agree in these

    @property
    def entry(self) -> str:
        """Name of the kernel."""
        return self.kernel.rsplit("/", 1)[-1]
