"""Planes of a stack, one after the other, where they are worked on: in host memory, or on a device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from xcorr_app.io import HeldSource, Source
from xcorr_app.io.reading import is_plain
from xcorr_app.pipeline.resources import StackResources
from xcorr_app.registration.stack.frames import Chunk, Frames


@dataclass(frozen=True)
class HostPlanes:
    """Planes at these positions (t, z, c), as frames that can be brought to a device."""

    source: HeldSource
    positions: Sequence[dict[str, int]]

    @property
    def count(self) -> int:
        """Number of planes."""
        return len(self.positions)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.source.sizes["Y"], self.source.sizes["X"]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of a pixel."""
        return self.source.metadata.dtype

    @property
    def read_dtype(self) -> np.dtype[Any]:
        """Type of a pixel of what is read."""
        return self.dtype

    @property
    def is_plain(self) -> bool:
        """Whether who reads them side by side has to wait for each other."""
        return is_plain(self.source)

    def read(self, start: int, stop: int) -> Chunk:
        """Planes, not to be changed; those that cannot be read are zero and named with the reason."""
        planes, errors = self.source.planes(self.positions[start:stop])
        return Chunk(start, planes, {start + i: str(error) for i, error in errors.items()})

    def fill(self, start: int, stop: int, out: np.ndarray) -> dict[int, str]:
        """Read planes into a buffer; returns why some cannot be read, by number."""
        errors = self.source.fill(self.positions[start:stop], out)
        return {start + i: str(error) for i, error in errors.items()}

    def on_host(self) -> HostPlanes:
        """Return the same planes."""
        return self


@dataclass(frozen=True)
class BegunPlanes:
    """Planes of which reading has begun."""

    source: HeldSource
    host: HostPlanes
    there: Frames
    """The same, or on the way to the device."""

    def read(self, start: int, stop: int, xp: Any) -> Chunk:
        """Planes for an array module, not to be changed."""
        return (self.host if xp is np else self.there).read(start, stop)


def begin_planes(
    source: Source, positions: Sequence[dict[str, int]], xp: Any, resources: StackResources, *, ahead: bool = False
) -> BegunPlanes | None:
    """Begin to read planes that are needed once; with `ahead`, only where a device has room for all of them."""
    size = len(positions) * source.metadata.plane_bytes
    elsewhere = xp is not np and resources.fits_on_device(size)
    if ahead and not elsewhere:
        return None
    host = HostPlanes(resources.open(source, once=True, elsewhere=elsewhere), positions)
    return BegunPlanes(host.source, host, resources.on_device(host, xp))
