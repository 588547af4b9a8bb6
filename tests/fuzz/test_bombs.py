"""Parts of files that decode to thousands of times what they declare: refused, in the memory of a sound file."""

import sys
import zlib

import imagecodecs
import numpy as np
import pytest
import tifffile

from tests.fuzz.judge import SLACK, memory
from xcorr_app import read_stack
from xcorr_app.errors import DamagedFileError

SHAPE = (64, 64)
HELD = bytes(1 << 26)
DEFLATED = zlib.compress(HELD, 1)


def tiff(compression, content):
    def write(folder):
        how = {"shape": (1, *SHAPE), "dtype": np.uint16, "photometric": "minisblack", "metadata": None}
        tifffile.imwrite(folder / "a.tif", iter([content()]), compression=compression, **how)
        return folder / "a.tif"

    return write


def hdf5(**how):
    def write(folder):
        h5py = pytest.importorskip("h5py")
        with h5py.File(folder / "a.h5", "w") as file:
            array = file.create_dataset("d", (2, *SHAPE), "u2", chunks=(1, *SHAPE), **how)
            array[0] = 7
            encoded = DEFLATED if how["compression"] == "gzip" else imagecodecs.lzf_encode(HELD)
            array.id.write_direct_chunk((1, 0, 0), encoded, 0)
        return folder / "a.h5"

    return write


def zarr(way):
    def write(folder):
        bounded = pytest.importorskip("tests.io.ome_zarr.test_bounded")
        encode, how = bounded.WAYS[way]
        path = bounded.ome(folder / "a.ome.zarr", **how)
        for chunk in [path / name for name in ("0/0.0.0", "0/0/0/0", "0/c/0/0/0") if (path / name).is_file()]:
            chunk.write_bytes(encode(HELD))
        return path

    return write


def png(folder):
    header = b"\0\0\0@\0\0\0@\x10\0\0\0\0"
    parts = [(b"IHDR", header), (b"IDAT", DEFLATED), (b"IEND", b"")]
    content = b"".join(
        len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big") for kind, data in parts
    )
    (folder / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n" + content)
    return folder / "a.png"


BOMBS = {
    "deflate": tiff("zlib", lambda: DEFLATED),
    "lzw": tiff("lzw", lambda: imagecodecs.lzw_encode(HELD)),
    "zstd": tiff("zstd", lambda: imagecodecs.zstd_encode(HELD)),
    "lzma": tiff("lzma", lambda: imagecodecs.lzma_encode(HELD, level=0)),
    "packbits": tiff("packbits", lambda: b"\x81\0" * (1 << 20)),
    "png-in-tiff": tiff("png", lambda: imagecodecs.png_encode(np.zeros((1 << 12, 1 << 12), np.uint16), level=1)),
    "jpeg2000": tiff("jpeg2000", lambda: imagecodecs.jpeg2k_encode(np.zeros((1 << 12, 1 << 12), np.uint16))),
    "jpegxl": tiff("jpegxl", lambda: imagecodecs.jpegxl_encode(np.zeros((1 << 12, 1 << 12), np.uint16), effort=1)),
    "lerc": tiff("lerc", lambda: imagecodecs.lerc_encode(np.zeros((1 << 12, 1 << 12), np.uint16))),
    "png": png,
    "hdf5-gzip": hdf5(compression="gzip"),
    "hdf5-shuffled": hdf5(compression="gzip", shuffle=True),
    "hdf5-lzf": hdf5(compression="lzf"),
    **{
        f"zarr-{way}": zarr(way)
        for way in ("2-zlib", "2-gzip", "2-zstd", "2-blosc", "2-lz4", "3-gzip", "3-zstd", "3-blosc")
    },
}


@pytest.mark.skipif(sys.platform != "linux", reason="memory is told by Linux alone")
@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_takes_no_memory(tmp_path, name):
    path = BOMBS[name](tmp_path)
    before = memory()
    with pytest.raises(DamagedFileError):
        read_stack(path)
    assert memory(peak=True) - before < 2 * 2 * SHAPE[0] * SHAPE[1] + SLACK
