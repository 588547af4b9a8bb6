"""Chunks of OME-Zarr that hold another number of bytes than they declare: an error, and no memory of more."""

import gzip
import zlib

import imagecodecs
import numpy as np
import pytest

from tests.batch.movies import movie, xcorr
from tests.fuzz.judge import SLACK, memory
from xcorr_app import read_stack
from xcorr_app.errors import DamagedFileError, InputError, LimitError

zarr = pytest.importorskip("zarr")
numcodecs = pytest.importorskip("numcodecs")
codecs = pytest.importorskip("zarr.codecs")
DATA = movie()
PLANE = (1, *DATA.shape[1:])


def ome(path, **how):
    """An image of chunks of a plane each."""
    group = zarr.open_group(path, mode="w", zarr_format=how.get("zarr_format", 3))
    how = {"chunks": PLANE, "shape": DATA.shape, "dtype": DATA.dtype} | how
    how.pop("zarr_format", None)
    array = group.create_array("0", **how)
    if np.prod(array.chunks) < 1 << 24:
        array[: len(DATA)] = DATA[: array.shape[0], : array.shape[1], : array.shape[2]]
    axes = [{"name": name, "type": "time" if name == "t" else "space"} for name in "tyx"]
    scale = [{"type": "scale", "scale": [1.0, 1.0, 1.0]}]
    scales = [{"version": "0.4", "axes": axes, "datasets": [{"path": "0", "coordinateTransformations": scale}]}]
    if array.metadata.zarr_format == 2:
        group.attrs["multiscales"] = scales
    else:
        group.attrs["ome"] = {"version": "0.5", "multiscales": scales}
    return path


def lz4(content):
    return len(content).to_bytes(4, "little") + imagecodecs.lz4_encode(content)


WAYS = {
    "2-zlib": (zlib.compress, {"zarr_format": 2, "compressors": numcodecs.Zlib()}),
    "2-gzip": (gzip.compress, {"zarr_format": 2, "compressors": numcodecs.GZip()}),
    "2-zstd": (imagecodecs.zstd_encode, {"zarr_format": 2, "compressors": numcodecs.Zstd()}),
    "2-blosc": (imagecodecs.blosc_encode, {"zarr_format": 2, "compressors": numcodecs.Blosc()}),
    "2-lz4": (lz4, {"zarr_format": 2, "compressors": numcodecs.LZ4()}),
    "3-gzip": (gzip.compress, {"compressors": codecs.GzipCodec()}),
    "3-zstd": (imagecodecs.zstd_encode, {"compressors": codecs.ZstdCodec()}),
    "3-blosc": (imagecodecs.blosc_encode, {"compressors": codecs.BloscCodec()}),
}


@pytest.mark.parametrize("way", WAYS)
def test_chunks_decode_to_what_they_declare_or_are_damaged(tmp_path, way):
    encode, how = WAYS[way]
    path = ome(tmp_path / "a.ome.zarr", **how)
    np.testing.assert_array_equal(read_stack(path).data, DATA)
    size = DATA[0].nbytes
    (chunk,) = (path / name for name in ("0/1.0.0", "0/1/0/0", "0/c/1/0/0") if (path / name).is_file())
    for held in (0, size - 2, size + 2, 2 * size, 1 << 26):
        chunk.write_bytes(encode(bytes(held)))
        before = memory()
        with pytest.raises(DamagedFileError, match="cannot be decoded"):
            read_stack(path)
        assert memory(peak=True) - before < 2 * DATA.nbytes + SLACK
    run = xcorr("filter", "--device", "cpu", path, "-o", tmp_path / "out", "--box", 1)
    assert run.code == 1


def test_inner_chunks_of_a_shard_are_bounded_too(tmp_path):
    path = ome(tmp_path / "a.ome.zarr", shards=DATA.shape, compressors=codecs.GzipCodec())
    np.testing.assert_array_equal(read_stack(path).data, DATA)
    bomb = gzip.compress(bytes(1 << 26))
    index = np.full((len(DATA), 2), 2**64 - 1, "<u8")
    index[0] = 0, len(bomb)
    content = index.tobytes()
    import google_crc32c

    (path / "0/c/0/0/0").write_bytes(bomb + content + google_crc32c.value(content).to_bytes(4, "little"))
    with pytest.raises(DamagedFileError, match="room for"):
        read_stack(path)


def test_chunks_and_encodings_that_are_refused(tmp_path):
    huge = ome(tmp_path / "b.ome.zarr", chunks=(9, 9000, 9000), compressors=codecs.GzipCodec(), shape=(1, 8, 8))
    with pytest.raises(LimitError, match="declares chunks of 9 x 9000 x 9000"):
        read_stack(huge)
    large = ome(tmp_path / "c.ome.zarr", chunks=(1, 9000, 9000), compressors=codecs.GzipCodec(), shape=(1, 8, 8))
    with pytest.raises(DamagedFileError, match="declares chunks of"):
        read_stack(large)
    other = ome(tmp_path / "d.ome.zarr", zarr_format=2, compressors=numcodecs.BZ2())
    with pytest.raises(InputError, match="encoded by bz2, and gzip, zlib, zstd, blosc, lz4 are read"):
        read_stack(other)
