"""Zeiss LSM files: TIFF whose pages hold one plane a channel, each followed by a thumbnail.

Source: LSM file format description (Carl Zeiss 2005), as tifffile reads it; the order of planes is T, Z, C.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import tifffile

from xcorr_app.errors import DamagedFileError, InputError
from xcorr_app.io.opened import opened, positive, stamp
from xcorr_app.io.source import calibration, make_metadata
from xcorr_app.io.tiff.pages import stored_page
from xcorr_app.io.tiff.tiff import TiffImage
from xcorr_app.io.tiff.tiff_directory import Directory, DirectoryReader

if TYPE_CHECKING:
    from pathlib import Path

    from xcorr_app.io.declared import Limits

_LSM_INFO, _SUBFILE = 34412, 254
_LARGEST = 2**32
_STACK_SCANS = (0, 3, 6)
"""Kinds of scan whose pages are planes of rows and columns: z stack, time series, time series of z stacks."""
_TYPES = ("uint8", "uint16", "uint32")
_CONVERT = "convert it to OME-TIFF with Fiji (Bio-Formats) or bfconvert"
_METRES_TO_UM = 1e6


def is_lsm(first: Directory) -> bool:
    """Tell whether a TIFF file is a Zeiss LSM file."""
    return _LSM_INFO in first.tags


def scan_lsm(path: Path, limits: Limits) -> TiffImage:
    """Check an LSM file against everything it declares, without reading pixels."""
    with opened(path) as descriptor:
        reader, mark = DirectoryReader(descriptor, path), stamp(descriptor)
        if mark[0] >= _LARGEST:
            raise InputError(f"{path}: is an LSM file of more than 4 GiB, whose offsets are not reliable; {_CONVERT}")
        info = _info(reader.content(reader.directory_at(reader.first), _LSM_INFO), reader.byteorder)
        offsets = [each.offset for each in reader.walk(limits)]
        directories = [reader.directory_at(offset) for offset in offsets]
        pages = {
            each.offset: stored_page(reader, each, limits)
            for each in directories
            if not reader.number(each, _SUBFILE, 0) & 1  # a thumbnail
        }
    if not pages:
        raise DamagedFileError(f"{path}: holds no image but thumbnails")
    first = next(iter(pages.values()))
    kind, channels = first._replace(offsets=(), counts=(), data_offset=0), first.samples
    if first.compression != 1 or len(first.offsets) != channels or first.dtype.name not in _TYPES:
        raise InputError(f"{path}: is compressed, of {first.dtype}, or keeps its channels in strips; {_CONVERT}")
    if any(page._replace(offsets=(), counts=(), data_offset=0) != kind for page in pages.values()):
        raise InputError(f"{path}: has pages of several sizes or types; {_CONVERT}")
    sizes = {"T": _size(info, "Time"), "Z": _size(info, "Z"), "C": channels, "Y": first.height, "X": first.width}
    others = max(_size(info, "P"), _size(info, "M"))
    if others > 1 or int(info.get("ScanType", -1)) not in _STACK_SCANS:
        raise InputError(f"{path}: is an LSM file of several positions, tiles or lines, which is not read; {_CONVERT}")
    if sizes["T"] * sizes["Z"] != len(pages):
        raise DamagedFileError(
            f"{path}: declares T={sizes['T']} x Z={sizes['Z']} planes of {channels} channels, the file has "
            f"{len(pages)} pages; it is cut short: copy it again"
        )
    count = len(pages) * channels
    limits.check_pages(path, count)
    y, x, z = (positive(info.get(f"VoxelSize{axis}", 0) * _METRES_TO_UM) for axis in "YXZ")
    dtype = np.dtype(np.float32) if first.dtype.itemsize == 4 else first.dtype
    known = calibration((y, x), "µm", (z, "µm"), (positive(info.get("TimeIntervall")), "s"))
    metadata = replace(make_metadata(sizes, "TZCYX", dtype, "ome"), **known)
    return TiffImage(
        path=path,
        metadata=metadata,
        directory_offsets=np.repeat(np.array(list(pages), np.int64), channels),
        data_offsets=np.array([offset for page in pages.values() for offset in page.offsets], np.int64),
        page_map=np.arange(count).reshape(sizes["T"], sizes["Z"], channels),
        byteorder=reader.byteorder,
        stamp=mark,
    )


def _info(content: bytes, byteorder: Literal["<", ">"]) -> dict[str, Any]:
    """Values of Zeiss' structure, as far as the file has it: older programs wrote shorter ones."""
    known: dict[str, Any] = {}
    offset = 0
    for name, kind in tifffile.TIFF.CZ_LSMINFO:
        dtype = np.dtype(kind).newbyteorder(byteorder)
        if dtype.subdtype is not None or offset + dtype.itemsize > len(content):
            break
        known[name] = np.frombuffer(content, dtype, 1, offset)[0].item()
        offset += dtype.itemsize
    return known


def _size(info: dict[str, Any], axis: str) -> int:
    return max(1, int(info.get(f"Dimension{axis}", 1)))
