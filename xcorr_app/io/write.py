"""Stacks to TIFF files: plane by plane, whole or not at all, the same bytes for the same input.

OME-TIFF goes out as OME-TIFF, ImageJ hyperstacks as ImageJ hyperstacks, everything else as plain TIFF, all
uncompressed. Beyond 4 GiB, OME-TIFF and plain TIFF become BigTIFF; an ImageJ hyperstack gets one directory,
followed by all planes without a gap, which is how ImageJ itself writes and reads such files.
"""

from __future__ import annotations

import math
import traceback
from contextlib import ExitStack, contextmanager
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Self

import numpy as np
import tifffile

from xcorr_app.errors import ArgumentError, DataTypeError, FileError, OutputError, ShapeError
from xcorr_app.io.atomic import atomic_path
from xcorr_app.io.imagej import build_imagej, is_imagej, parse_imagej, pixel_size
from xcorr_app.io.limits import Limits
from xcorr_app.io.ome import build_ome, is_ome
from xcorr_app.io.source import Resolution, StackMetadata, TiffTags, runs_of
from xcorr_app.io.tiff_scan import scan_tiff
from xcorr_app.io.tifffile_shape import build_shaped, is_shaped

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType
    from typing import Any

# Offsets of classic TIFF are 32 bits; the margin is for directories and descriptions.
_CLASSIC_BYTES = 2**32 - 2**25
_BYTES_PER_DIRECTORY = 512
_SOFTWARE = "xcorr"
_NO_UNIT = 1
_DOCUMENT_NAME = 269


def open_output(path: Path) -> BinaryIO:
    """Open a temporary file of `atomic_path` for writing."""
    return path.open("wb")


