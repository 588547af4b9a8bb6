"""Stacks as the rest of the program sees them: one file, or many files one after the other."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING, Self

import numpy as np

from xcorr_app.errors import ArgumentError, InputError
from xcorr_app.io.single_channel import page_in_file
from xcorr_app.io.source import ImageFile, StackMetadata, make_metadata
from xcorr_app.io.tiff.ome_set import OmeSet, paths_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from types import TracebackType

    from xcorr_app.errors import XcorrError


class UnusableFile:
    """A file of a series that cannot be used; it keeps its place as one frame that raises when read."""

    page_count = 1
    samples = 1

    def __init__(self, path: Path, error: XcorrError) -> None:
        self.path = path
        self.error = error

    def read(self, _page: int) -> np.ndarray:
        """Raise what is wrong with the file."""
        raise type(self.error)(str(self.error))


class _Source:
    """What both kinds share: name, paths, metadata; nothing stays open between planes."""

    def __init__(self, name: str, paths: tuple[Path, ...], metadata: StackMetadata) -> None:
        self.name = name
        self.paths = paths
        self.metadata = metadata
        self.sizes = metadata.sizes

    def close(self) -> None:
        """Nothing to give back: files are opened for each plane."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _check(self, t: int, z: int, c: int) -> None:
        for axis, index in (("T", t), ("Z", z), ("C", c)):
            if not 0 <= index < self.sizes[axis]:
                raise ArgumentError(f"{self.name}: {axis} index {index} is outside 0 to {self.sizes[axis] - 1}")


class StackSource(_Source):
    """A stack in one file."""

    def __init__(self, name: str, file: ImageFile) -> None:
        super().__init__(name, paths_of(file, file.path), file.metadata)
        self._file = file

    def __enter__(self) -> Self:
        return self

    def plane(self, t: int = 0, z: int = 0, c: int = 0) -> np.ndarray:
        """Read one plane; see `Source.plane`."""
        self._check(t, z, c)
        return self._file.read(self._file.page_at(t, z, c))

    def origin(self, t: int = 0, z: int = 0, c: int = 0) -> tuple[Path, int]:
        """File and page of a plane."""
        self._check(t, z, c)
        page = self._file.page_at(t, z, c)
        if isinstance(self._file, OmeSet):
            return self._file.place(page)
        return self._file.path, page_in_file(self._file, page)

    def page_of(self, t: int, z: int, c: int) -> tuple[ImageFile | UnusableFile, int]:
        """File of a plane, to read several of it together, and page."""
        self._check(t, z, c)
        return self._file, self._file.page_at(t, z, c)


class FramesSource(_Source):
    """A series of files whose pages follow each other along T.

    Unusable ones keep their place, so that the others keep their numbers. Raises InputError when no file
    is usable, or pages differ in size or type.
    """

    def __init__(self, name: str, files: Sequence[ImageFile | UnusableFile]) -> None:
        usable = [file for file in files if not isinstance(file, UnusableFile)]
        if not usable:
            raise InputError(f"{name}: none of its {len(files)} files can be used")
        first = usable[0]
        of_first = first.samples, first.metadata.shape[-2:], first.metadata.dtype
        for file in usable:
            if (file.samples, file.metadata.shape[-2:], file.metadata.dtype) != of_first:
                raise InputError(
                    f"{file.path}: its pages are {_plane_type(file)}, those of {first.path} are {_plane_type(first)}; "
                    "a series has frames of one size and type, so move one kind to another folder or use --layout "
                    "stacks"
                )
        self._files = tuple(files)
        self._ends = list(accumulate(file.page_count for file in files))
        old = first.metadata
        sizes = {**old.sizes, "T": self._ends[-1], "Z": 1, "C": first.samples}
        metadata = replace(
            make_metadata(sizes, "TCYX", old.dtype, old.kind),
            pixel_size=old.pixel_size,
            unit=old.unit,
            time_increment=old.time_increment,
            time_unit=old.time_unit,
            channel_names=old.channel_names if len(old.channel_names) == first.samples else (),
            tiff=old.tiff,
        )
        super().__init__(name, tuple(file.path for file in files), metadata)

    def __enter__(self) -> Self:
        return self

    def plane(self, t: int = 0, z: int = 0, c: int = 0) -> np.ndarray:
        """Read one plane; see `Source.plane`."""
        file, page = self._locate(t, z, c)
        return file.read(page)

    def origin(self, t: int = 0, z: int = 0, c: int = 0) -> tuple[Path, int]:
        """File and page of a plane."""
        file, page = self._locate(t, z, c)
        return file.path, page if isinstance(file, UnusableFile) else page_in_file(file, page)

    def page_of(self, t: int, z: int, c: int) -> tuple[ImageFile | UnusableFile, int]:
        """File of a plane, to read several of it together, and page."""
        return self._locate(t, z, c)

    def _locate(self, t: int, z: int, c: int) -> tuple[ImageFile | UnusableFile, int]:
        self._check(t, z, c)
        index = bisect_right(self._ends, t)
        return self._files[index], t - (self._ends[index - 1] if index else 0)


