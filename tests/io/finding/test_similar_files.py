"""Files that differ in their pixels alone are looked at once, and what is found is as if each was checked in full."""

import os
from functools import partial

import numpy as np
import pytest

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