class StackWriter:
    """Write a stack plane by plane; the file appears under its name when the block ends without an error.

    An existing file is replaced; its folder must exist. Raises ArgumentError for an ImageJ hyperstack with axes in
    another order than T, Z, C, and OutputError where the file cannot be written or the block ends before all
    planes were.

    Examples
    --------
    >>> with StackWriter("moved.tif", source.metadata) as writer:  # doctest: +SKIP
    ...     for t in range(source.sizes["T"]):
    ...         writer.write(source.plane(t))
    """

    def __init__(self, path: Path | str, metadata: StackMetadata) -> None:
        self.path = Path(path)
        self.metadata = metadata
        if metadata.kind == "imagej" and list(metadata.axes) != sorted(metadata.axes, key="TZCYX".index):
            raise ArgumentError(
                f"{self.path}: an ImageJ hyperstack has its axes in the order TZCYX, not {metadata.axes}; "
                'reorder the planes or use kind="ome"'
            )
        tags = metadata.tiff or TiffTags()
        self._byteorder = tags.byteorder
        self._stored = metadata.dtype.newbyteorder(tags.byteorder)
        expected = metadata.planes * (metadata.plane_bytes + _BYTES_PER_DIRECTORY)
        large = expected > _CLASSIC_BYTES
        self._one_directory = large and metadata.kind == "imagej"
        self._big = large and not self._one_directory
        self._written = 0
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            # Left in the opposite order: the file is closed, then synced and renamed.
            self._partial = stack.enter_context(atomic_path(self.path))
            self._file = stack.enter_context(open_output(self._partial))
            self._tiff = tifffile.TiffWriter(self._file, bigtiff=self._big, byteorder=self._byteorder)
            self._stack = stack.pop_all()
        return self

    def write(self, plane: np.ndarray) -> None:
        """Write the next plane, in the order of the axes (the last before YX fastest)."""
        if plane.shape != self.metadata.shape[-2:]:
            raise ShapeError(f"{self.path}: planes are {self.metadata.shape[-2:]}, got {plane.shape}")
        if plane.dtype.newbyteorder("=") != self.metadata.dtype:
            raise DataTypeError(f"{self.path}: planes are {self.metadata.dtype}, got {plane.dtype}")
        if self._written == self.metadata.planes:
            raise OutputError(f"{self.path}: all {self.metadata.planes} planes are written already")
        content = np.ascontiguousarray(plane, self._stored).tobytes()
        if self._one_directory and self._written > 0:
            self._file.write(content)
        else:
            # A new series each time, so that tifffile neither rewrites descriptions nor postpones directories.
            # Bytes from an iterator go through `write`, which reports a full disk; ndarray.tofile may not.
            with _frames_cleared():
                self._tiff.write(
                    iter([content]),
                    shape=plane.shape,
                    dtype=self._stored,
                    contiguous=False,
                    **self._tags(first=self._written == 0),
                )
        self._written += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            with self._stack:
                if self._written != self.metadata.planes:
                    raise OutputError(f"{self.path}: {self._written} of {self.metadata.planes} planes were written")
                with _frames_cleared():
                    self._tiff.close()
                self._file.close()
                self._verify()
        else:
            self._stack.__exit__(kind, error, trace)

    def _tags(self, *, first: bool) -> dict[str, Any]:
        metadata = self.metadata
        tags = metadata.tiff or TiffTags()
        resolution = tags.resolution
        if metadata.kind == "imagej" and metadata.pixel_size and pixel_size(resolution) != metadata.pixel_size:
            row, column = metadata.pixel_size
            resolution = Resolution(_pixels_per_unit(column), _pixels_per_unit(row), _NO_UNIT)
        arguments: dict[str, Any] = {
            "photometric": tags.photometric,
            "software": _SOFTWARE,
            "metadata": None,
            "description": self._description() if first else None,
        }
        if tags.colormap is not None:
            arguments["colormap"] = np.array(tags.colormap, np.uint16).reshape(3, -1)
        if first and metadata.kept is not None:
            axis, kept = metadata.kept
            name = f"frames {runs_of(kept)} of the input along {axis}"
            arguments["extratags"] = [(_DOCUMENT_NAME, 2, 0, name, True)]
        if resolution is not None:
            arguments["resolution"] = (resolution.x, resolution.y)
            arguments["resolutionunit"] = resolution.unit
        if first and metadata.kind == "imagej" and tags.imagej is not None and self._labels_fit():
            counts, block = tags.imagej
            arguments["extratags"] = [
                *arguments.get("extratags", ()),
                (50838, 4, len(counts), counts, True),
                (50839, 1, len(block), block, True),
            ]
        return arguments

    def _description(self) -> bytes | None:
        metadata = self.metadata
        if metadata.kind == "ome":
            return build_ome(metadata, big_endian=self._byteorder == ">")
        if metadata.kind == "imagej":
            return build_imagej(metadata)
        old = metadata.tiff.description if metadata.tiff else b""
        if is_shaped(old) or metadata.axes not in ("YX", "TYX"):
            return build_shaped(metadata)
        # A description that belongs to another kind of file would be taken for true by readers.
        return None if not old or is_imagej(old) or is_ome(old) else old

    def _labels_fit(self) -> bool:
        """Tell whether ImageJ's labels, one a plane, are for as many planes as are written."""
        tags = self.metadata.tiff
        if tags is None or not is_imagej(tags.description):
            return False
        return math.prod(parse_imagej(self.path, tags.description, found=0).sizes.values()) == self.metadata.planes

    def _verify(self) -> None:
        """Read the directories back: what bears the final name is what was meant."""
        unlimited = Limits(max_pixels=2**62, max_pages=2**62)
        try:
            found = scan_tiff(self._partial, unlimited).metadata
        except FileError as error:
            raise OutputError(f"{self.path}: what was written does not read back ({error})") from error
        if (found.axes, found.shape, found.dtype) != (self.metadata.axes, self.metadata.shape, self.metadata.dtype):
            raise OutputError(
                f"{self.path}: was written as {self.metadata.axes} {self.metadata.shape}, reads as {found}"
            )


@contextmanager
def _frames_cleared() -> Iterator[None]:
    """Let go of what the frames of a failed call hold, now and in order.

    tifffile writes views of its `io.BytesIO` buffers. Left to the garbage collector together with the traceback, a
    buffer may go before its view: an error that nobody can catch, and a crash in Python 3.12.
    """
    try:
        yield
    except BaseException as error:
        traceback.clear_frames(error.__traceback__)
        raise


def _pixels_per_unit(size: float) -> tuple[int, int]:
    """Rational number for a resolution tag, such that its inverse is `size` again."""
    fraction = (
        Fraction(size).limit_denominator(10**6) if size > 1e-2 else 1 / Fraction(1 / size).limit_denominator(10**6)
    )
    pixels = fraction.denominator, fraction.numerator
    if max(pixels) >= 2**32:
        raise ArgumentError(f"a pixel size of {size} cannot be stored in a TIFF resolution tag; use another unit")
    return pixels
