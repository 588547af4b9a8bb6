"""Crafted files, each with one thing wrong."""

import struct

import numpy as np
import pytest
import tifffile

from tests.io.samples import noise, page_tags, tiff_bytes, write_imagej, write_ome, write_plain
from xcorr_app.errors import DamagedFileError, InputError, LimitError
from xcorr_app.io import Limits, read_stack, scan_file


def _refuse(tmp_path, content, error, message):
    path = tmp_path / "crafted.tif"
    path.write_bytes(content)
    with pytest.raises(error, match=message) as caught:
        read_stack(path)
    assert type(caught.value) is error
    assert str(path) in str(caught.value)


def _page(pages=1, **changes):
    """One-strip pages of 4 x 4 bytes that share the pixels behind the last directory."""
    tags = page_tags(4, 4, 0, 16)
    start = len(tiff_bytes([tags] * pages))
    return page_tags(4, 4, start, 16, **changes)


def test_the_crafted_file_is_sound_before_anything_is_wrong(tmp_path):
    (tmp_path / "a.tif").write_bytes(tiff_bytes([_page(2)] * 2, tail=bytes(range(1, 17))))
    data = read_stack(tmp_path / "a.tif").data
    np.testing.assert_array_equal(data, np.tile(np.arange(1, 17).reshape(4, 4), (2, 1, 1)))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"frame,dy,dx\n1,2,3\n", "is not a TIFF file"),
        (tiff_bytes([_page(t279=0)], tail=bytes(16)), "page 0 is incomplete"),
        (tiff_bytes([_page()], tail=bytes(15)), "cut short"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_damaged(tmp_path, content, message):
    _refuse(tmp_path, content, DamagedFileError, message)


@pytest.mark.parametrize(
    ("link", "message"), [(8, "leads back to an earlier page"), (5000, "directory of page 2 should be at byte 5000")]
)
def test_a_chain_that_leads_astray(tmp_path, link, message):
    content = bytearray(tiff_bytes([_page(2)] * 2, tail=bytes(16)))
    end = 8 + 2 * (2 + 12 * 9 + 4)
    content[end - 4 : end] = struct.pack("<I", link)
    _refuse(tmp_path, bytes(content), DamagedFileError, message)


@pytest.mark.parametrize(
    ("pages", "message"),
    [
        ([(6, 5), (6, 5), (6, 4), (6, 3)], r"page 2 is 6 x 4 uint16, page 0 is 6 x 5 uint16"),
        ([(6, 5), (6, 5, "float32")], r"page 1 is 6 x 5 float32, page 0 is 6 x 5 uint16"),
    ],
)
def test_pages_of_another_kind_name_the_first_that_differs(tmp_path, pages, message):
    with tifffile.TiffWriter(tmp_path / "a.tif") as tif:
        for height, width, *dtype in pages:
            tif.write(noise((height, width), *dtype), metadata=None, photometric="minisblack")
    with pytest.raises(InputError, match=message):
        read_stack(tmp_path / "a.tif")


@pytest.mark.parametrize(("limit", "holds"), [("max_pages", 5), ("max_pixels", 16)])
def test_limits_are_inclusive_and_those_of_pixels_for_each_plane(tmp_path, limit, holds):
    write_plain(tmp_path / "a.tif", noise((5, 4, 4)))
    assert scan_file(tmp_path / "a.tif", Limits(**{limit: holds})).page_count == 5
    with pytest.raises(LimitError, match=f"limit of {holds - 1}"):
        scan_file(tmp_path / "a.tif", Limits(**{limit: holds - 1}))


def test_imagej_promises_more_images_than_there_are(tmp_path):
    write_imagej(tmp_path / "a.tif", noise((6, 8, 8)), "TYX")
    content = (tmp_path / "a.tif").read_bytes()
    changed = content.replace(b"images=6", b"images=7").replace(b"frames=6", b"frames=7")
    assert changed != content
    _refuse(tmp_path, changed, DamagedFileError, "says 7 images, the file has 6 pages")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b'SizeT="6"', b'SizeT="7"', "T=7 x Z=1 x C=1 = 7 planes, the file has 6 pages"),
        (b'SizeT="6"', b'SizeT="5"', "5 planes, the file has 6 pages"),
        (b'SizeX="8"', b'SizeX="9"', "planes of 8 x 9, the pages are 8 x 8"),
        (b'IFD="0"', b'IFD="1"', "has no page 6"),
        (b"</Pixels>", b"<//ixels>", "cannot be parsed"),
        (b'"XYCZT"', b'"XYCZZ"', "DimensionOrder"),
        (b'SizeT="6"', b'SizeT="x"', "five sizes"),
    ],
)
def test_ome_xml_against_the_pages(tmp_path, old, new, message):
    write_ome(tmp_path / "a.tif", noise((6, 8, 8)), "TYX")
    content = (tmp_path / "a.tif").read_bytes()
    assert old in content
    _refuse(tmp_path, content.replace(old, new), DamagedFileError, message)


