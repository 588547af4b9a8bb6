"""Pages that are as one before are taken for such, and only those: the same is found as where each is read in full."""

import numpy as np
import pytest
import tifffile

from tests import share
from tests.io.samples import noise, write_imagej, write_ome, write_plain, write_shaped
from xcorr_app.errors import InputError
from xcorr_app.io import read_stack, scan_file, write_stack
from xcorr_app.io.tiff.tiff_directory import DirectoryReader

WRITERS = {
    "plain": lambda path, data: write_plain(path, data),
    "big": lambda path, data: write_plain(path, data, bigtiff=True, byteorder=">"),
    "described": lambda path, data: write_plain(path, data, description="of every page", resolution=(3.0, 2.0)),
    "strips": lambda path, data: write_plain(path, data, rowsperstrip=2),
    "compressed": lambda path, data: write_plain(path, data, compression="zlib"),
    "shaped": lambda path, data: write_shaped(path, data),
    "imagej": lambda path, data: write_imagej(path, data, "TYX"),
    "ome": lambda path, data: write_ome(path, data, "TYX"),
    "ours": lambda path, data: write_stack(path, data),
}


def found(path):
    try:
        file = scan_file(path)
    except InputError as error:
        return str(error)
    return file.metadata, file.directory_offsets.tolist(), file.data_offsets.tolist(), file.page_map.tolist()


@pytest.fixture
def in_full(monkeypatch):
    """What is found where every page is read in full."""

    def scan(path):
        with monkeypatch.context() as patch:
            patch.setattr(DirectoryReader, "repeat", lambda *_: None)
            return found(path)

    return scan


@pytest.mark.parametrize("kind", WRITERS)
def test_the_same_is_found(tmp_path, in_full, kind):
    path = tmp_path / "a.tif"
    data = noise((30, 5, 7))
    WRITERS[kind](path, data)
    assert found(path) == in_full(path)
    np.testing.assert_array_equal(read_stack(path).data, data)


def test_a_chain_that_leads_back(tmp_path, in_full):
    path = tmp_path / "a.tif"
    write_stack(path, noise((60, 5, 7)))
    content = bytearray(path.read_bytes())
    with tifffile.TiffFile(path) as tif:
        offsets = [page.offset for page in tif.pages]
        count = len(tif.pages[50].tags)
    link = offsets[50] + 2 + 12 * count
    for target in (10, 49, 50, 52, 59):
        content[link : link + 4] = offsets[target].to_bytes(4, "little")
        path.write_bytes(content)
        assert found(path) == in_full(path)
        assert isinstance(found(path), str) == (target <= 50)


@pytest.mark.parametrize("kind", ["plain", "big", "described", "ours"])
def test_whatever_byte_of_a_directory_is_wrong_the_same_is_found(tmp_path, in_full, kind):
    path = tmp_path / "a.tif"
    WRITERS[kind](path, noise((12, 5, 7)))
    content = path.read_bytes()
    with tifffile.TiffFile(path) as tif:
        page = tif.pages[7]
        begin, end = page.offset, page.offset + 2 + 12 * len(page.tags) + 4
    if kind == "big":
        end = begin + 8 + 20 * len(page.tags) + 8
    outcomes = set()
    for place in share.spread(range(begin, end), 3):
        for value in (0, 1, 255, content[place] ^ 4):
            damaged = bytearray(content)
            damaged[place] = value
            path.write_bytes(damaged)
            ours = found(path)
            assert ours == in_full(path), (place - begin, value)
            outcomes.add(type(ours))
    assert outcomes == {str, tuple}
