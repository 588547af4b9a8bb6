"""Zeiss LSM files: TIFF whose pages hold one plane a channel, each followed by a thumbnail.

Source: LSM file format description (Carl Zeiss 2005), as tifffile reads it; the order of planes is T, Z, C.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import tifffile

from xcorr_app.errors import DamagedFileError, InputError
from xcorr_app.io.limits import SPARE
from xcorr_app.io.source import make_metadata
from xcorr_app.io.tiff.tiff import TiffImage, opened, stamp
from xcorr_app.io.tiff.tiff_directory import Directory, DirectoryReader

if TYPE_CHECKING:
    from pathlib import Path

    from xcorr_app.io.limits import Limits

_LSM_INFO, _SUBFILE = 34412, 254
_WIDTH, _HEIGHT, _BITS, _COMPRESSION, _OFFSETS, _SAMPLES, _COUNTS = 256, 257, 258, 259, 273, 277, 279
_LARGEST = 2**32
_STACK_SCANS = (0, 3, 6)
"""Kinds of scan whose pages are planes of rows and columns: z stack, time series, time series of z stacks."""
_CONVERT = "convert it to OME-TIFF with Fiji (Bio-Formats) or bfconvert"
_METRES_TO_UM = 1e6


@dataclass(frozen=True)
class _Plane:
    height: int
    width: int
    dtype: np.dtype
    offsets: tuple[int, ...]
    """Byte of every channel."""


def is_lsm(first: Directory) -> bool:
    """Tell whether a TIFF file is a Zeiss LSM file."""
    return _LSM_INFO in first.tags


def scan_lsm(path: Path, limits: Limits) -> TiffImage:
    """Check an LSM file against everything it declares, without reading pixels."""
    planes: list[_Plane] = []
    directories: list[int] = []
    with opened(path) as descriptor:
        reader, mark = DirectoryReader(descriptor, path), stamp(descriptor)
        if mark[0] >= _LARGEST:
            raise InputError(f"{path}: is an LSM file of more than 4 GiB, whose offsets are not reliable; {_CONVERT}")
        info: dict[str, Any] = {}
        for directory in reader.directories(limits):
            info = info or _info(reader.content(directory, _LSM_INFO), reader.byteorder)
            if (reader.numbers(directory, _SUBFILE) or (0,))[0] & 1:
                continue  # a thumbnail
            planes.append(_check_page(reader, directory, limits))
            directories.append(directory.offset)
            if planes[-1].height != planes[0].height or planes[-1].width != planes[0].width:
                raise InputError(f"{path}: page {directory.index} has another size than page 0; {_CONVERT}")
    if not planes:
        raise DamagedFileError(f"{path}: holds no image but thumbnails")
    first = planes[0]
    channels = len(first.offsets)
    sizes = {"T": _size(info, "Time"), "Z": _size(info, "Z"), "C": channels, "Y": first.height, "X": first.width}
    others = max(_size(info, "P"), _size(info, "M"))
    if others > 1 or info.get("ScanType") not in _STACK_SCANS:
        raise InputError(f"{path}: is an LSM file of several positions, tiles or lines, which is not read; {_CONVERT}")
    if sizes["T"] * sizes["Z"] != len(planes) or any(len(plane.offsets) != channels for plane in planes):
        raise DamagedFileError(
            f"{path}: declares T={sizes['T']} x Z={sizes['Z']} planes of {channels} channels, the file has "
            f"{len(planes)} pages; it is cut short: copy it again"
        )
    count = len(planes) * channels
    limits.check_pages(path, count)
    y, x, z = (_positive(info.get(f"VoxelSize{axis}"), _METRES_TO_UM) for axis in "YXZ")
    increment = _positive(info.get("TimeIntervall"), 1.0)
    metadata = replace(
        make_metadata(sizes, "TZCYX", first.dtype, "ome"),
        pixel_size=(y, x) if y and x else None,
        unit="µm" if y and x else None,
        z_step=z,
        z_unit="µm" if z else None,
        time_increment=increment,
        time_unit="s" if increment else None,
    )
    return TiffImage(
        path=path,
        metadata=metadata,
        directory_offsets=np.repeat(np.array(directories, np.int64), channels),
        data_offsets=np.array([offset for plane in planes for offset in plane.offsets], np.int64),
        page_map=np.arange(count).reshape(sizes["T"], sizes["Z"], channels),
        byteorder=reader.byteorder,
        stamp=mark,
    )


def _check_page(reader: DirectoryReader, directory: Directory, limits: Limits) -> _Plane:
    where = f"{reader.path}: page {directory.index}"

    def numbers(code: int, default: int) -> tuple[int, ...]:
        return reader.numbers(directory, code) or (default,)

    height, width, samples = numbers(_HEIGHT, 0)[0], numbers(_WIDTH, 0)[0], numbers(_SAMPLES, 1)[0]
    if height < 1 or width < 1 or samples < 1:
        raise DamagedFileError(f"{where} declares {samples} channels of {height} x {width} pixels")
    bits = set(numbers(_BITS, 1))
    names = {8: "uint8", 16: "uint16", 32: "float32"}
    name = names.get(min(bits)) if len(bits) == 1 else None
    if name is None or numbers(_COMPRESSION, 1)[0] != 1:
        raise InputError(f"{where} of an LSM file is compressed or of {bits} bits, which is not read; {_CONVERT}")
    dtype = np.dtype(name)
    limits.check_plane(reader.path, height, width, dtype)
    offsets, counts = numbers(_OFFSETS, 0), numbers(_COUNTS, 0)
    size = height * width * dtype.itemsize
    if len(offsets) != samples or len(counts) != samples:
        raise InputError(f"{where} of an LSM file keeps its {samples} channels in {len(offsets)} strips; {_CONVERT}")
    for offset, count in zip(offsets, counts, strict=True):
        if offset < 8 or not size <= count <= size + SPARE or offset + size > reader.size:
            raise DamagedFileError(
                f"{where} needs {size} bytes a channel, {count} are declared from byte {offset} of {reader.size}; it "
                "is cut short or damaged"
            )
    return _Plane(height, width, dtype, offsets)


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


def _positive(value: Any, factor: float) -> float | None:
    number = float(value or 0.0) * factor
    return number if 0 < number < float("inf") else None
