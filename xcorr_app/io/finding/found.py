"""What was found of the files that a user named: series of images, and files that cannot be used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from xcorr_app.io.opened import Stamp
from xcorr_app.io.series import UnusableFile, frames_source, placed_source, stack_source
from xcorr_app.io.single_channel import PickedImage
from xcorr_app.io.source import ImageFile, Source
from xcorr_app.io.tiff.ome_set import OmeSet


@dataclass(frozen=True)
class Failure:
    """An input that cannot be used, and why; the message names it too."""

    path: Path
    message: str


@dataclass(frozen=True)
class SeriesSpec:
    """One series, found and checked but not open.

    Attributes
    ----------
    name
        Safe, and distinct among the series of a run.
    layout
        ``frames`` (files follow each other along T), ``stacks`` (one file) or ``numbered`` (names place the files).
    paths
        Files in order.
    positions
        Index (t, z, c) of every file that is placed by its name; else empty.
    channel_names
        Where names of files tell them.
    notes
        What a user should know of how the files were put together.
    source
        What `name` was made of: neither shortened nor numbered, so the same whatever else is found beside it.
    """

    name: str
    layout: Literal["frames", "stacks", "numbered"]
    paths: tuple[Path, ...]
    _files: tuple[ImageFile | UnusableFile, ...] = field(repr=False)
    positions: tuple[tuple[int, int, int], ...] = ()
    channel_names: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    source: str = ""

    @property
    def samples(self) -> int:
        """Values a pixel: 1, or 3 for colour images."""
        return max(file.samples for file in self._files)

    @property
    def stamps(self) -> dict[Path, Stamp]:
        """As what each of the files was checked; a folder of chunks, and what cannot be used, has no such mark."""
        parts = [part for file in self._files for part in _parts(file)]
        others = {path: stamp for part in parts for path, stamp in getattr(part, "others", ())}
        return others | {part.path: part.stamp for part in parts if hasattr(part, "stamp")}

    def open(self) -> Source:
        """Return the lazy view of the series."""
        if self.layout == "frames":
            return frames_source(self.name, self._files)
        if self.layout == "numbered":
            return placed_source(self.name, self._files, self.positions, self.channel_names)
        (file,) = self._files
        if isinstance(file, UnusableFile):
            raise file.error
        return stack_source(self.name, file)


def _parts(file: ImageFile | UnusableFile) -> Sequence[ImageFile | UnusableFile]:
    """The files that an image is in."""
    if isinstance(file, PickedImage):
        return _parts(file.file)
    return file.files if isinstance(file, OmeSet) else (file,)


def joined_frames(series: Sequence[SeriesSpec], name: str) -> SeriesSpec:
    """Make one series of the frames of several, in the order given."""
    paths = tuple(path for each in series for path in each.paths)
    files = tuple(file for each in series for file in each._files)
    notes = tuple(note for each in series for note in each.notes)
    return SeriesSpec(name, "frames", paths, files, notes=notes, source=name)


@dataclass(frozen=True)
class Discovery:
    """What was found.

    Attributes
    ----------
    layout
        ``frames``, ``stacks`` or ``numbered``; ``both`` when stacks differ.
    series
        In natural order of the inputs.
    failures
        Inputs that are not part of any series. (An unusable file among frames is part of its series: its frame
        raises when it is read.)
    """

    layout: Literal["frames", "stacks", "numbered", "both"]
    series: Sequence[SeriesSpec]
    failures: Sequence[Failure]
    notes: tuple[str, ...] = ()
    """What a user should know of the folders: images that were left out."""
