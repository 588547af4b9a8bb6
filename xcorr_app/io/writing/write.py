"""Stacks to TIFF files: plane by plane, whole or not at all, the same bytes for the same input.

OME-TIFF goes out as OME-TIFF, as does all that is called ``.ome.tif``; ImageJ hyperstacks as ImageJ hyperstacks,
everything else as plain TIFF. Beyond 4 GiB,
OME-TIFF and plain TIFF become BigTIFF; an ImageJ hyperstack gets one directory, followed by all planes without a gap,
which is how ImageJ itself writes and reads such files. Where each plane goes is known before it is there, so that
several threads write; compressed planes are compressed by several threads and written in order.
"""

import math
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Self

import numpy as np
import tifffile

from xcorr_app.errors import ArgumentError, FileError, OutputError
from xcorr_app.io.declared import Limits
from xcorr_app.io.source import Meter, Resolution, StackMetadata, TiffTags, runs_of, timed
from xcorr_app.io.tiff.descriptions import build_imagej, build_shaped, is_imagej, is_shaped, parse_imagej, pixel_size
from xcorr_app.io.tiff.ome import build_ome, is_ome
from xcorr_app.io.tiff.tiff_scan import scan_tiff
from xcorr_app.io.writing.atomic import atomic_path
from xcorr_app.io.writing.written_planes import BYTES_WAITING, COMPRESSIONS, PlaneWriter, compressed
from xcorr_app.system import write_from

# Offsets of classic TIFF are 32 bits; the margin is for directories and descriptions.
_CLASSIC_BYTES = 2**32 - 2**25
_BYTES_PER_DIRECTORY = 512
_SOFTWARE = b"xcorr"
_NO_UNIT = 1
_BYTE, _ASCII, _LONG = 1, 2, 4
_DOCUMENT_NAME, _IMAGEJ_COUNTS, _IMAGEJ_BLOCK = 269, 50838, 50839
_BYTES_AT_ONCE = 1 << 22
"""Planes of so many bytes go to the system together."""
_MAX_BUFFERS = 1000
OME_ENDINGS = (".ome.tif", ".ome.tiff")
"""Of names that promise OME-TIFF, whatever the input was."""


