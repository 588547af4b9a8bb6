"""One channel of a file, as if the file had no other: a colour, its grey value, or a channel by number."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeAlias

import numpy as np

from xcorr_app.errors import ArgumentError, InputError
from xcorr_app.io.finding.scan import Scan, scan_file
from xcorr_app.io.limits import Limits
from xcorr_app.io.source import ImageFile, StackMetadata
from xcorr_app.io.tiff.ome import is_ome, with_one_channel

Channel: TypeAlias = str | int
"""``R``, ``G``, ``B`` or ``gray`` of a colour image, or the number of a channel, counted from 0."""

_COLOURS = ("R", "G", "B")
_GRAY = "gray"
_LUMA = (0.299, 0.587, 0.114)
"""Weights of red, green and blue: ITU-R BT.601, as in JPEG, OpenCV and Pillow."""


def parse_channel(text: str) -> Channel:
    """Read a channel as a user writes it."""
    if text.isascii() and text.isdecimal() and len(text) < 6:
        return int(text)
    if text.upper() in _COLOURS:
        return text.upper()
    if text.lower() in (_GRAY, "grey"):
        return _GRAY
    raise ArgumentError(f"{text!r}: give R, G, B, gray, or the number of a channel counted from 0")


def scan_for(channel: Channel | None) -> Scan:
    """Return what checks a file of which this channel is wanted, or the whole of it."""
    return scan_file if channel is None else partial(scan_channel, channel=channel)


def scan_channel(path: Path, limits: Limits | None = None, *, channel: Channel, lenient: bool = False) -> ImageFile:
    """Check a file and take one channel of it; raises as `scan_file` does, and InputError where there is none.

    A grey image has no channels but is its own ``gray`` and number 0; with `lenient`, it stands for any.
    """
    file = scan_file(path, limits, colour=True)
    channels = file.metadata.sizes["C"]
    if file.samples > 1:
        if isinstance(channel, int) and channel >= file.samples:
            raise InputError(f"{path}: is a colour image: --channel is R, G, B, gray or 0 to {file.samples - 1}")
        return PickedImage(file, _COLOURS.index(channel) if channel in _COLOURS else channel)
    if channels == 1 and (lenient or channel in (_GRAY, 0)):
        return file
    if isinstance(channel, str):
        what = f"has {channels} channels: give the number of one" if channels > 1 else "is a grey image: leave it out"
        raise InputError(f"{path}: has no colours for --channel {channel}; it {what}")
    if channel >= channels:
        if channels == 1:
            raise InputError(f"{path}: has one channel; leave --channel {channel} out")
        raise InputError(f"{path}: has {channels} channels: --channel counts from 0, up to {channels - 1}")
    return PickedImage(file, channel)


@dataclass(frozen=True)
class PickedImage:
    """One channel of a file, whose pages are counted by themselves."""

    file: ImageFile
    channel: Channel
    """Its number, or ``gray``."""
    samples: int = 1

    @property
    def path(self) -> Path:
        """The file."""
        return self.file.path

    @property
    def metadata(self) -> StackMetadata:
        """That of the file, without the axis C."""
        old = self.file.metadata
        axes = old.axes.replace("C", "")
        names = (old.channel_names[self.channel],) if old.channel_names and isinstance(self.channel, int) else ()
        tags = old.tiff
        if tags is not None and is_ome(tags.description) and isinstance(self.channel, int):
            tags = replace(tags, description=with_one_channel(tags.description, self.channel))
        shape = tuple(old.sizes[axis] for axis in axes)
        return replace(old, axes=axes, shape=shape, channel_names=names, tiff=tags)

    @property
    def page_count(self) -> int:
        """Number of planes of the channel."""
        return self.file.metadata.sizes["T"] * self.file.metadata.sizes["Z"]

    def page_at(self, t: int, z: int, c: int) -> int:
        """Page of a plane."""
        if c != 0:
            raise IndexError(f"{self.path}: one channel was taken, there is no c={c}")
        return t * self.file.metadata.sizes["Z"] + z

    def page_in_file(self, page: int) -> int:
        """Page of the file that holds a page of this."""
        t, z = divmod(page, self.file.metadata.sizes["Z"])
        return self.file.page_at(t, z, 0 if self.file.samples > 1 else int(self.channel))

    def read(self, page: int) -> np.ndarray:
        """Read a page, (Y, X)."""
        plane = self.file.read(self.page_in_file(page))
        if self.file.samples == 1:
            return plane
        if isinstance(self.channel, int):
            return np.ascontiguousarray(plane[self.channel])
        gray = np.tensordot(_LUMA, plane.astype(np.float64), 1)
        return (np.rint(gray) if plane.dtype.kind in "iu" else gray).astype(plane.dtype)