class PlacedSource(_Source):
    """A stack whose files have places along some of T, Z and C; the other axes are within the files.

    Unusable files keep their place. Raises InputError when no file is usable, or files differ in size or type, or have
    an axis of their own along which they are placed.
    """

    def __init__(
        self,
        name: str,
        files: Sequence[ImageFile | UnusableFile],
        positions: Sequence[tuple[int, int, int]],
        channel_names: tuple[str, ...] = (),
    ) -> None:
        usable = [file for file in files if not isinstance(file, UnusableFile)]
        if not usable:
            raise InputError(f"{name}: none of its {len(files)} files can be used")
        first = usable[0]
        for file in usable:
            expected, found = _stack_type(first), _stack_type(file)
            if found != expected:
                raise InputError(
                    f"{file.path}: is {found}, {first.path} is {expected}; the files of a stack have images of one "
                    "size and type, so move one kind to another folder or use --layout stacks"
                )
        old = first.metadata
        placed = [max(places) + 1 for places in zip(*positions, strict=True)]
        self._outer = dict(zip("TZC", placed, strict=True))
        twice = [axis for axis in "TZC" if self._outer[axis] > 1 and old.sizes[axis] > 1]
        if twice:
            raise InputError(f"{name}: its files have an axis {twice[0]} of their own, and names that number it too")
        sizes = {axis: size * self._outer.get(axis, 1) for axis, size in old.sizes.items()}
        names = old.channel_names if len(old.channel_names) == sizes["C"] else ()
        metadata = replace(
            make_metadata(sizes, "TZCYX", old.dtype, old.kind),
            pixel_size=old.pixel_size,
            unit=old.unit,
            z_step=old.z_step,
            z_unit=old.z_unit,
            time_increment=old.time_increment,
            time_unit=old.time_unit,
            channel_names=channel_names or names,
            tiff=old.tiff,
        )
        self._files = dict(zip(positions, files, strict=True))
        super().__init__(name, tuple(file.path for file in files), metadata)

    def __enter__(self) -> Self:
        return self

    def plane(self, t: int = 0, z: int = 0, c: int = 0) -> np.ndarray:
        """Read one plane; see `Source.plane`."""
        file, place = self._locate(t, z, c)
        return file.read(0 if isinstance(file, UnusableFile) else file.page_at(*place))

    def origin(self, t: int = 0, z: int = 0, c: int = 0) -> tuple[Path, int]:
        """File and page of a plane."""
        file, place = self._locate(t, z, c)
        return file.path, 0 if isinstance(file, UnusableFile) else page_in_file(file, file.page_at(*place))

    def _locate(self, t: int, z: int, c: int) -> tuple[ImageFile | UnusableFile, tuple[int, int, int]]:
        """File of a plane, and its place within."""
        self._check(t, z, c)
        at = dict(zip("TZC", (t, z, c), strict=True))
        outer = tuple(at[axis] if self._outer[axis] > 1 else 0 for axis in "TZC")
        inner = tuple(0 if self._outer[axis] > 1 else at[axis] for axis in "TZC")
        return self._files[outer[0], outer[1], outer[2]], (inner[0], inner[1], inner[2])


def _stack_type(file: ImageFile) -> str:
    sizes = file.metadata.sizes
    return f"{_plane_type(file)} of T={sizes['T']} Z={sizes['Z']} C={sizes['C']}"


def _plane_type(file: ImageFile) -> str:
    metadata = file.metadata
    colours = " in colours" if file.samples > 1 else ""
    return f"{metadata.shape[-2]} x {metadata.shape[-1]} {metadata.dtype}{colours}"
