"""Files with channels for mixing: stacks with an axis of channels, and colour images, whose channels are R, G and B."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from xcorr_app.errors import InputError
from xcorr_app.io.finding.scan import scan_file
from xcorr_app.io.series import SeriesSpec
from xcorr_app.io.source import ImageFile, Source, StackMetadata

if TYPE_CHECKING:
    from pathlib import Path

    from xcorr_app.io.limits import Limits


@dataclass(frozen=True)
class ChannelSource:
    """A stack, and the axis (T, Z or C) that holds its channels."""

    source: Source
    axis: str
    colour: bool
    """Whether its planes are colour images, which are read whole: red, green and blue at once."""

    @property
    def path(self) -> Path:
        """The file, or the first of them."""
        return self.source.paths[0]

    @property
    def metadata(self) -> StackMetadata:
        """Axes, type and calibration; colour images have an axis C of size three."""
        return self.source.metadata

    @property
    def channels(self) -> int:
        """Number of channels."""
        return self.metadata.sizes[self.axis]

    def read(self, at: dict[str, int]) -> np.ndarray:
        """Read all channels at one place of the other axes, (C, Y, X) in native byte order."""
        place = {"T": 0, "Z": 0, "C": 0} | at
        if self.colour:
            return self.source.plane(place["T"], place["Z"], 0)
        planes = np.empty((self.channels, *self.metadata.shape[-2:]), self.metadata.dtype)
        for channel in range(self.channels):
            place[self.axis] = channel
            planes[channel] = self.source.plane(place["T"], place["Z"], place["C"])
        return planes


def channels_of(spec: SeriesSpec, axis: str) -> ChannelSource:
    """Open a series that `scan_with_colours` scanned, whose channels are along `axis`; no pixel is read."""
    source = spec.open()
    path, axes, colour = spec.paths[0], source.metadata.axes, spec.samples > 1
    if axis not in axes:
        others = [other for other in axes[:-2] if other in "TZC"]
        choice = (
            f"choose the one that holds them with --channel-axis {' or '.join(others)}"
            if others
            else "it is a single image"
        )
        raise InputError(f"{path}: has axes {axes} and no axis {axis} of channels; {choice}")
    if colour and axis != "C":
        raise InputError(f"{path}: is a colour image, whose channels are its colours; use --channel-axis C")
    return ChannelSource(source, axis, colour)


def scan_with_colours(path: Path, limits: Limits | None = None) -> ImageFile:
    """Check a file of grey values or colours, without reading pixels."""
    return scan_file(path, limits, colour=True)
