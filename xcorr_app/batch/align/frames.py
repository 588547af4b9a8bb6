"""A source of planes seen as the frames that are measured, and as the planes that are moved."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from xcorr_app.errors import InputError
from xcorr_app.io import Source
from xcorr_app.registration.frames import Chunk


@dataclass(frozen=True)
class SourceFrames:
    """Frames of one channel along one axis; planes along the other axis are averaged for measuring.

    With CuPy as `xp`, frames are handed out as device arrays. Raises InputError where there is no such channel.
    """

    source: Source
    axis: Literal["T", "Z"]
    channel: int
    xp: Any

    def __post_init__(self) -> None:
        channels = self.source.sizes["C"]
        if self.channel >= channels:
            raise InputError(f"{self.source.paths[0]}: has {channels} channel(s): --align-channel counts from 0")

    @property
    def count(self) -> int:
        """Number of frames."""
        return self.source.sizes[self.axis]

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.source.sizes["Y"], self.source.sizes["X"]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of a pixel as stored."""
        return self.source.metadata.dtype

    @property
    def averaged(self) -> int:
        """How many planes are averaged into one measured frame."""
        return self.source.sizes["Z" if self.axis == "T" else "T"]

    def read(self, start: int, stop: int) -> Chunk:
        """Read frames; one that cannot be read is zero and named with the reason."""
        dtype = self.dtype if self.averaged == 1 else np.dtype(np.float64)
        frames = np.zeros((stop - start, *self.shape), dtype=dtype)
        unreadable = {}
        for i in range(start, stop):
            try:
                frames[i - start] = self._frame(i)
            except InputError as error:
                unreadable[i] = str(error)
        return Chunk(start, self.xp.asarray(frames), unreadable)

    def on_host(self) -> SourceFrames:
        """Return the same frames, handed out as NumPy arrays."""
        return replace(self, xp=np)

    def origin(self, frame: int) -> tuple[str, int]:
        """Name of the file and page in it that a frame comes from (the first of the planes averaged)."""
        path, page = self.source.origin(**self._position(frame, 0))
        return path.name, page

    def _frame(self, frame: int) -> np.ndarray:
        if self.averaged == 1:
            return self.source.plane(**self._position(frame, 0))
        total = np.zeros(self.shape)
        for other in range(self.averaged):
            total += self.source.plane(**self._position(frame, other))
        return total / self.averaged

    def _position(self, frame: int, other: int) -> dict[str, int]:
        along, across = ("t", "z") if self.axis == "T" else ("z", "t")
        return {along: frame, across: other, "c": self.channel}


def choose_axis(source: Source, wanted: Literal["T", "Z"] | None) -> Literal["T", "Z"]:
    """Axis to align along: the one asked for, else T, else Z where there is no T."""
    sizes = source.sizes
    if wanted is not None:
        other: Literal["T", "Z"] = "Z" if wanted == "T" else "T"
        if sizes[wanted] == 1 and sizes[other] > 1:
            raise InputError(
                f"{source.paths[0]}: has one plane along {wanted} and {sizes[other]} along {other}; "
                f"leave --axis out or use --axis {other}"
            )
        return wanted
    return "Z" if sizes["T"] == 1 and sizes["Z"] > 1 else "T"