LONG = b"<!-- " + b"a camera's <OME notes > " * 200 + b"-->"


@pytest.mark.parametrize("before", [b"", LONG])
def test_ome_entities_are_refused(tmp_path, before):
    xml = b'<!DOCTYPE a [<!ENTITY b "bbbb">]><OME><Image><Pixels/></Image></OME>'
    write_plain(tmp_path / "a.tif", noise((8, 8)), description=b'<?xml version="1.0"?>' + before + xml)
    with pytest.raises(DamagedFileError, match="entities"):
        read_stack(tmp_path / "a.tif")


def test_ome_pages_in_another_order_than_the_planes(tmp_path):
    data = noise((3, 8, 8))
    blocks = "".join(f'<TiffData FirstT="{2 - page}" IFD="{page}" PlaneCount="1"/>' for page in range(3))
    xml = (
        '<OME><Image ID="Image:0"><Pixels DimensionOrder="XYZCT" SizeX="8" SizeY="8" SizeZ="1" SizeC="1" SizeT="3" '
        f'Type="uint16">{blocks}</Pixels></Image></OME>'
    )
    with tifffile.TiffWriter(tmp_path / "a.tif") as tif:
        for index, plane in enumerate(data):
            tif.write(plane, metadata=None, photometric="minisblack", description=None if index else xml)
    np.testing.assert_array_equal(read_stack(tmp_path / "a.tif").data, data[::-1])


@pytest.mark.parametrize(
    ("inner", "message"),
    [
        (
            '<TiffData><UUID FileName="other.ome.tif">urn:uuid:1</UUID></TiffData>',
            "set of OME-TIFF files.*other.ome.tif",
        ),
        ('</Pixels></Image><Image ID="Image:1"><Pixels>', "2 OME images"),
    ],
)
def test_ome_spread_over_files_or_images_is_refused(tmp_path, inner, message):
    xml = (
        '<OME UUID="urn:uuid:0"><Image ID="Image:0"><Pixels DimensionOrder="XYZCT" SizeX="8" SizeY="8" SizeZ="1" '
        f'SizeC="1" SizeT="1" Type="uint16">{inner}</Pixels></Image></OME>'
    )
    write_plain(tmp_path / "a.tif", noise((8, 8)), description=xml)
    with pytest.raises(InputError, match=message):
        read_stack(tmp_path / "a.tif")


@pytest.mark.parametrize("compression", ["zlib", "lzw", "zstd", "packbits", "jpeg"])
def test_an_undecodable_page_leaves_the_others_readable(tmp_path, compression):
    write_plain(tmp_path / "a.tif", noise((3, 40, 50), "uint8") // 16, compression=compression)
    data = read_stack(tmp_path / "a.tif").data
    with tifffile.TiffFile(tmp_path / "a.tif") as tif:
        start, size = tif.pages[1].dataoffsets[0], tif.pages[1].databytecounts[0]
    content = bytearray((tmp_path / "a.tif").read_bytes())
    content[start + size // 2 : start + size] = bytes(size - size // 2)
    (tmp_path / "a.tif").write_bytes(content)
    file = scan_file(tmp_path / "a.tif")
    with pytest.raises(DamagedFileError, match=r"page 1 (cannot be decoded|has a JPEG stream)"):
        file.read(1)
    np.testing.assert_array_equal(file.read(2), data[2])
