"""Stacks as the rest of the program sees them: found and checked, one file or many, each opened as a lazy view."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from typing import Literal

import numpy as np

from xcorr_app.errors import ArgumentError, InputError, XcorrError
from xcorr_app.io.opened import Stamp
from xcorr_app.io.source import Closable, ImageFile, StackMetadata, calibration_of, make_metadata


class UnusableFile(ImageFile):
    """A file of a series that cannot be used; it keeps its place as one frame that raises when read."""

    page_count = 1

    def __init__(self, path: Path, error: XcorrError) -> None:
        self.path, self.error = path, error

    def page_at(self, _t: int, _z: int, _c: int) -> int:
        """There is one page."""
        return 0

    def read(self, _page: int) -> np.ndarray:
        """Raise what is wrong with the file."""
        raise type(self.error)(str(self.error))


class Source(Closable):
    """A stack whose planes are read when they are asked for, in one file or several. Safe to use from several threads.

    Attributes
    ----------
    name
        For the output folder: one safe path component.
    paths
        Every input file, in order.
    metadata, sizes
        Axes, type and calibration; size of each of T, Z, C, Y, X.
    """

    def __init__(
        self,
        name: str,
        paths: tuple[Path, ...],
        metadata: StackMetadata,
        locate: Callable[[int, int, int], tuple[ImageFile, int]],
    ) -> None:
        self.name, self.paths, self.metadata, self.sizes = name, paths, metadata, metadata.sizes
        self._locate = locate

    def page_of(self, t: int, z: int, c: int) -> tuple[ImageFile, int]:
        """File of a plane, to read several of it together, and page."""
        for axis, index in (("T", t), ("Z", z), ("C", c)):
            if not 0 <= index < self.sizes[axis]:
                raise ArgumentError(f"{self.name}: {axis} index {index} is outside 0 to {self.sizes[axis] - 1}")
        return self._locate(t, z, c)

    def plane(self, t: int = 0, z: int = 0, c: int = 0) -> np.ndarray:
        """Read one plane, (Y, X) in native byte order, the caller's to change."""
        file, page = self.page_of(t, z, c)
        return file.read(page)

    def origin(self, t: int = 0, z: int = 0, c: int = 0) -> tuple[Path, int]:
        """File and page (counted from 0 within the file) that hold a plane."""
        file, page = self.page_of(t, z, c)
        return file.origin(page)


def paths_of(file: ImageFile) -> tuple[Path, ...]:
    """Every file of an image."""
    return tuple(part.path for part in file.parts)


def stack_source(name: str, file: ImageFile) -> Source:
    """A stack in one file."""
    return Source(name, paths_of(file), file.metadata, lambda *at: (file, file.page_at(*at)))


def frames_source(name: str, files: Sequence[ImageFile]) -> Source:
    """A series of files whose pages follow each other along T.

    Unusable ones keep their place, so that the others keep their numbers. Raises InputError when no file
    is usable, or pages differ in size or type.
    """
    first = _first(
        name,
        files,
        "{0.path}: its pages are {1}, those of {2.path} are {3}; a series has frames of one size and type, so move one "
        "kind to another folder or use --layout stacks",
        _plane_type,
    )
    ends = list(accumulate(file.page_count for file in files))
    old = first.metadata
    metadata = replace(
        make_metadata({**old.sizes, "T": ends[-1], "Z": 1, "C": first.samples}, "TCYX", old.dtype, old.kind),
        **calibration_of(old) | {"z_step": None, "z_unit": None},
        channel_names=old.channel_names if len(old.channel_names) == first.samples else (),
        tiff=old.tiff,
    )

    def locate(t: int, _z: int, _c: int) -> tuple[ImageFile, int]:
        index = bisect_right(ends, t)
        return files[index], t - (ends[index - 1] if index else 0)

    return Source(name, tuple(file.path for file in files), metadata, locate)


def placed_source(
    name: str,
    files: Sequence[ImageFile],
    positions: Sequence[tuple[int, int, int]],
    channel_names: tuple[str, ...] = (),
) -> Source:
    """A stack whose files have places along some of T, Z and C; the other axes are within the files.

    Unusable files keep their place. Raises InputError when no file is usable, or files differ in size or type, or have
    an axis of their own along which they are placed.
    """
    first = _first(
        name,
        files,
        "{0.path}: is {1}, {2.path} is {3}; the files of a stack have images of one size and type, so move one kind to "
        "another folder or use --layout stacks",
        _stack_type,
    )
    old = first.metadata
    outer = {axis: max(places) + 1 for axis, places in zip("TZC", zip(*positions, strict=True), strict=True)}
    twice = [axis for axis in "TZC" if outer[axis] > 1 and old.sizes[axis] > 1]
    if twice:
        raise InputError(f"{name}: its files have an axis {twice[0]} of their own, and names that number it too")
    sizes = {axis: size * outer.get(axis, 1) for axis, size in old.sizes.items()}
    names = old.channel_names if len(old.channel_names) == sizes["C"] else ()
    metadata = replace(
        make_metadata(sizes, "TZCYX", old.dtype, old.kind),
        **calibration_of(old),
        channel_names=channel_names or names,
        tiff=old.tiff,
    )
    at = dict(zip(positions, files, strict=True))

    def locate(*place: int) -> tuple[ImageFile, int]:
        by_file = [outer[axis] > 1 for axis in "TZC"]
        t, z, c = (index if placed else 0 for index, placed in zip(place, by_file, strict=True))
        inner = (0 if placed else index for index, placed in zip(place, by_file, strict=True))
        return at[t, z, c], at[t, z, c].page_at(*inner)

    return Source(name, tuple(file.path for file in files), metadata, locate)


def _first(name: str, files: Sequence[ImageFile], differs: str, kind: Callable[[ImageFile], str]) -> ImageFile:
    """The first file that can be used; all others must be of its kind."""
    usable = [file for file in files if not isinstance(file, UnusableFile)]
    if not usable:
        raise InputError(f"{name}: none of its {len(files)} files can be used")
    of_first = kind(usable[0])
    for file in usable:
        if (found := kind(file)) != of_first:
            raise InputError(differs.format(file, found, usable[0], of_first))
    return usable[0]


def _stack_type(file: ImageFile) -> str:
    sizes = file.metadata.sizes
    return f"{_plane_type(file)} of T={sizes['T']} Z={sizes['Z']} C={sizes['C']}"


def _plane_type(file: ImageFile) -> str:
    metadata = file.metadata
    colours = " in colours" if file.samples > 1 else ""
    return f"{metadata.shape[-2]} x {metadata.shape[-1]} {metadata.dtype}{colours}"


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
    _files: tuple[ImageFile, ...] = field(repr=False)
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
        parts = [part for file in self._files for part in file.parts]
        return {part.path: part.stamp for part in parts if hasattr(part, "stamp")}

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
