"""Segments and directories of TIFF files: decoded as tifffile does, in any order, found again where repeated."""

import itertools
import struct

import imagecodecs
import numpy as np
import pytest
import tifffile

from tests import share
from tests.io.samples import (
    TYPES,
    WRITERS,
    noise,
    page_tags,
    tiff_bytes,
    write_ome,
    write_plain,
)
from xcorr_app.errors import DamagedFileError, InputError
from xcorr_app.io import read_stack, scan_file, write_stack
from xcorr_app.io.declared import SPARE
from xcorr_app.io.tiff.tiff_directory import DirectoryReader

LAYOUTS = ({}, {"rowsperstrip": 7}, {"tile": (16, 32)})


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("compression", [None, "zlib", "lzw", "zstd", "packbits"])
def test_every_usual_kind(tmp_path, dtype, compression):
    data = noise((2, 33, 47), dtype)
    predictors = (False, True) if compression in ("zlib", "lzw", "zstd") else (False,)
    for predictor, byteorder, layout in itertools.product(predictors, "<>", LAYOUTS):
        how = {"compression": compression, "predictor": predictor, "byteorder": byteorder}
        write_plain(tmp_path / "a.tif", data, **how, **layout)
        np.testing.assert_array_equal(read_stack(tmp_path / "a.tif").data, data)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_jpeg_as_tifffile_decodes_it(tmp_path, layout):
    write_plain(tmp_path / "a.tif", noise((2, 33, 47), "uint8"), compression="jpeg", **layout)
    np.testing.assert_array_equal(read_stack(tmp_path / "a.tif").data, tifffile.imread(tmp_path / "a.tif"))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("planar", ["contig", "separate"])
@pytest.mark.parametrize("compression", [None, "zlib", "jpeg"])
def test_colours_as_tifffile_decodes_them(tmp_path, layout, planar, compression):
    image = np.moveaxis(noise((3, 33, 47), "uint8"), 0, -1)
    data = np.ascontiguousarray(image if planar == "contig" else np.moveaxis(image, -1, 0))
    how = {"photometric": "rgb", "planarconfig": planar, "compression": compression, "metadata": None}
    tifffile.imwrite(tmp_path / "a.tif", data, **how, **layout)
    found = np.stack([read_stack(tmp_path / "a.tif", channel=channel).data for channel in "RGB"], -1)
    expected = tifffile.imread(tmp_path / "a.tif")
    np.testing.assert_array_equal(found, expected if planar == "contig" else np.moveaxis(expected, 0, -1))


@pytest.mark.parametrize("compression", ["zlib", "zstd"])
@pytest.mark.parametrize("surplus", [-1, 2, 4000])
def test_a_segment_of_other_length_than_declared(tmp_path, compression, surplus):
    data = noise((40, 50)).tobytes()
    content = (data + data)[: len(data) + surplus]
    encoded = getattr(imagecodecs, f"{compression}_encode")(content)
    how = {"shape": (1, 40, 50), "dtype": np.uint16, "photometric": "minisblack", "compression": compression}
    tifffile.imwrite(tmp_path / "a.tif", iter([encoded]), **how, metadata=None)
    image = scan_file(tmp_path / "a.tif")
    if 0 <= surplus <= SPARE:
        np.testing.assert_array_equal(image.read(0).tobytes(), data)
    else:
        with pytest.raises(DamagedFileError, match="decode"):
            image.read(0)


def test_bits_that_are_stored_last_first_are_refused(tmp_path):
    (tmp_path / "a.tif").write_bytes(tiff_bytes([page_tags(4, 4, 8, 16, t266=2)], tail=bytes(16)))
    with pytest.raises(InputError, match="FillOrder"):
        scan_file(tmp_path / "a.tif")


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
