"""Kinds of file beside plain TIFF and PNG: what is read, what is refused and how."""

import io
import struct

import cv2
import imagecodecs
import numpy as np
import pytest
import tifffile

from tests.io.samples import noise, page_tags, tiff_bytes, write_plain
from xcorr_app.errors import DamagedFileError, InputError, LimitError
from xcorr_app.io import read_stack, scan_file
from xcorr_app.io.finding.discover import discover

SAVED = {
    "bmp": lambda path, data: path.write_bytes(imagecodecs.bmp_encode(np.ascontiguousarray(data))),
    "jpg": lambda path, data: path.write_bytes(imagecodecs.jpeg8_encode(np.ascontiguousarray(data), level=100)),
    "npy": np.save,
    "png": lambda path, data: path.write_bytes(imagecodecs.png_encode(data)),
}


def smooth(shape, seed=0):
    """Values that a JPEG keeps to a few grey levels."""
    rows, columns = np.indices(shape)
    return (120 + 60 * np.sin(rows / 9 + seed) + 60 * np.cos(columns / 7)).astype(np.uint8)


def test_imagej_without_counts_has_the_pages_that_are_there(tmp_path):
    data = noise((5, 6, 7))
    with tifffile.TiffWriter(tmp_path / "a.tif") as tif:
        for index, plane in enumerate(data):
            text = None if index else "ImageJ=1.48v\nmin=0.0\nmax=4094.0\n"
            tif.write(plane, description=text, metadata=None, photometric="minisblack", contiguous=False)
    stack = read_stack(tmp_path / "a.tif")
    assert (stack.metadata.axes, stack.metadata.kind) == ("TYX", "imagej")
    np.testing.assert_array_equal(stack.data, data)


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5, 63])
def test_grey_bmp_of_other_programs(tmp_path, width):
    data = noise((6, width), "uint8")
    for path, save in ((tmp_path / "a.bmp", SAVED["bmp"]), (tmp_path / "b.bmp", lambda p, d: cv2.imwrite(str(p), d))):
        save(path, data)
        np.testing.assert_array_equal(read_stack(path).data, data)


@pytest.mark.parametrize("kind", SAVED)
def test_truncated_images_are_damaged_at_every_byte(tmp_path, kind):
    path = tmp_path / f"a.{kind}"
    SAVED[kind](path, smooth((16, 16)))
    content = path.read_bytes()
    for size in range(len(content)):
        path.write_bytes(content[:size])
        with pytest.raises(DamagedFileError, match=rf"a\.{kind}"):
            read_stack(path)


@pytest.mark.parametrize("shape", [(33, 47), (33, 47, 3)])
def test_jpeg(tmp_path, shape):
    data = smooth(shape[:2]) if len(shape) == 2 else np.stack([smooth(shape[:2], seed) for seed in range(3)], -1)
    path = tmp_path / "a.jpg"
    SAVED["jpg"](path, data)
    if len(shape) == 3:
        with pytest.raises(InputError, match=r"colour image \(JPEG\).*--channel"):
            read_stack(path)
    found = scan_file(path, colour=True).read(0)
    assert found.shape == (shape if len(shape) == 2 else (3, *shape[:2]))
    expected = data if len(shape) == 2 else np.moveaxis(data, -1, 0)
    # Colours are stored at half the resolution.
    assert np.abs(found.astype(int) - expected).max() <= (4 if len(shape) == 2 else 24)
    assert np.abs(found.astype(int) - expected).mean() < 2.5


@pytest.mark.parametrize("marker", [0xC3, 0xC5, 0xC9, 0xCF])
def test_other_jpeg_frames_are_refused(tmp_path, marker):
    content = bytearray(imagecodecs.jpeg8_encode(smooth((40, 50))))
    content[content.index(b"\xff\xc0") + 1] = marker
    (tmp_path / "a.jpg").write_bytes(content)
    with pytest.raises(DamagedFileError, match=r"a\.jpg: cannot be (parsed|decoded)"):
        read_stack(tmp_path / "a.jpg")


