"""Tags that say how pixels are meant: resolution, palette."""

import struct

import numpy as np
import pytest
import tifffile

from tests.io.samples import noise
from xcorr_app.errors import InputError
from xcorr_app.io import read_stack
from xcorr_app.io.source import Resolution

RAMP = np.arange(256, dtype=np.uint16) * 257


def _with_resolution(path, *, y=(4, 1), has_unit=True):
    """Two pixels a centimetre along rows; what is not asked for is changed in the file."""
    options = {"resolution": (2, 4), "resolutionunit": "CENTIMETER", "metadata": None, "software": False}
    tifffile.imwrite(path, noise((6, 5)), **options)
    with tifffile.TiffFile(path) as file:
        tags = file.pages[0].tags
        places = tags[283].valueoffset, tags[296].offset
    content = bytearray(path.read_bytes())
    content[places[0] : places[0] + 8] = struct.pack("<II", *y)
    if not has_unit:
        content[places[1] : places[1] + 2] = struct.pack("<H", 300)
    path.write_bytes(content)
    return read_stack(path).metadata.tiff.resolution


def test_resolution(tmp_path):
    path = tmp_path / "a.tif"
    assert _with_resolution(path) == Resolution((2, 1), (4, 1), 3)
    assert _with_resolution(path, has_unit=False) == Resolution((2, 1), (4, 1), 2)  # inches, where a file does not say
    assert _with_resolution(path, y=(4, 0)) is None


@pytest.mark.parametrize(
    ("colours", "is_grey"),
    [
        ((RAMP, RAMP, RAMP), True),
        ((RAMP[::-1],) * 3, False),  # more is darker: what is measured would be the negative
        ((RAMP, RAMP, RAMP[::-1]), False),
        ((RAMP, RAMP[::-1], RAMP), False),
    ],
)
def test_a_palette_is_read_where_it_is_grey(tmp_path, colours, is_grey):
    data = noise((6, 5), "uint8")
    tifffile.imwrite(tmp_path / "a.tif", data, photometric="palette", colormap=np.array(colours), metadata=None)
    if is_grey:
        np.testing.assert_array_equal(read_stack(tmp_path / "a.tif").data.squeeze(), data)
    else:
        with pytest.raises(InputError, match=r"a\.tif: is a palette image"):
            read_stack(tmp_path / "a.tif")


@pytest.mark.parametrize(("code", "is_read"), [(65001, True), (700, False)])
def test_a_private_tag_of_an_unknown_type_is_passed_over(tmp_path, code, is_read):
    path, pixels = tmp_path / "a.tif", noise((6, 5))
    tifffile.imwrite(path, pixels, extratags=[(code, 3, 1, 7, True)], metadata=None)
    with tifffile.TiffFile(path) as file:
        place = file.pages[0].tags[code].offset
    content = bytearray(path.read_bytes())
    content[place + 2 : place + 4] = struct.pack("<H", 99)
    path.write_bytes(content)
    if is_read:
        assert np.array_equal(read_stack(path).data.squeeze(), pixels)
    else:
        with pytest.raises(InputError, match="of a type 99"):
            read_stack(path)
