"""Pages of grey values are decoded here, of every compression, and what comes out is what the page declares."""

import itertools
import struct

import imagecodecs
import numpy as np
import pytest
import tifffile

from tests.io.samples import TYPES, noise, write_plain
from xcorr_app.errors import DamagedFileError
from xcorr_app.io import read_stack, scan_file
from xcorr_app.io.declared import SPARE
from xcorr_app.io.tiff import pages

LAYOUTS = ({}, {"rowsperstrip": 7}, {"tile": (16, 32)})


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("compression", ["zlib", "lzw", "zstd", "packbits"])
def test_every_usual_kind(tmp_path, dtype, compression):
    data = noise((2, 33, 47), dtype)
    predictors = (False,) if compression == "packbits" else (False, True)
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
@pytest.mark.parametrize("compression", [None, "zlib", "jpeg2000", "jpeg"])
def test_colours_as_tifffile_decodes_them(tmp_path, layout, planar, compression):
    image = np.moveaxis(noise((3, 33, 47), "uint8"), 0, -1)
    data = np.ascontiguousarray(image if planar == "contig" else np.moveaxis(image, -1, 0))
    how = {"photometric": "rgb", "planarconfig": planar, "compression": compression, "metadata": None}
    tifffile.imwrite(tmp_path / "a.tif", data, **how, **layout)
    found = np.stack([read_stack(tmp_path / "a.tif", channel=channel).data for channel in "RGB"], -1)
    expected = tifffile.imread(tmp_path / "a.tif")
    np.testing.assert_array_equal(found, expected if planar == "contig" else np.moveaxis(expected, 0, -1))


def test_a_damaged_segment_is_an_error_that_names_the_page(tmp_path):
    write_plain(tmp_path / "a.tif", noise((3, 40, 50)), compression="zlib")
    with tifffile.TiffFile(tmp_path / "a.tif") as tif:
        place, size = tif.pages[1].dataoffsets[0], tif.pages[1].databytecounts[0]
    content = bytearray((tmp_path / "a.tif").read_bytes())
    content[place + 2 : place + size] = bytes(size - 2)
    (tmp_path / "a.tif").write_bytes(content)
    file = scan_file(tmp_path / "a.tif")
    file.read(0)
    with pytest.raises(DamagedFileError, match=r"a\.tif: page 1 cannot be decoded"):
        file.read(1)


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


@pytest.mark.parametrize("compression", ["zlib", "zstd"])
@pytest.mark.parametrize("predictor", [False, True])
def test_bits_that_are_stored_last_first(tmp_path, monkeypatch, compression, predictor):
    data = noise((40, 50))
    values = imagecodecs.delta_encode(data, axis=-1) if predictor else data
    encoded = getattr(imagecodecs, f"{compression}_encode")(values.tobytes())
    how = {"shape": (1, 40, 50), "dtype": np.uint16, "photometric": "minisblack", "compression": compression}
    path = tmp_path / "a.tif"
    # tifffile writes no FillOrder (266): it is asked for the tag before, which is given that number.
    turned = imagecodecs.bitorder_encode(encoded)
    tifffile.imwrite(path, iter([turned]), **how, predictor=predictor, metadata=None, extratags=[(265, 3, 1, 2, True)])
    path.write_bytes(path.read_bytes().replace(struct.pack("<HHI", 265, 3, 1), struct.pack("<HHI", 266, 3, 1)))
    with tifffile.TiffFile(path) as tif:
        code, order = int(tif.pages[0].compression), tif.pages[0].fillorder
    assert order == 2
    given, real = [], pages._BYTE_CODECS[code]
    monkeypatch.setitem(pages._BYTE_CODECS, code, lambda content, **how: given.append(content) or real(content, **how))
    np.testing.assert_array_equal(scan_file(path).read(0), data)
    assert given == [encoded]
