"""OME-XML of an OME-TIFF: which plane is which page, calibration, and the way back.

The XML that came with the file is kept and only brought up to date, so instrument, channel colours, positions
and annotations survive. Source: OME data model 2016-06, https://docs.openmicroscopy.org/ome-model/6.3.1/.
"""

import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path, PurePath
from typing import Any, NamedTuple

import numpy as np

from xcorr_app.errors import DamagedFileError, InputError
from xcorr_app.io.opened import bounded_int, parsing, positive
from xcorr_app.io.source import StackMetadata, calibration

_NAMESPACE = "http://www.openmicroscopy.org/Schemas/OME/2016-06"
_EMPTY = f'<OME xmlns="{_NAMESPACE}" Creator="xcorr"><Image ID="Image:0"><Pixels ID="Pixels:0"/></Image></OME>'
_TYPE_NAMES = {"float32": "float", "float64": "double"}
_DEEPEST = 100
_MANY = 10**17
"""More planes than any image has."""
_XML_START = '<?xml version="1.0" encoding="UTF-8"?>'


_SPACE = rb"(?:\xef\xbb\xbf|\s)*"
_BEFORE_ROOT = re.compile(_SPACE + rb"(<!--|<\?|<!DOCTYPE[^\[>]*\[|<!DOCTYPE)")
_ENDS = {b"<!--": b"-->", b"<?": b"?>", b"<!DOCTYPE": b">"}
_ROOT = re.compile(_SPACE + rb"<(?:[\w.-]+:)?OME[\s/>]")


class OmeInfo(NamedTuple):
    """Sizes, order, calibration, and the number of the file and the page within it of every plane, [t, z, c]."""

    sizes: dict[str, int]
    order: str
    files: np.ndarray
    pages: np.ndarray
    calibration: dict[str, Any]
    """See :func:`xcorr_app.io.source.calibration`."""
    channel_names: tuple[str, ...]


def is_ome(description: bytes) -> bool:
    """Tell whether an ImageDescription is OME-XML: its first element, after whatever prolog, is called so."""
    place = 0
    while match := _BEFORE_ROOT.match(description, place):
        end = _ENDS.get(match[1], b"]>")  # of a type with entities
        place = description.find(end, match.end())
        if place < 0:
            return False
        place += len(end)
    return _ROOT.match(description, place) is not None


def parse_ome(
    path: Path, root: ET.Element, counts: dict[str, int], plane: tuple[int, ...], samples: int = 1
) -> OmeInfo:
    """Read OME-XML and compare what it declares with the files that hold its planes, each of so many pages.

    A `plane` has so many rows and columns. Colour images have `samples` values a pixel, which OME counts as channels;
    they are left out of the sizes.
    """
    images = root.findall("{*}Image")
    if len(images) != 1:
        raise InputError(f"{path}: holds {len(images)} OME images; export each as a file of its own")
    pixels = images[0].find("{*}Pixels")
    if pixels is None:
        raise DamagedFileError(f"{path}: its OME-XML has no Pixels element")
    try:
        sizes = {axis: bounded_int(pixels.get(f"Size{axis}", "")) for axis in "TZCYX"}
    except ValueError as error:
        raise DamagedFileError(f"{path}: its OME-XML does not give all five sizes ({error})") from error
    dimension_order = pixels.get("DimensionOrder", "XYCZT")
    if sorted(dimension_order) != sorted("XYCZT") or not dimension_order.startswith("XY"):
        raise DamagedFileError(f"{path}: its OME-XML has DimensionOrder {dimension_order!r}")
    if samples > 1:
        if sizes["C"] != samples:
            raise InputError(f"{path}: has {sizes['C']} channels in colour images; save it with one plane a channel")
        sizes["C"] = 1
    planes, found = sizes["T"] * sizes["Z"] * sizes["C"], sum(counts.values())
    if min(sizes.values()) < 1 or planes > found or (len(counts) == 1 and planes < found):
        raise DamagedFileError(
            f"{path}: its OME-XML declares T={sizes['T']} x Z={sizes['Z']} x C={sizes['C']} = {planes} planes, "
            f"the file has {found} pages"
        )
    if (sizes["Y"], sizes["X"]) != plane:
        raise DamagedFileError(
            f"{path}: its OME-XML declares planes of {sizes['Y']} x {sizes['X']}, the pages are {plane[0]} x {plane[1]}"
        )
    _check_planes(path, pixels)
    order = dimension_order[::-1]
    places = _places(path, tiff_blocks(path, root, pixels), sizes, order[:3], counts)
    unit, other_unit = (pixels.get(f"PhysicalSize{axis}Unit", "µm") for axis in "YX")
    y, x, z = (positive(pixels.get(f"PhysicalSize{axis}")) for axis in "YXZ")
    z_unit, time = pixels.get("PhysicalSizeZUnit", "µm"), positive(pixels.get("TimeIncrement"))
    time_unit = pixels.get("TimeIncrementUnit", "s")
    pixel = (y, x) if unit == other_unit else (None, None)
    names = tuple(child.get("Name", "") for child in pixels.iterfind("{*}Channel"))
    names = names if len(names) == sizes["C"] and any(names) else ()
    return OmeInfo(sizes, order, *places, calibration(pixel, unit, (z, z_unit), (time, time_unit)), names)


