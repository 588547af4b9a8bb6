"""Reading stacks: every type, layout and compression; files cut short at any byte."""

import imagecodecs
import numpy as np
import pytest
import tifffile

from tests import share
from tests.io.samples import TYPES, WRITERS, noise, write_imagej, write_ome, write_plain, write_shaped
from xcorr_app.errors import DamagedFileError, InputError
from xcorr_app.io import read_stack


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("byteorder", ["<", ">"])
@pytest.mark.parametrize("bigtiff", [False, True])
def test_types_byte_orders_and_bigtiff(tmp_path, dtype, byteorder, bigtiff):
    data = noise((3, 7, 5), dtype)
    write_plain(tmp_path / "a.tif", data, byteorder=byteorder, bigtiff=bigtiff)
    stack = read_stack(tmp_path / "a.tif")
    assert (stack.metadata.axes, stack.metadata.kind, stack.metadata.dtype) == ("TYX", "tiff", np.dtype(dtype))
    assert stack.data.dtype.isnative
    np.testing.assert_array_equal(stack.data, data)


@pytest.mark.parametrize("axes", ["TCZYX", "TZCYX", "CTZYX", "ZTCYX", "TCYX", "CZYX", "TYX", "ZYX", "CYX"])
def test_ome_axes_in_any_order(tmp_path, axes):
    size = {"T": 4, "Z": 3, "C": 2, "Y": 6, "X": 5}
    data = noise([size[axis] for axis in axes])
    write_ome(tmp_path / "a.ome.tif", data, axes)
    stack = read_stack(tmp_path / "a.ome.tif")
    assert (stack.metadata.axes, stack.metadata.shape, stack.metadata.kind) == (axes, data.shape, "ome")
    np.testing.assert_array_equal(stack.data, data)
    assert (stack.metadata.pixel_size, stack.metadata.unit) == ((0.65, 0.325), "µm")
    assert (stack.metadata.z_step, stack.metadata.time_increment, stack.metadata.time_unit) == (1.5, 2.5, "s")
    assert stack.metadata.channel_names == (("dye 0", "dye 1") if "C" in axes else ())


def test_imagej_hyperstack(tmp_path):
    data = noise((4, 3, 2, 6, 5))
    write_imagej(tmp_path / "a.tif", data, "TZCYX")
    stack = read_stack(tmp_path / "a.tif")
    assert (stack.metadata.axes, stack.metadata.kind) == ("TZCYX", "imagej")
    np.testing.assert_array_equal(stack.data, data)
    assert (stack.metadata.pixel_size, stack.metadata.unit) == ((0.5, 0.25), "µm")
    assert (stack.metadata.z_step, stack.metadata.time_increment) == (1.5, 2.5)


@pytest.mark.parametrize("truncate", [False, True])
def test_axes_that_tifffile_notes_in_plain_files(tmp_path, truncate):
    data = noise((3, 2, 6, 5))
    write_shaped(tmp_path / "a.tif", data, "TCYX", truncate=truncate)
    stack = read_stack(tmp_path / "a.tif")
    assert stack.metadata.axes == "TCYX"
    np.testing.assert_array_equal(stack.data, data)


def test_files_grown_page_by_page(tmp_path):
    data = noise((4, 6, 5))
    for plane in data:
        tifffile.imwrite(tmp_path / "a.tif", plane, append=True)
    stack = read_stack(tmp_path / "a.tif")
    assert stack.metadata.axes == "TYX"
    np.testing.assert_array_equal(stack.data, data)


@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (9, 1)])
@pytest.mark.parametrize("options", [{}, {"compression": "zlib"}], ids=str)
def test_thin_images(tmp_path, shape, options):
    data = noise(shape)
    write_plain(tmp_path / "a.tif", data, **options)
    stack = read_stack(tmp_path / "a.tif")
    assert stack.metadata.axes == "YX"
    np.testing.assert_array_equal(stack.data, data)


@pytest.mark.parametrize("bits", [8, 16])
def test_png_keeps_its_bits(tmp_path, bits):
    data = noise((6, 5), f"uint{bits}")
    (tmp_path / "a.png").write_bytes(imagecodecs.png_encode(data))
    stack = read_stack(tmp_path / "a.png")
    assert (stack.metadata.kind, stack.data.dtype) == ("png", data.dtype)
    np.testing.assert_array_equal(stack.data, data)


@pytest.mark.parametrize(
    ("channels", "way"), [(2, "save it as grey values"), (3, "pick one channel"), (4, "pick one channel")]
)
def test_colour_png_is_refused(tmp_path, channels, way):
    (tmp_path / "a.png").write_bytes(imagecodecs.png_encode(noise((6, 5, channels), "uint8")))
    with pytest.raises(InputError, match=way):
        read_stack(tmp_path / "a.png")


def test_a_changed_byte_in_a_png_is_found(tmp_path):
    content = bytearray(imagecodecs.png_encode(noise((40, 50), "uint16")))
    content[len(content) // 2] ^= 0xFF
    (tmp_path / "a.png").write_bytes(content)
    with pytest.raises(DamagedFileError, match="cannot be decoded"):
        read_stack(tmp_path / "a.png")


@pytest.mark.parametrize("planarconfig", ["contig", "separate"])
def test_rgb_is_refused_with_the_way_out(tmp_path, planarconfig):
    shape = (6, 5, 3) if planarconfig == "contig" else (3, 6, 5)
    tifffile.imwrite(tmp_path / "a.tif", noise(shape, "uint8"), photometric="rgb", planarconfig=planarconfig)
    with pytest.raises(InputError, match=r"colour image \(RGB\).*pick one channel"):
        read_stack(tmp_path / "a.tif")


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint64", "float16", "complex64", "bool"])
def test_other_types_are_refused_with_those_that_work(tmp_path, dtype):
    tifffile.imwrite(tmp_path / "a.tif", np.ones((6, 5), dtype), photometric="minisblack")
    with pytest.raises(InputError, match="convert it to one of uint8"):
        read_stack(tmp_path / "a.tif")


UNUSED = 16


def _cut_and_read(path, content, size, data):
    path.write_bytes(content[:size])
    try:
        stack = read_stack(path)
    except InputError as error:
        message = str(error)
    else:
        message = ""
    if message:
        assert str(path) in message
        return False
    assert stack.data.shape == data.shape
    np.testing.assert_array_equal(stack.data, data)
    return True


@pytest.mark.parametrize("make", WRITERS.values(), ids=WRITERS)
def test_every_byte_of_a_small_file(tmp_path, make):
    data = noise((3, 5, 7), "uint16")
    make(tmp_path / "whole.tif", data)
    content = (tmp_path / "whole.tif").read_bytes()
    last = len(content) - UNUSED
    sizes = (*share.spread(range(last), 3), *range(last, len(content) + 1))
    complete = [size for size in sizes if _cut_and_read(tmp_path / "cut.tif", content, size, data)]
    # tifffile leaves up to 16 unused bytes behind the last directory; without them a file is still complete.
    assert complete[-1] == len(content)
    assert min(complete) >= len(content) - UNUSED