@pytest.mark.parametrize("dtype", ["uint8", ">u2", "int16", "<f4", ">f8", "uint32"])
@pytest.mark.parametrize("shape", [(6, 5), (4, 6, 5), (1, 6, 5), (3, 1, 1)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_npy(tmp_path, dtype, shape, order):
    data = np.asarray(noise(shape, np.dtype(dtype).newbyteorder("=")), dtype, order=order)
    np.save(tmp_path / "a.npy", data)
    stack = read_stack(tmp_path / "a.npy")
    assert stack.data.dtype == np.dtype(dtype).newbyteorder("=")
    assert stack.metadata.axes == ("TYX" if len(shape) == 3 and shape[0] > 1 else "YX")
    np.testing.assert_array_equal(stack.data, data.reshape(stack.data.shape))
    stack.data[...] = 0  # the caller's to change


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (np.zeros((2, 6, 5), np.float16), r"holds float16.*\.astype\('float32'\) loses nothing"),
        (np.zeros((2, 6, 5), np.int8), r"holds int8.*astype\('int16'\)"),
        (np.zeros((2, 6, 5), bool), r"holds bool.*astype\('uint8'\)"),
        (np.zeros((2, 6, 5), np.int64), "holds int64.*convert it to one of uint8"),
        (np.zeros((2, 6, 5), complex), "holds complex128"),
        (np.zeros((2, 6), [("a", "u1")]), "no array of plain numbers"),
        (np.full((2, 6), "a"), "no array of plain numbers"),
        (np.zeros(7), "nothing says which axis"),
        (np.zeros((2, 3, 6, 5), np.uint8), "nothing says which axis.*ome.tif"),
        (np.zeros((2, 3, 4, 6, 5), np.uint8), "nothing says which axis"),
        (np.zeros((6, 5, 3), np.uint8), "one image in colours or 6 images of 5 x 3 pixels.*--channel"),
        (np.zeros((2, 6, 5, 3), np.uint8), "2 images in colours or a stack along two axes.*--channel"),
        (np.zeros((0, 6, 5), np.uint8), "holds no pixel"),
    ],
    ids=lambda value: None if isinstance(value, str) else f"{value.dtype.name}-{value.shape}",
)
def test_npy_that_is_refused_says_what_to_do(tmp_path, data, words):
    np.save(tmp_path / "a.npy", data, allow_pickle=True)
    with pytest.raises(InputError, match=words) as caught:
        read_stack(tmp_path / "a.npy")
    assert not isinstance(caught.value, DamagedFileError)


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<f8', 'fortran_order': True, 'shape': (, }",
        "-" * 9000,
        "{'descr': '<f8', 'fortran_order': False, 'shape': (-1, 5)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (True, 5)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (" + "9" * 5000 + ", 5)}",
        "{'descr': '<f8'}",
        "(" * 200,
        "\0",
    ],
    ids=range(8),
)
def test_damaged_headers_of_npy(tmp_path, header):
    text = header.encode() + b"\n"
    (tmp_path / "a.npy").write_bytes(b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text + bytes(4000))
    with pytest.raises(DamagedFileError, match=r"a\.npy: is no array that can be read"):
        read_stack(tmp_path / "a.npy")


def bomb(kind):
    """A small file that declares 60000 x 60000 pixels."""
    side = 60_000
    if kind == "bmp":
        content = bytearray(imagecodecs.bmp_encode(noise((4, 4), "uint8")))
        content[18:26] = struct.pack("<ii", side, side)
    elif kind == "jpg":
        content = bytearray(imagecodecs.jpeg8_encode(noise((16, 16), "uint8")))
        frame = content.index(b"\xff\xc0")
        content[frame + 5 : frame + 9] = struct.pack(">HH", side, side)
    elif kind == "png":
        content = bytearray(imagecodecs.png_encode(noise((4, 4), "uint8")))
        content[16:24] = struct.pack(">II", side, side)
    elif kind == "tif":
        content = tiff_bytes([page_tags(side, side, 8, 10)]).ljust(134, b"\0")
    else:
        file = io.BytesIO()
        header = {"descr": "|u1", "fortran_order": False, "shape": (side, side)}
        np.lib.format.write_array_header_1_0(file, header)
        content = file.getvalue()
    return bytes(content)


@pytest.mark.parametrize("kind", ["bmp", "jpg", "png", "npy", "tif"])
def test_what_is_declared_is_limited_before_memory_is_taken(tmp_path, kind):
    path = tmp_path / f"a.{kind}"
    path.write_bytes(bomb(kind))
    if kind == "npy":  # else the file is too short for what it declares, which is found first
        with path.open("r+b") as file:
            file.truncate(60_000**2 + len(bomb(kind)))
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(LimitError, match=r"60000 x 60000 = 3600000000 pixels.*--max-pixels 3600000000"):
        scan_file(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000  # kilobytes


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"PK\x03\x04" + bytes(400), r"archive \(ZIP, \.npz, Office\).*unpack it, or .*numpy.save"),
        (b"\x1aE\xdf\xa3" + bytes(400), "Matroska.*frames as TIFF"),
        (b"GIF89a", "GIF image"),
        (b"\x00\x00\x00\x03\x00" + bytes(400), "Gatan DM3 file.*OME-TIFF"),
        (bytes(128) + b"DICM" + bytes(100), "DICOM file"),
        (b"%PDF-1.7", "PDF"),
    ],
    ids=lambda value: value.split(".*")[0] if isinstance(value, str) else None,
)
def test_refused_kinds_are_named_with_what_converts_them(tmp_path, content, words):
    for name in ("a.bin", "a.tif"):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=words) as caught:
            read_stack(tmp_path / name)
        assert not isinstance(caught.value, DamagedFileError)


def test_previews_beside_tiff_files_are_left_out_and_told(tmp_path):
    write_plain(tmp_path / "a.tif", noise((3, 6, 5)))
    SAVED["jpg"](tmp_path / "preview.jpg", smooth((20, 30)))
    np.save(tmp_path / "mask.npy", noise((6, 5)))
    found = discover(tmp_path)
    assert [series.name for series in found.series] == ["a"]
    assert "2 images of other kinds were left out" in found.notes[0]


@pytest.mark.parametrize("kind", ["bmp", "jpg", "npy"])
def test_folder_of_one_kind_is_a_series(tmp_path, kind):
    for number in (10, 9, 1):
        SAVED[kind](tmp_path / f"i{number}.{kind}", smooth((20, 30), number))
    (series,) = discover(tmp_path).series
    assert [path.stem for path in series.paths] == ["i1", "i9", "i10"]
    np.testing.assert_allclose(series.open().plane(2), smooth((20, 30), 10), atol=4)
