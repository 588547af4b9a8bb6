"""Pages of TIFF that decode to thousands of times what they declare: refused, in the memory of a sound file."""

import zlib

import imagecodecs
import numpy as np
import pytest
import tifffile

from tests.fuzz.judge import SLACK, memory
from xcorr_app import read_stack
from xcorr_app.errors import DamagedFileError

HELD, IMAGE = bytes(1 << 26), np.zeros((1 << 12, 1 << 12), np.uint16)
BOMBS = {
    "zlib": lambda: zlib.compress(HELD, 1),
    "lzw": lambda: imagecodecs.lzw_encode(HELD),
    "zstd": lambda: imagecodecs.zstd_encode(HELD),
    "lzma": lambda: imagecodecs.lzma_encode(HELD, level=0),
    "packbits": lambda: b"\x81\0" * (1 << 20),
    "jpeg2000": lambda: imagecodecs.jpeg2k_encode(IMAGE),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_takes_no_memory(tmp_path, name):
    how = {"shape": (1, 64, 64), "dtype": np.uint16, "photometric": "minisblack", "metadata": None}
    tifffile.imwrite(tmp_path / "a.tif", iter([BOMBS[name]()]), compression=name, **how)
    before = memory()
    with pytest.raises(DamagedFileError):
        read_stack(tmp_path / "a.tif")
    assert memory(peak=True) - before < 2 * (2 * 64 * 64) + SLACK