class StackWriter(PlaneWriter):
    """Write a stack plane by plane; the file appears under its name when the block ends without an error.

    An existing file is replaced; its folder must exist. Raises ArgumentError for an ImageJ hyperstack with axes in
    another order than T, Z, C, and OutputError where the file cannot be written or the block ends before all
    planes were. A plane must not be changed before that: it may be written later.

    Parameters
    ----------
    path, metadata
        Where, and what.
    compression
        ``zlib``, ``zstd``, ``lzw``, or None.
    later
        Called with the writer when the block ends, in place of `complete`, which is then up to whoever was called: what
        takes long, bringing the file to the disk, may happen while the next one is computed.
    meter
        Told of the seconds spent.
    waiting
        Bytes that may wait to be written before `write` does.
    waited
        Told of the stage and the seconds for which it did.

    Examples
    --------
    >>> with StackWriter("moved.tif", source.metadata) as writer:  # doctest: +SKIP
    ...     for t in range(source.sizes["T"]):
    ...         writer.write(source.plane(t))
    """

    def __init__(
        self,
        path: Path | str,
        metadata: StackMetadata,
        *,
        compression: str | None = None,
        later: Callable[[Any], None] | None = None,
        meter: Meter | None = None,
        waiting: int = BYTES_WAITING,
        waited: Callable[[str, float], None] | None = None,
    ) -> None:
        if Path(path).name.lower().endswith(OME_ENDINGS):
            metadata = replace(metadata, kind="ome")
        super().__init__(Path(path), metadata, later, meter)
        self._waiting, self._waited = waiting, waited
        if metadata.kind == "imagej" and list(metadata.axes) != sorted(metadata.axes, key="TZCYX".index):
            raise ArgumentError(
                f"{self.path}: an ImageJ hyperstack has its axes in the order TZCYX, not {metadata.axes}; "
                'reorder the planes or use kind="ome"'
            )
        tags = metadata.tiff or TiffTags()
        self._byteorder = tags.byteorder
        self._stored = metadata.dtype.newbyteorder(tags.byteorder)
        if compression not in (None, *COMPRESSIONS):
            raise ArgumentError(f"compression {compression!r} is not known: use one of {', '.join(COMPRESSIONS)}")
        self._compression = compression
        expected = metadata.planes * (metadata.plane_bytes + _BYTES_PER_DIRECTORY)
        large = expected > _CLASSIC_BYTES
        self._one_directory = large and metadata.kind == "imagej" and compression is None
        self._big = large and not self._one_directory
        self._tif: tifffile.TiffWriter | None = None
        """Where planes are compressed: it writes them one after the other."""
        self._end = 0

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            # Left in the opposite order: threads end, the file is closed, then synced and renamed.
            self._partial = stack.enter_context(atomic_path(self.path, self._meter))
            order: Any = self._byteorder
            tif = tifffile.TiffWriter(self._partial, bigtiff=self._big, byteorder=order)
            stack.callback(tif.close)
            if self._compression is None:
                planes = 1 if self._one_directory else self.metadata.planes
                how = self._tags(first=True) | {"shape": (planes, *self.metadata.shape[-2:])}
                place = tif.write(None, returnoffset=True, **how)
                tif.close()
                self._end = 0 if place is None else place[0]
            else:
                self._tif = tif
            self._descriptor = stack.enter_context(self._partial.open("r+b")).fileno()
            stack.callback(self._stop_threads)
            self._stack = stack.pop_all()
        return self

    def write(self, plane: np.ndarray) -> None:
        """Write the next plane, in the order of the axes (the last before YX fastest)."""
        self._check(plane)
        self._written += 1
        if self._compression is not None:
            native = np.ascontiguousarray(plane, self.metadata.dtype)
            self._submit(plane.nbytes, compressed, native, self._compression, self._stored)
            self._hold_back()
            return
        self._gathered.append(plane)
        if len(self._gathered) * plane.nbytes >= _BYTES_AT_ONCE or len(self._gathered) == _MAX_BUFFERS:
            self._send()
            self._hold_back()

    def _finish(self) -> None:
        with timed(self._meter, "write"):
            if self._threads is None and self._gathered:
                # A small file needs no threads.
                self._write_planes(*self._next())
            self._send()
            self._wait(0)
            if self._tif is not None:
                self._tif.close()
        self._verify()

    def _send(self) -> None:
        """Let a thread write the planes gathered."""
        if self._gathered:
            planes, offset = self._next()
            self._submit(sum(plane.nbytes for plane in planes), self._write_planes, planes, offset)

    def _next(self) -> tuple[list[np.ndarray], int]:
        """Planes gathered, and where they go."""
        planes, offset = self._gathered, self._end
        self._gathered = []
        self._end += sum(plane.nbytes for plane in planes)
        return planes, offset

    def _write_planes(self, planes: list[np.ndarray], offset: int) -> None:
        with timed(self._meter, "write", sum(plane.nbytes for plane in planes)):
            stored = [np.ascontiguousarray(plane, self._stored) for plane in planes]
            write_at(self._descriptor, [plane.reshape(-1).view(np.uint8).data for plane in stored], offset)

    def _hold_back(self) -> None:
        """Let who writes wait for the disk, where that is behind."""
        begin = time.perf_counter()
        self._wait(self._waiting)
        if self._waited is not None:
            self._waited("write", time.perf_counter() - begin)

    def _take(self, content: bytes | None) -> None:
        if content is not None and self._tif is not None:
            with timed(self._meter, "write", len(content)):
                how = self._tags(first=self._end == 0) | {"shape": self.metadata.shape[-2:]}
                self._tif.write(iter([content]), contiguous=False, **how)
            self._end += len(content)

    def _tags(self, *, first: bool) -> dict[str, Any]:
        """What tifffile is told of the first plane and those after it, or of one of those alone."""
        metadata = self.metadata
        tags = metadata.tiff or TiffTags()
        resolution = tags.resolution
        if metadata.kind == "imagej" and metadata.pixel_size and pixel_size(resolution) != metadata.pixel_size:
            row, column = metadata.pixel_size
            resolution = Resolution(_pixels_per_unit(column), _pixels_per_unit(row), _NO_UNIT)
        resolution = resolution or Resolution((1, 1), (1, 1), _NO_UNIT)
        found: dict[str, Any] = {
            "dtype": metadata.dtype,
            "photometric": tags.photometric,
            "resolution": (resolution.x, resolution.y),
            "resolutionunit": resolution.unit,
            "software": _SOFTWARE,
            "metadata": None,
        }
        if self._compression is not None:
            found |= {"compression": self._compression, "predictor": metadata.dtype.kind in "iu"}
            found["rowsperstrip"] = metadata.shape[-2]
        if tags.colormap is not None:
            found["colormap"] = np.array(tags.colormap, np.uint16).reshape(3, -1)
        extra: list[tuple[int, int, int | None, Any, bool]] = []
        if first and (description := self._description()) is not None:
            found["description"] = description
        if first and metadata.kept is not None:
            axis, kept = metadata.kept
            extra.append((_DOCUMENT_NAME, _ASCII, None, f"frames {runs_of(kept)} of the input along {axis}", True))
        if first and metadata.kind == "imagej" and tags.imagej is not None and self._labels_fit():
            counts, block = tags.imagej
            extra += [(_IMAGEJ_COUNTS, _LONG, len(counts), counts, True)]
            extra += [(_IMAGEJ_BLOCK, _BYTE, len(block), block, True)]
        return found | {"extratags": extra}

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
        return math.prod(parse_imagej(self.path, tags.description, found=0)[0].values()) == self.metadata.planes

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


def write_at(descriptor: int, parts: Sequence[memoryview], offset: int) -> None:
    """Write buffers one after the other to a place in a file, all of them."""
    total, done, left = sum(part.nbytes for part in parts), 0, list(parts)
    while (done := done + write_from(descriptor, left, offset + done)) < total:
        left = [memoryview(b"".join(parts))[done:]]


def _pixels_per_unit(size: float) -> tuple[int, int]:
    """Rational number for a resolution tag, such that its inverse is `size` again."""
    fraction = (
        Fraction(size).limit_denominator(10**6) if size > 1e-2 else 1 / Fraction(1 / size).limit_denominator(10**6)
    )
    pixels = fraction.denominator, fraction.numerator
    if max(pixels) >= 2**32:
        raise ArgumentError(f"a pixel size of {size} cannot be stored in a TIFF resolution tag; use another unit")
    return pixels
