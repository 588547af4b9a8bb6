"""A file cut anywhere either says so or still holds everything: never fewer frames, zeros or another exception."""

import numpy as np
import pytest

from tests import share
from tests.io.samples import noise, write_imagej, write_ome, write_plain, write_shaped
from xcorr_app.errors import InputError
from xcorr_app.io import read_stack


def _plain(path, data):
    write_plain(path, data)


def _big(path, data):
    write_plain(path, data, bigtiff=True, byteorder=">")


def _zlib(path, data):
    write_plain(path, data, compression="zlib", predictor=True, rowsperstrip=3)


def _lzw(path, data):
    write_plain(path, data, compression="lzw")


def _zstd_tiles(path, data):
    write_plain(path, data, compression="zstd", tile=(16, 16))


def _shaped(path, data):
    write_shaped(path, data)


def _shaped_one_directory(path, data):
    write_shaped(path, data, truncate=True)


def _imagej(path, data):
    write_imagej(path, data, "TYX")


def _ome(path, data):
    write_ome(path, data, "TYX")


def _ome_zlib(path, data):
    write_ome(path, data, "TYX", compression="zlib")


UNUSED = 16
KINDS = [_plain, _big, _zlib, _lzw, _zstd_tiles, _shaped, _shaped_one_directory, _imagej, _ome, _ome_zlib]


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


@pytest.mark.parametrize("make", KINDS)
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


@pytest.mark.parametrize("make", KINDS)
def test_a_hundred_points_of_a_larger_file(tmp_path, make):
    data = noise((20, 64, 80), "uint16")
    make(tmp_path / "whole.tif", data)
    content = (tmp_path / "whole.tif").read_bytes()
    for size in np.linspace(0, len(content) - UNUSED - 1, 100).astype(int):
        assert not _cut_and_read(tmp_path / "cut.tif", content, size, data)
