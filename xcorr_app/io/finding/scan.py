"""One file checked, whose kind is told by its content and not by its name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from xcorr_app.errors import DamagedFileError, InputError
from xcorr_app.io.container_paths import split_inner
from xcorr_app.io.finding.unsupported_kinds import HEAD_BYTES, refused_kind
from xcorr_app.io.formats import format_of
from xcorr_app.io.images import bmp, jpeg, npy, png
from xcorr_app.io.limits import Limits
from xcorr_app.io.ome_zarr.zarr_image import scan_zarr
from xcorr_app.io.ome_zarr.zarr_store import is_zarr
from xcorr_app.io.parsing import parsing
from xcorr_app.io.tiff.integrity import is_colour
from xcorr_app.io.tiff.lsm import is_lsm, scan_lsm
from xcorr_app.io.tiff.ome_set import is_set, scan_ome_set
from xcorr_app.io.tiff.tiff import opened, stamp
from xcorr_app.io.tiff.tiff_directory import MARKS, Directory, DirectoryReader
from xcorr_app.io.tiff.tiff_scan import scan_pages
from xcorr_app.system import read_at

if TYPE_CHECKING:
    from pathlib import Path

    from xcorr_app.io.source import ImageFile


_DESCRIPTION = 270


class Scan(Protocol):
    """Checks one file without reading its pixels; raises InputError, DamagedFileError or LimitError."""

    def __call__(self, path: Path, limits: Limits) -> ImageFile:
        """Check one file."""


class _ScanKind(Protocol):
    def __call__(self, path: Path, limits: Limits, *, colour: bool) -> ImageFile: ...


_KINDS: tuple[tuple[bytes, _ScanKind], ...] = (
    (png.SIGNATURE, png.scan_png),
    (npy.SIGNATURE, npy.scan_npy),
    (jpeg.SIGNATURE, jpeg.scan_jpeg),
    (bmp.SIGNATURE, bmp.scan_bmp),
)


def scan_file(path: Path, limits: Limits | None = None, *, colour: bool = False) -> ImageFile:
    """Check one TIFF, LSM, PNG, BMP, JPEG, ``.npy`` or OME-Zarr file, or one of `formats`; no pixel is read.

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
            return found.scan(file, inner, limits, colour=colour)
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
        if is_lsm(first):
            return scan_lsm(path, limits)
        description = reader.content(first, _DESCRIPTION)
        if is_set(path, description):
            return scan_ome_set(path, description, limits)
        return scan_pages(reader, stamp(descriptor), limits, colour=colour and is_colour(reader, first))