def build_ome(metadata: StackMetadata, *, big_endian: bool) -> bytes:
    """Write the OME-XML of a stack whose planes are stored in the order of its axes.

    No date and no identifier is invented, so the same stack gives the same bytes.
    """
    old = metadata.tiff.description if metadata.tiff and is_ome(metadata.tiff.description) else _EMPTY.encode()
    root = ET.fromstring(old.rstrip(b"\0"))  # noqa: S314 - checked when it was read
    root.attrib.pop("UUID", None)  # it named the original file
    image = root.find("{*}Image")
    pixels = None if image is None else image.find("{*}Pixels")
    if pixels is None:
        raise ValueError("OME-XML without Pixels")
    space = root.tag.partition("}")[0] + "}" if root.tag.startswith("{") else ""
    sizes = metadata.sizes
    stored = metadata.axes[:-2][::-1]
    order = stored + "".join(axis for axis in "CZT" if axis not in stored)
    pixels.attrib.pop("Interleaved", None)
    pixels.set("DimensionOrder", "XY" + order)
    stored_type = _TYPE_NAMES.get(metadata.dtype.name, metadata.dtype.name)
    if pixels.get("Type") != stored_type:
        pixels.attrib.pop("SignificantBits", None)  # of a type that is no longer stored
    pixels.set("Type", stored_type)
    pixels.set("BigEndian", "true" if big_endian else "false")
    for axis in "XYZCT":
        pixels.set(f"Size{axis}", str(sizes[axis]))
    _calibrate(pixels, metadata)
    _renew_children(pixels, metadata, space)
    use_default_namespace(root)
    return (_XML_START + ET.tostring(root, encoding="unicode")).encode()


def edited(description: bytes, edit: Callable[[ET.Element], None]) -> bytes:
    """Return OME-XML whose Pixels were edited."""
    root = ET.fromstring(description.rstrip(b"\0"))  # noqa: S314 - checked when it was read
    for pixels in root.iterfind("{*}Image/{*}Pixels"):
        edit(pixels)
    use_default_namespace(root)
    return ET.tostring(root)


def keep_one_channel(pixels: ET.Element, channel: int) -> None:
    """Let them speak of one of their channels alone, as the first."""
    for index, child in enumerate(pixels.findall("{*}Channel")):
        if index != channel:
            pixels.remove(child)
    for child in pixels.findall("{*}Plane"):
        if child.get("TheC", "0") == str(channel):
            child.set("TheC", "0")
        else:
            pixels.remove(child)
    pixels.set("SizeC", "1")


def use_default_namespace(root: ET.Element) -> None:
    """Make the main name space the default one, by which OME-XML is known; ElementTree would call it ns0."""
    space = root.tag.partition("}")[0] + "}" if root.tag.startswith("{") else ""
    if space:
        for element in root.iter():
            element.tag = element.tag.removeprefix(space)
        root.set("xmlns", space[1:-1])


def _calibrate(pixels: ET.Element, metadata: StackMetadata) -> None:
    size = metadata.pixel_size or (None, None)
    for name, value, unit in (
        ("PhysicalSizeX", size[1], metadata.unit),
        ("PhysicalSizeY", size[0], metadata.unit),
        ("PhysicalSizeZ", metadata.z_step, metadata.z_unit),
        ("TimeIncrement", metadata.time_increment, metadata.time_unit),
    ):
        if value is not None:
            if positive(pixels.get(name)) != value:
                pixels.set(name, repr(float(value)))
            if unit is not None:
                pixels.set(f"{name}Unit", unit)
        elif metadata.kept is not None and name == {"T": "TimeIncrement", "Z": "PhysicalSizeZ"}[metadata.kept[0]]:
            pixels.attrib.pop(name, None)


def _renew_children(pixels: ET.Element, metadata: StackMetadata, space: str) -> None:
    sizes = metadata.sizes
    channels = pixels.findall("{*}Channel")
    limits = {"TheT": sizes["T"], "TheZ": sizes["Z"], "TheC": sizes["C"]}
    for child in list(pixels):
        kind = child.tag.rpartition("}")[2]
        if metadata.kept is not None and kind == "Plane":
            axis, kept = metadata.kept
            number = int(child.get(f"The{axis}", "0"))
            # What was said of a frame is said of it where it is now; of one that was left out, nowhere.
            child.set(f"The{axis}", str(kept.index(number) if number in kept else sizes[axis]))
        beyond = kind == "Plane" and any(int(child.get(name, "0")) >= size for name, size in limits.items())
        if beyond or kind in ("Channel", "BinData", "TiffData", "MetadataOnly"):
            pixels.remove(child)
    channels = channels[: sizes["C"]]
    for index in range(len(channels), sizes["C"]):
        channels.append(ET.Element(f"{space}Channel", {"ID": f"Channel:0:{index}", "SamplesPerPixel": "1"}))
    for channel, name in zip(channels, metadata.channel_names, strict=False):
        if name:
            channel.set("Name", name)
    block = ET.Element(f"{space}TiffData", {"IFD": "0", "PlaneCount": str(metadata.planes)})
    pixels[:0] = [*channels, block]


