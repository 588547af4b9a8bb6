"""Files that differ in their pixels alone are looked at once, and what is found is as if each was checked in full."""

import os
import struct
from functools import partial

import numpy as np
import pytest
import tifffile

from tests.io.samples import noise, write_imagej, write_plain, write_shaped
from xcorr_app.errors import InputError
from xcorr_app.io import scan_file, write_stack
from xcorr_app.io.finding import similar_files
from xcorr_app.io.finding.similar_files import ScanOfAlike
from xcorr_app.io.limits import Limits

WRITERS = {
    "plain": write_plain,
    "big-endian": lambda path, plane: write_plain(path, plane, bigtiff=True, byteorder=">"),
    "described": lambda path, plane: write_plain(path, plane, description="of every file", resolution=(3.0, 2.0)),
    "shaped": write_shaped,
    "imagej": lambda path, plane: write_imagej(path, plane, "YX"),
    "strips": lambda path, plane: write_plain(path, plane, rowsperstrip=2),
    "ours": write_stack,
    "pages": lambda path, plane: write_plain(path, np.stack([plane, plane + 1, plane])),
    "pages of ours": lambda path, plane: write_stack(path, np.stack([plane, plane + 1])),
    "pages of imagej": lambda path, plane: write_imagej(path, np.stack([plane, plane + 1]), "TYX"),
}


def counted():
    calls = []

    def scan(path, limits):
        calls.append(path)
        return scan_file(path, limits)

    return ScanOfAlike(scan), calls


def found(scan, path):
    try:
        file = scan(path, Limits())
    except InputError as error:
        return str(error)
    return (
        type(file),
        file.path,
        file.metadata,
        file.directory_offsets.tolist(),
        file.data_offsets.tolist(),
        file.page_map.tolist(),
        file.stamp,
    )


@pytest.mark.share(4)
@pytest.mark.parametrize("kind", ["plain", "shaped", "ours", "pages"])
def test_whatever_byte_differs_the_same_is_found(tmp_path, kind):
    WRITERS[kind](tmp_path / "first.tif", noise((4, 5)))
    content = (tmp_path / "first.tif").read_bytes()
    scan, calls = counted()
    scan(tmp_path / "first.tif", Limits())
    path = tmp_path / "other.tif"
    outcomes = set()
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 5
        path.write_bytes(damaged)
        ours = found(scan, path)
        assert ours == found(scan_file, path), place
        outcomes.add(type(ours))
    assert outcomes == {str, tuple}
    # Those of which a pixel differs.
    assert len(calls) <= 1 + len(content) - 4 * 5 * 2 * scan_file(tmp_path / "first.tif").page_count
    for size in (len(content) - 1, 8, 0):
        path.write_bytes(content[:size])
        assert found(scan, path) == found(scan_file, path)
    path.write_bytes(content + b"more")
    assert found(scan, path) == found(scan_file, path)


@pytest.mark.parametrize("when", ["before it is looked at again", "meanwhile"])
def test_a_file_that_changes_stands_for_no_other(tmp_path, monkeypatch, when):
    def write(name, description):
        write_plain(tmp_path / name, noise((9, 11)), description=description)
        return tmp_path / name

    def change(real, *arguments):
        found = real(*arguments)
        write("first.tif", "of the second")
        os.utime(tmp_path / "first.tif", ns=(0, 0))
        return found

    if when == "meanwhile":
        monkeypatch.setattr(similar_files, "DirectoryReader", partial(change, similar_files.DirectoryReader))
        scan = ScanOfAlike(scan_file)
    else:
        scan = ScanOfAlike(partial(change, scan_file))
    assert scan(write("first.tif", "of the first."), Limits()).metadata.tiff.description == b"of the first."
    assert scan(write("other.tif", "of the second"), Limits()).metadata.tiff.description == b"of the second"


@pytest.mark.parametrize("what", ["values", "directory"])
def test_a_file_described_within_its_pixels_stands_for_no_other(tmp_path, what):
    first, other = tmp_path / "first.tif", tmp_path / "other.tif"
    write_plain(first, np.zeros((16, 16), np.uint16), description="of the first.")
    content = bytearray(first.read_bytes())
    with tifffile.TiffFile(first) as tif:
        (image,) = tif.pages
        pixels, tags = image.dataoffsets[0], image.tags
    if what == "values":
        struct.pack_into("<I", content, tags["ImageDescription"].offset + 8, pixels)
        at, values = pixels, (b"of the first.\0", b"of the second\0")
    else:
        # The first bytes of the pixels say where the next directory is: nowhere, or where the one of old is.
        directory = content[image.offset : image.offset + 2 + 12 * len(tags)]
        at, values = len(content) + len(directory), (bytes(4), struct.pack("<I", image.offset))
        struct.pack_into("<I", directory, tags["StripOffsets"].offset + 8 - image.offset, at)
        struct.pack_into("<I", content, 4, len(content))
        content += directory + bytes(16 * 16 * 2)
    for path, value in zip((first, other), values, strict=True):
        content[at : at + len(value)] = value
        path.write_bytes(content)
    assert scan_file(first).metadata != scan_file(other).metadata
    scan = ScanOfAlike(scan_file)
    for path in (first, other):
        assert found(scan, path) == found(scan_file, path)
