"""What is decoded is what is declared: sizes of compressed images, bytes of strips, types, forbidden combinations."""

import os
import struct
import zlib

import imagecodecs
import numpy as np
import pytest

from tests.io.formats.test_formats import SAVED, smooth
from tests.io.samples import noise, page_tags, tiff_bytes, write_plain
from xcorr_app.errors import DamagedFileError, InputError
from xcorr_app.io import read_stack, scan_file


def one_page(path, height, width, content, **changes):
    """A TIFF of one page whose single strip is `content`."""
    start = 8 + 2 + 12 * 12 + 4
    tags = page_tags(height, width, start, len(content), **changes)
    head = tiff_bytes([tags])
    path.write_bytes(head + bytes(start - len(head)) + content)
    return path


def test_a_jpeg_stream_of_another_size_than_its_page(tmp_path):
    content = bytes(imagecodecs.jpeg8_encode(smooth((64, 80))))
    path = one_page(tmp_path / "a.tif", 64, 80, content, t259=7)
    assert read_stack(path).data.shape == (64, 80)
    for width, height in ((40, 64), (80, 32), (160, 32), (79, 64)):
        with pytest.raises(DamagedFileError, match=r"a\.tif: page 0 cannot be decoded .*shape=\(64, 80\)"):
            read_stack(one_page(path, height, width, content, t259=7))


@pytest.mark.parametrize("code", [2, 3, 4, 6, 22610, 33003, 34661, 34712, 34887, 34933, 50001, 50002, 65000])
@pytest.mark.parametrize("bits", [8, 16])
def test_compressions_of_other_pixels_are_refused(tmp_path, code, bits):
    path = one_page(tmp_path / "a.tif", 8, 8, bytes(64 * bits // 8), bits=bits, t259=code)
    with pytest.raises(InputError, match=r"a\.tif: page 0 has compression .*which is not read"):
        scan_file(path)


@pytest.mark.parametrize("code", [273, 279])
@pytest.mark.parametrize("kind", [9, 8, 2])
def test_negative_and_textual_offsets_and_counts(tmp_path, code, kind):
    path = one_page(tmp_path / "a.tif", 8, 8, bytes(range(64)))
    content = bytearray(path.read_bytes())
    at = content.index(struct.pack("<HH", code, 4))
    struct.pack_into("<HHIi", content, at, code, kind, 1, -64 if kind != 2 else 65)
    path.write_bytes(content)
    with pytest.raises(DamagedFileError, match=f"(a negative number|text) in tag {code}"):
        scan_file(path)


@pytest.mark.parametrize(("spare", "fits"), [(0, True), (3, True), (4, False), (-1, False), (64, False)])
@pytest.mark.parametrize("code", [1, 8])
def test_bytes_that_are_left_over(tmp_path, spare, fits, code):
    stored = noise((8, 8), "uint8").tobytes() + bytes(max(spare, 0))
    content = stored[: 64 + spare] if code == 1 else zlib.compress(stored[: 64 + spare])
    path = one_page(tmp_path / "a.tif", 8, 8, content, t259=code)
    if fits:
        np.testing.assert_array_equal(read_stack(path).data, noise((8, 8), "uint8"))
    else:
        with pytest.raises(DamagedFileError, match=r"a\.tif: page 0"):
            read_stack(path)


def png_with(content, **changes):
    """A PNG whose header is changed, its checksum right."""
    values = list(struct.unpack(">IIBBBBB", content[16:29]))
    for name, value in changes.items():
        values[("width", "height", "bits", "kind", "compression", "filter", "interlaced").index(name)] = value
    header = b"IHDR" + struct.pack(">IIBBBBB", *values)
    return content[:12] + header + struct.pack(">I", zlib.crc32(header)) + content[33:]


@pytest.mark.parametrize("change", [{"height": 12}, {"height": 23}, {"width": 19}, {"height": 48, "width": 9}])
def test_a_png_whose_header_asks_for_less(tmp_path, change):
    (tmp_path / "a.png").write_bytes(png_with(bytes(imagecodecs.png_encode(smooth((24, 20)))), **change))
    with pytest.raises(DamagedFileError, match=r"a\.png: cannot be decoded"):
        read_stack(tmp_path / "a.png")


def test_an_interlaced_png_is_refused(tmp_path):
    (tmp_path / "a.png").write_bytes(png_with(bytes(imagecodecs.png_encode(smooth((24, 20)))), interlaced=1))
    with pytest.raises(InputError, match=r"a\.png: is interlaced"):
        scan_file(tmp_path / "a.png")


@pytest.mark.parametrize("start", [1078, 1076])
def test_a_grey_value_beyond_the_palette_of_a_bmp_is_refused(tmp_path, start):
    """Of a palette said to be shorter, the rest would be pixels."""
    image = np.arange(256, dtype=np.uint8).reshape(8, 32)
    content = bytearray(imagecodecs.bmp_encode(image))
    struct.pack_into("<I", content, 10, start)
    for used in (16, 255):
        struct.pack_into("<I", content, 46, used)
        (tmp_path / "a.bmp").write_bytes(content)
        with pytest.raises(DamagedFileError, match=rf"cannot be decoded.*palette of {used} entries"):
            scan_file(tmp_path / "a.bmp").read(0)
    content = bytearray(imagecodecs.bmp_encode(image // 16))
    struct.pack_into("<I", content, 46, 16)
    (tmp_path / "a.bmp").write_bytes(content)
    np.testing.assert_array_equal(scan_file(tmp_path / "a.bmp").read(0), image // 16)


@pytest.mark.parametrize("kind", ["tif", *SAVED])
@pytest.mark.parametrize("how", ["written", "replaced"])
def test_a_file_replaced_by_one_of_the_same_size_and_time_is_noticed(tmp_path, kind, how):
    write = {"tif": write_plain, **SAVED}
    path, other = tmp_path / f"a.{kind}", tmp_path / f"b.{kind}"
    write[kind](path, noise((9, 8), "uint8"))
    file, before = scan_file(path), path.stat()
    content = bytearray(path.read_bytes())
    content[-30] ^= 1
    if how == "written":
        path.write_bytes(content)
    else:
        other.write_bytes(content)
        other.replace(path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    with pytest.raises(DamagedFileError, match="was changed by another program"):
        file.read(0)
