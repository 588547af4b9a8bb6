"""How the frames of a stack are warped, by number: what moving a stack needs to know of a motion."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, array_namespace
from xcorr_app.registration.stack.passes import worker_count
from xcorr_app.registration.warping.displacement import warp_by_fields
from xcorr_app.registration.warping.warp import Mode, warp_frames


class Warp(Protocol):
    """Warps any frames of a stack."""

    def __call__(self, frames: Array, numbers: Sequence[int], order: int, mode: Mode) -> Array:
        """Return frames (n, Y, X), of those `numbers` in the stack, as the reference shows them."""


@dataclass(frozen=True)
class ByMatrices:
    """By matrices (T, 3, 3) from places of the reference to places of the frame."""

    matrices: NDArray[np.float64]

    def __call__(self, frames: Array, numbers: Sequence[int], order: int, mode: Mode) -> Array:
        """See `Warp`."""
        return warp_frames(frames, self.matrices[list(numbers)], order, mode)


@dataclass(frozen=True)
class ByFields:
    """By shifts (T, gy, gx, 2) at nodes, given by their rows and columns."""

    shifts: NDArray[np.float64]
    rows: NDArray[np.float64]
    columns: NDArray[np.float64]

    def __call__(self, frames: Array, numbers: Sequence[int], order: int, mode: Mode) -> Array:
        """See `Warp`."""
        return warp_by_fields(frames, self.shifts[list(numbers)], (self.rows, self.columns), order, mode)


def in_threads(warp: Callable[[slice], Array], stack: Array) -> Array:
    """What `warp` makes of the frames of a stack, which threads of the host share; a device has enough of its own."""
    if array_namespace(stack) is not np or worker_count() == 1:
        return warp(slice(None))
    result = np.empty_like(stack)

    def one(frame: int) -> None:
        part = slice(frame, frame + 1)
        result[part] = warp(part)

    with ThreadPoolExecutor(worker_count(), thread_name_prefix="warp") as pool:
        list(pool.map(one, range(len(stack))))
    return result
