"""Pieces of a file that lie, or are said to lie, in another order than they are read in."""

import struct

import numpy as np
import pytest
import tifffile

from tests.io.samples import noise, page_tags, tiff_bytes, write_ome
from xcorr_app.errors import DamagedFileError
from xcorr_app.io import read_stack


def test_strips_that_are_stored_in_another_order(tmp_path):
    """They may lie anywhere: only strips that follow each other are read as one."""
    path = tmp_path / "a.tif"
    head = len(tiff_bytes([page_tags(4, 4, 0, 8, t278=2)]))
    tags = [tag for tag in page_tags(4, 4, None, None, t278=2) if tag[0] not in (273, 279)]
    tables = struct.pack("<4I", head + 24, head + 16, 8, 8)
    tags += [(273, 4, 2, head), (279, 4, 2, head + 8)]
    path.write_bytes(tiff_bytes([tags], tail=tables + bytes(range(8, 16)) + bytes(range(8))))
    expected = np.arange(16).reshape(4, 4)
    np.testing.assert_array_equal(tifffile.imread(path), expected)
    np.testing.assert_array_equal(read_stack(path).data.squeeze(), expected)


def described(tmp_path, *changes, **metadata):
    """An OME-TIFF of three planes whose description is changed after it was written."""
    path = tmp_path / "a.ome.tif"
    write_ome(path, noise((3, 8, 9)), "TYX", **metadata)
    with tifffile.TiffFile(path) as file:
        text = file.pages[0].description
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    tifffile.tiffcomment(path, text.encode())
    return path


def test_two_planes_in_one_page(tmp_path):
    with tifffile.TiffFile(described(tmp_path)) as file:
        block = file.pages[0].description.partition("<TiffData")[2].partition("/>")[0]
    twice = "".join(f'<TiffData IFD="{page}" FirstT="{frame}" PlaneCount="1"/>' for frame, page in enumerate((0, 1, 1)))
    with pytest.raises(DamagedFileError, match="does not give each a page of its own"):
        read_stack(described(tmp_path, (f"<TiffData{block}/>", twice)))
    thrice = twice.replace('"1" FirstT="2"', '"2" FirstT="2"')
    assert len(read_stack(described(tmp_path, (f"<TiffData{block}/>", thrice))).data.squeeze()) == 3
