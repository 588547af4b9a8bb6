"""One file checked, whose kind is told by its content and not by its name; one channel of it, as if it had no other."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Self, TypeAlias

import numpy as np

from xcorr_app.errors import ArgumentError, DamagedFileError, InputError
from xcorr_app.io.declared import Limits
from xcorr_app.io.formats import HEAD_BYTES, format_of
from xcorr_app.io.images import npy, pictures
from xcorr_app.io.names import split_inner
from xcorr_app.io.ome_zarr.zarr_image import is_zarr, scan_zarr
from xcorr_app.io.opened import opened, parsing, stamp
from xcorr_app.io.source import ImageFile, StackMetadata
from xcorr_app.io.tiff.ome import edited, is_ome, keep_one_channel
from xcorr_app.io.tiff.ome_set import is_set, scan_ome_set
from xcorr_app.io.tiff.pages import is_colour
from xcorr_app.io.tiff.tiff_directory import MARKS, Directory, DirectoryReader
from xcorr_app.io.tiff.tiff_scan import scan_pages
from xcorr_app.system import read_at

_MICROSCOPE = "convert it to OME-TIFF with Fiji (Bio-Formats) or bfconvert"
_ARRAYS = "save the array as .npy or TIFF"
_VIDEO = "save its frames as TIFF, for example with Fiji or ffmpeg"
_PICTURE = "save it as TIFF or PNG"

_MAGIC: tuple[tuple[int, bytes, str, str], ...] = (
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an OLE file (Olympus OIB, Zeiss ZVI, old Office)", _MICROSCOPE),
    (0, b"\x00\x00\x00\x03\x00", "a Gatan DM3 file", _MICROSCOPE),
    (0, b"\x00\x00\x00\x04\x00", "a Gatan DM4 file", _MICROSCOPE),
    (128, b"DICM", "a DICOM file", _MICROSCOPE),
    (344, b"n+1\x00", "a NIfTI file", _MICROSCOPE),
    (0, b"NRRD0", "an NRRD file", _MICROSCOPE),
    (0, b"SIMPLE  =", "a FITS file", _MICROSCOPE),
    (0, b"MATLAB ", "a MATLAB file", _ARRAYS),
    (0, b"GIF8", "a GIF image", _PICTURE),
    (0, b"\x00\x00\x00\x0cjP  ", "a JPEG 2000 image", _PICTURE),
    (0, b"\x00\x00\x00\x0cJXL ", "a JPEG XL image", _PICTURE),
    (0, b"\xff\x0a", "a JPEG XL image", _PICTURE),
    (8, b"WEBP", "a WebP image", _PICTURE),
    (4, b"ftypheic", "a HEIC image", _PICTURE),
    (4, b"ftypavif", "an AVIF image", _PICTURE),
    (0, b"\x1aE\xdf\xa3", "a Matroska or WebM video", _VIDEO),
    (0, b"%PDF", "a PDF document", _PICTURE),
    (0, b"PK\x03\x04", "an archive (ZIP, .npz, Office)", "unpack it, or save one array by numpy.save as .npy"),
    (0, b"\x1f\x8b", "a gzip archive", "unpack it"),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive", "unpack it"),
    (0, b"Rar!", "a RAR archive", "unpack it"),
)


def refused_kind(head: bytes) -> str | None:
    """Name the kind of file that begins with `head` and what would convert it; None where it is not known."""
    for offset, magic, name, remedy in _MAGIC:
        if head[offset : offset + len(magic)] == magic:
            return f"{name}, which is not read; {remedy}"
    return None


def described_others(paths: Iterable[Path]) -> str:
    """Say what lies where no image was found; empty where nothing does."""
    found = Counter(path.suffix.lower() for path in paths if path.suffix)
    listed = ", ".join(f"{number} {suffix}" for suffix, number in found.most_common(_SHOWN))
    return f"; what it holds ({listed}) is not read; if it is of a microscope, {_MICROSCOPE}" if listed else ""


_DESCRIPTION = 270
_LSM_INFO = 34412
_SHOWN = 5


Scan: TypeAlias = Callable[[Path, Limits], ImageFile]
"""Checks one file without reading its pixels; raises InputError, DamagedFileError or LimitError."""

_KINDS: tuple[tuple[bytes, Callable[..., ImageFile]], ...] = (
    (pictures.PNG, pictures.scan_png),
    (npy.SIGNATURE, npy.scan_npy),
    (pictures.JPEG, pictures.scan_jpeg),
    (pictures.BMP, pictures.scan_bmp),
)


def scan_file(path: Path, limits: Limits | None = None, *, colour: bool = False) -> ImageFile:
    """Check one TIFF, PNG, BMP, JPEG, ``.npy`` or OME-Zarr file, or one of `formats`; no pixel is read.

    Colour images are refused unless `colour` asks for them, and then have three samples a pixel. Whatever a parser
    raises is a `DamagedFileError` of the file.
    """
    limits = limits or Limits()
    if is_zarr(path):
        return scan_zarr(path, limits)
    file, inner = split_inner(path)
    with opened(file) as descriptor:
        head = read_at(descriptor, HEAD_BYTES, 0)
    with parsing(path):
        if (found := format_of(head)) is not None:
            image: ImageFile = found.reader.scan(file, inner, limits, colour=colour)
            return image
        for signature, scan in _KINDS:
            if head.startswith(signature):
                return scan(path, limits, colour=colour)
        if head[:4] in MARKS:
            return _scan_tiff(path, limits, colour=colour)
        if not head:
            raise DamagedFileError(f"{path}: is empty (0 bytes)")
        kind = refused_kind(head)
        if kind is not None:
            raise InputError(f"{path}: is {kind}")
        raise DamagedFileError(
            f"{path}: is not a TIFF file (starts with {head[:4]!r}), nor PNG, BMP, JPEG or .npy; save it as TIFF"
        )


def _scan_tiff(path: Path, limits: Limits, *, colour: bool) -> ImageFile:
    with opened(path) as descriptor:
        reader = DirectoryReader(descriptor, path)
        first = reader.directory_at(reader.first) if reader.first else Directory(0, 0, {})
        if _LSM_INFO in first.tags:
            raise InputError(
                f"{path}: is a Zeiss LSM file; convert it to OME-TIFF with Fiji (Bio-Formats) or bfconvert"
            )
        description = reader.content(first, _DESCRIPTION)
        if is_set(path, description):
            return scan_ome_set(path, description, limits)
        return scan_pages(reader, stamp(descriptor), limits, colour=colour and is_colour(reader, first))


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
        return PickedImage.of(file, _COLOURS.index(channel) if channel in _COLOURS else channel)
    if channels == 1 and (lenient or channel in (_GRAY, 0)):
        return file
    if isinstance(channel, str):
        what = f"has {channels} channels: give the number of one" if channels > 1 else "is a grey image: leave it out"
        raise InputError(f"{path}: has no colours for --channel {channel}; it {what}")
    if channel >= channels:
        if channels == 1:
            raise InputError(f"{path}: has one channel; leave --channel {channel} out")
        raise InputError(f"{path}: has {channels} channels: --channel counts from 0, up to {channels - 1}")
    return PickedImage.of(file, channel)


@dataclass(frozen=True, eq=False)
class PickedImage(ImageFile):
    """One channel of a file, whose pages are counted by themselves."""

    path: Path
    metadata: StackMetadata
    file: ImageFile
    channel: Channel
    """Its number, or ``gray``."""

    @classmethod
    def of(cls, file: ImageFile, channel: Channel) -> Self:
        """Pick a channel; what is known of the stack is without the axis C."""
        old, tags = file.metadata, file.metadata.tiff
        names = (old.channel_names[channel],) if old.channel_names and isinstance(channel, int) else ()
        if tags is not None and is_ome(tags.description) and isinstance(channel, int):
            description = edited(tags.description, partial(keep_one_channel, channel=channel))
            tags = replace(tags, description=description)
        axes = old.axes.replace("C", "")
        shape = tuple(old.sizes[axis] for axis in axes)
        return cls(file.path, replace(old, axes=axes, shape=shape, channel_names=names, tiff=tags), file, channel)

    @property
    def parts(self) -> Sequence[ImageFile]:
        """The files that the image is in."""
        return self.file.parts

    def page_at(self, t: int, z: int, _c: int) -> int:
        """Page of a plane."""
        return t * self.metadata.sizes["Z"] + z

    def origin(self, page: int) -> tuple[Path, int]:
        """File that holds a page, and page within it."""
        return self.file.origin(self._page_in_file(page))

    def read(self, page: int) -> np.ndarray:
        """Read a page, (Y, X)."""
        plane = self.file.read(self._page_in_file(page))
        if self.file.samples == 1:
            return plane
        if isinstance(self.channel, int):
            return np.ascontiguousarray(plane[self.channel])
        gray = np.tensordot(_LUMA, plane.astype(np.float64), 1)
        return (np.rint(gray) if plane.dtype.kind in "iu" else gray).astype(plane.dtype)

    def _page_in_file(self, page: int) -> int:
        t, z = divmod(page, self.metadata.sizes["Z"])
        return self.file.page_at(t, z, 0 if self.file.samples > 1 else int(self.channel))
