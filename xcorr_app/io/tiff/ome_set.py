"""OME-TIFF sets: one image whose planes are in several files of a folder, as the OME-XML of any of them says.

Source: OME-TIFF specification, https://docs.openmicroscopy.org/ome-model/6.3.1/ome-tiff/specification.html.
"""

import xml.etree.ElementTree as ET
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from xcorr_app.errors import DamagedFileError, InputError
from xcorr_app.io.declared import Limits
from xcorr_app.io.names import some
from xcorr_app.io.opened import opened, parsing, stamp
from xcorr_app.io.source import ImageFile, StackMetadata, make_metadata
from xcorr_app.io.tiff.ome import (
    is_ome,
    parse_ome,
    parse_xml,
    plain_name,
    tiff_blocks,
    use_default_namespace,
)
from xcorr_app.io.tiff.tiff import TiffImage
from xcorr_app.io.tiff.tiff_directory import DirectoryReader
from xcorr_app.io.tiff.tiff_scan import walk_pages
from xcorr_app.system import read_at

_DESCRIPTION = 270
_LONGEST_XML = 1 << 28


@dataclass(frozen=True, eq=False)
class OmeSet(ImageFile):
    """One image of a set, called as its first file is; its pages are counted in the order of T, Z, C."""

    path: Path
    metadata: StackMetadata
    files: tuple[TiffImage, ...]
    file_map: np.ndarray
    """Number of the file of plane [t, z, c]."""
    page_map: np.ndarray
    """Page within that file."""

    @property
    def parts(self) -> tuple[TiffImage, ...]:
        """The files that the image is in."""
        return self.files

    def page_at(self, t: int, z: int, c: int) -> int:
        """Page of a plane."""
        return int(np.ravel_multi_index((t, z, c), self.page_map.shape))

    def origin(self, page: int) -> tuple[Path, int]:
        """File that holds a page, and page within it."""
        return self.files[self.file_map.flat[page]].path, int(self.page_map.flat[page])

    def read(self, page: int) -> np.ndarray:
        """Read one page, (Y, X) in native byte order."""
        file: TiffImage = self.files[self.file_map.flat[page]]
        return file.read(int(self.page_map.flat[page]))


def is_set(path: Path, description: bytes) -> bool:
    """Tell whether OME-XML speaks of more files than the one that it is in."""
    if not is_ome(description) or not (b"FileName=" in description or b"BinaryOnly" in description):
        return False
    root = parse_xml(path, description)
    if root.find("{*}BinaryOnly") is not None:
        return True
    own = root.get("UUID")
    return any(
        (element.text or "").strip() != own and element.get("FileName", path.name) != path.name
        for element in root.iterfind(".//{*}UUID")
    )


def scan_ome_set(path: Path, description: bytes, limits: Limits) -> OmeSet:
    """Check every file of the image that `path` is part of."""
    root = _whole_xml(path, description)
    pixels = _only_image_of(path, root)
    names = tuple(dict.fromkeys(block.file for block in tiff_blocks(path, root, pixels)))
    paths = tuple(path.parent / name for name in names)
    files = _files(paths, tuple(_stamp(path, file) for file in paths), limits)
    first, counts = files[0].metadata, {name: file.page_count for name, file in zip(names, files, strict=True)}
    info = parse_ome(path, root, counts, first.shape[-2:])
    limits.check_pages(path, info.pages.size)
    for child in pixels.findall("{*}TiffData"):
        pixels.remove(child)
    use_default_namespace(root)
    metadata = replace(
        make_metadata(info.sizes, info.order, first.dtype, "ome"),
        **info.calibration,
        channel_names=info.channel_names,
        tiff=None if first.tiff is None else replace(first.tiff, description=ET.tostring(root)),
    )
    return OmeSet(paths[0], metadata, files, info.files, info.pages)


def _whole_xml(path: Path, description: bytes) -> ET.Element:
    """The OME-XML of the set, which may be in another of its files."""
    root = parse_xml(path, description)
    elsewhere = root.find("{*}BinaryOnly")
    if elsewhere is None:
        return root
    other = path.parent / plain_name(path, elsewhere.get("MetadataFile", ""))
    with opened(other) as descriptor, parsing(other):
        if other.suffix.lower() in (".ome", ".xml"):
            text = read_at(descriptor, _LONGEST_XML, 0)
        else:
            reader = DirectoryReader(descriptor, other)
            text = reader.content(reader.directory_at(reader.first), _DESCRIPTION)
    found = parse_xml(other, text)
    if found.find("{*}BinaryOnly") is not None:
        raise DamagedFileError(f"{other}: refers to another file for its OME-XML, and was referred to")
    return found


def _only_image_of(path: Path, root: ET.Element) -> ET.Element:
    """Pixels of the image that has planes in this file; all others are taken out of the XML."""
    images = root.findall("{*}Image")
    holding = [
        (image, pixels)
        for image in images
        for pixels in image.findall("{*}Pixels")
        if pixels.find("{*}TiffData") is not None
        and any(block.file == path.name for block in tiff_blocks(path, root, pixels))
    ]
    if len(holding) != 1:
        names = sorted({element.get("FileName", "") for element in root.iterfind(".//{*}UUID")})
        raise InputError(
            f"{path}: is one of a set of OME-TIFF files ({some(names)}) and holds planes of {len(holding)} of their "
            f"{len(images)} images; export each as files of its own"
        )
    ((kept, pixels),) = holding
    for image in images:
        if image is not kept:
            root.remove(image)
    return pixels


def _stamp(path: Path, other: Path) -> tuple[int, ...]:
    try:
        with opened(other) as descriptor:
            return stamp(descriptor)
    except InputError as error:
        raise DamagedFileError(
            f"{path}: is one of a set of OME-TIFF files, of which one is missing ({error})"
        ) from error


@lru_cache(maxsize=4)
def _files(paths: tuple[Path, ...], stamps: tuple[tuple[int, ...], ...], limits: Limits) -> tuple[TiffImage, ...]:
    """Files of a set, each checked page by page; kept, since every file of a set leads here."""
    files: list[TiffImage] = []
    for path, mark in zip(paths, stamps, strict=True):
        with opened(path) as descriptor, parsing(path):
            pages = walk_pages(DirectoryReader(descriptor, path), limits)
        count, first = len(pages.data_offsets), pages.first
        sizes = {"T": count, "Z": 1, "C": 1, "Y": first.height, "X": first.width}
        metadata = replace(make_metadata(sizes, "TYX", first.dtype, "ome"), tiff=pages.tags)
        if files and (metadata.shape[-2:], metadata.dtype) != (files[0].metadata.shape[-2:], files[0].metadata.dtype):
            raise InputError(f"{path}: has pages of another size or type than {paths[0]}, of whose set it is one")
        page_map = np.arange(count).reshape(count, 1, 1)
        directories, data = np.array(pages.directory_offsets, np.int64), np.array(pages.data_offsets, np.int64)
        files.append(TiffImage(path, metadata, directories, data, page_map, pages.tags.byteorder, mark))  # type: ignore[arg-type]
    return tuple(files)
