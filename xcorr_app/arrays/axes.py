"""Named axes: which axis is time, depth, channel, row and column.

As in the commands, frames are those along T, or along Z where there is but one time; planes along the other of the two
are averaged for measuring, and all planes of a frame are moved alike.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from xcorr_app.arrays.kinds import is_stack, is_xarray, opened
from xcorr_app.errors import ArgumentError, ShapeError
from xcorr_app.gpu.runtime.arrays import Array

_LETTERS = {
    "T": ("t", "time", "times", "frame", "frames"),
    "Z": ("z", "depth", "plane", "slice"),
    "C": ("c", "channel", "channels", "band"),
    "Y": ("y", "row", "rows", "lat", "latitude"),
    "X": ("x", "col", "cols", "column", "columns", "lon", "longitude"),
}
_OF_NAME = {name: letter for letter, names in _LETTERS.items() for name in names}


@dataclass(frozen=True)
class Axes:
    """Axes of one array, such as ``TCYX``."""

    names: str
    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        names = self.names
        if not isinstance(names, str) or len(set(names)) != len(names) or not {"Y", "X"} <= set(names) <= set("TZCYX"):
            raise ArgumentError(f"axes is {names!r}: give each axis a letter of T, Z, C, Y, X, such as 'TCYX'")
        if len(names) != len(self.shape):
            raise ShapeError(f"axes {names!r} are {len(names)}, the array has {len(self.shape)}: {self.shape}")

    @property
    def along(self) -> str:
        """Axis of the frames; empty where there is one frame."""
        if "Z" in self.names and self._size("T") == 1 and self._size("Z") > 1:
            return "Z"
        return "T" if "T" in self.names else "Z" if "Z" in self.names else ""

    @property
    def order(self) -> tuple[int, ...]:
        """Axes in the order frame, others, row, column, of the axes there are."""
        first = self.along
        others = [name for name in self.names if name not in {*first, "Y", "X"}]
        return tuple(self.names.index(name) for name in [*first, *others, "Y", "X"])

    def _size(self, name: str) -> int:
        return self.shape[self.names.index(name)] if name in self.names else 1

    def measured(self, stack: Array, channel: int) -> Array:
        """Frames (T, Y, X) of one channel; a view, unless planes along another axis are averaged (float64)."""
        channels = self._size("C")
        if not 0 <= channel < channels:
            raise ArgumentError(f"channel {channel} does not exist: there are {channels}, counted from 0")
        picked = tuple(channel if name == "C" else slice(None) for name in self.names)
        stack, left = stack[picked], self.names.replace("C", "")
        across = {"T": "Z", "Z": "T"}.get(self.along, "")
        if across and across in left:
            at = left.index(across)
            single = self._size(across) == 1
            stack = stack[(slice(None),) * at + (0,)] if single else stack.mean(axis=at, dtype=np.float64)
            left = left.replace(across, "")
        stack = stack.transpose([left.index(name) for name in [*self.along, "Y", "X"]])
        return stack if self.along else stack[None]


def named_axes(stack: Any, axes: str | None) -> tuple[Any, str | None]:
    """Return the array and the letters of its axes: given, of a `Stack`, a file, or an xarray's dimensions; else None.

    Raises
    ------
    ArgumentError
        An xarray of more than three dimensions has one whose name says nothing.
    """
    stack = opened(stack)
    if is_stack(stack):
        return stack.data, axes or stack.metadata.axes
    if not is_xarray(stack):
        return stack, axes
    if axes is None:
        letters = [_OF_NAME.get(str(name).lower()) for name in stack.dims]
        if all(letters):
            axes = "".join(letter or "" for letter in letters)
        elif len(letters) > 3 or any(letters):
            raise ArgumentError(
                f"dimensions {', '.join(map(str, stack.dims))}: not all say what they are; give axes, such as 'TCYX'"
            )
    return stack.data, axes