class TiffBlock(NamedTuple):
    """Planes that follow each other in one file."""

    file: str
    """Its name, in the folder of whatever file names it."""
    first: int
    number: int
    start: dict[str, int]

    def planes(self, sizes: dict[str, int], order: str) -> tuple[np.ndarray, ...]:
        """Places t, z and c of its planes, the last axis of `order` fastest, up to the end of the stack."""
        shape, start = [sizes[axis] for axis in order], [self.start[axis] for axis in order]
        if any(not 0 <= index < size for index, size in zip(start, shape, strict=True)):
            return (np.array([], np.int64),) * 3
        first, total = int(np.ravel_multi_index(start, shape)), math.prod(shape)
        at = dict(zip(order, np.unravel_index(np.arange(first, min(first + self.number, total)), shape), strict=True))
        return at["T"], at["Z"], at["C"]


def tiff_blocks(path: Path, root: ET.Element, pixels: ET.Element) -> list[TiffBlock]:
    """Where an image says that its planes are."""
    own, found = root.get("UUID"), []
    for block in pixels.findall("{*}TiffData") or [ET.Element("TiffData")]:
        named = block.find("{*}UUID")
        other = None if named is None or (named.text or "").strip() == own else named.get("FileName", "another file")
        # One that does not say how many it has is of one plane where it says which, else of all.
        count = block.get("PlaneCount", str(_MANY) if other is None and not block.get("IFD") else "1")
        name = path.name if other is None else plain_name(path, other)
        with parsing(path, "its OME-XML has a TiffData element that cannot be read"):
            start = {axis: bounded_int(block.get(f"First{axis}", "0")) for axis in "TZC"}
            found.append(TiffBlock(name, bounded_int(block.get("IFD", "0")), bounded_int(count), start))
    return found


def plain_name(path: Path, name: str) -> str:
    """Name of another file of the same folder; raises DamagedFileError where it leads elsewhere."""
    if not name or PurePath(name).name != name:
        raise DamagedFileError(f"{path}: its OME-XML names a file {name[:80]!r}, which is not one of its folder")
    return name


def _places(
    path: Path, blocks: list[TiffBlock], sizes: dict[str, int], order: str, counts: dict[str, int]
) -> tuple[np.ndarray, np.ndarray]:
    """Number of the file, and page within it, of every plane [t, z, c]."""
    shape = tuple(sizes[axis] for axis in "TZC")
    files, pages = np.full(shape, -1, np.int64), np.zeros(shape, np.int64)
    for block in blocks:
        number, where = list(counts).index(block.file), block.planes(sizes, order)
        within = block.first + np.arange(len(where[0]))
        if ((files[where] >= 0) & ((files[where] != number) | (pages[where] != within))).any():
            raise DamagedFileError(f"{path}: its OME-XML gives a plane two places, one in {block.file}")
        if within.size and within[-1] >= counts[block.file]:
            raise DamagedFileError(f"{path.with_name(block.file)}: has no page {within[-1]}, which its OME-XML needs")
        files[where], pages[where] = number, within
    missing = int(np.count_nonzero(files < 0))
    if missing or len(np.unique(files * (int(pages.max()) + 1) + pages)) != pages.size:
        raise DamagedFileError(
            f"{path}: its OME-XML declares {pages.size} planes but does not give each a page of its own "
            f"({missing} have none)"
        )
    return files, pages


def parse_xml(path: Path, description: bytes) -> ET.Element:
    """Parse OME-XML that defines no entities and is not nested without end."""
    if b"<!DOCTYPE" in description or b"<!ENTITY" in description:
        raise DamagedFileError(f"{path}: its OME-XML defines entities, which is refused")
    with parsing(path, "its OME-XML cannot be parsed"):
        root = ET.fromstring(description.rstrip(b"\0"))  # noqa: S314 - no entities, see above
        layer, depth = [root], 0
        while layer:
            layer, depth = [child for element in layer for child in element], depth + 1
            if depth > _DEEPEST:  # writing it again recurses
                raise ValueError(f"elements are nested more than {_DEEPEST} deep")
    return root


def _check_planes(path: Path, pixels: ET.Element) -> None:
    """Positions of planes are whole numbers: what writes them back compares them."""
    with parsing(path, "its OME-XML has a Plane element that cannot be read"):
        for plane in pixels.findall("{*}Plane"):
            for name in ("TheT", "TheZ", "TheC"):
                bounded_int(plane.get(name, "0"))
