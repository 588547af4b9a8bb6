"""Chunks and shards: bounded, damaged."""

import gzip
import zlib

import imagecodecs
import numpy as np
import pytest

from tests.batch.movies import movie, xcorr
from tests.fuzz.judge import SLACK, memory
from tests.io.ome_zarr.test_zarr import make_group, metadata_of, write
from tests.io.samples import noise
from xcorr_app import read_stack
from xcorr_app.errors import DamagedFileError, InputError, LimitError
from xcorr_app.io import scan_file
from xcorr_app.io.ome_zarr.zarr_write import halve

zarr = pytest.importorskip("zarr")
numcodecs = pytest.importorskip("numcodecs")
codecs = pytest.importorskip("zarr.codecs")
DATA = movie()
PLANE = (1, *DATA.shape[1:])


def ome(path, data=DATA, chunks=PLANE, zarr_format=3, **how):
    """An image of chunks of a plane each."""
    return make_group(path, data, "tyx", zarr_format, chunks, **how)


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
    huge = ome(tmp_path / "b.ome.zarr", chunks=(9, 9000, 9000), compressors=codecs.GzipCodec(), data=DATA[:1, :8, :8])
    with pytest.raises(LimitError, match="declares chunks of 9 x 9000 x 9000"):
        read_stack(huge)
    large = ome(tmp_path / "c.ome.zarr", chunks=(1, 9000, 9000), compressors=codecs.GzipCodec(), data=DATA[:1, :8, :8])
    with pytest.raises(DamagedFileError, match="declares chunks of"):
        read_stack(large)
    other = ome(tmp_path / "d.ome.zarr", zarr_format=2, compressors=numcodecs.BZ2())
    with pytest.raises(InputError, match="encoded by bz2, and gzip, zlib, zstd, blosc, lz4 are read"):
        read_stack(other)


def make_shards(path, data, shards, chunks, index_location="end", **options):
    """An array in shards without compression, as the zarr library writes it."""
    # Through the zarr library; an array whose chunks are whole shards is the way to say where an index is.
    sharding = zarr.codecs.ShardingCodec(
        chunk_shape=chunks, codecs=[zarr.codecs.BytesCodec()], index_location=index_location
    )
    return ome(path, data, shards, serializer=sharding, compressors=None, filters=None, **options)


OF_PLANES, OF_TILES = [(3, 33, 41), (2, 33, 41), (1, 33, 41), (5, 33, 41)], [(3, 40, 48), (5, 40, 16)]


@pytest.mark.parametrize("index_location", ["start", "end"])
@pytest.mark.parametrize("shards", OF_PLANES + OF_TILES)
def test_shards_of_other_programs(tmp_path, shards, index_location):
    data = noise((5, 33, 41))
    data[2:4] = 0  # chunks of the fill value are not stored
    chunks = (1, 33, 41) if shards in OF_PLANES else (1, 20, 16)
    path = make_shards(tmp_path / "a.zarr", data, shards, chunks, index_location)
    np.testing.assert_array_equal(read_stack(path).data, data)
    np.testing.assert_array_equal(scan_file(path).read(4), data[4])


def test_what_is_not_there_is_the_fill_value(tmp_path):
    data = noise((4, 9, 11))
    path = make_shards(tmp_path / "a.zarr", data, (2, 9, 11), (1, 9, 11), fill_value=7)
    (path / "0" / "c" / "1" / "0" / "0").unlink()
    file = scan_file(path)
    np.testing.assert_array_equal(file.read(1), data[1])
    np.testing.assert_array_equal(file.read(2), np.full((9, 11), 7))


@pytest.mark.parametrize("damage", ["index", "cut", "place", "empty"])
@pytest.mark.parametrize("compressors", [None, codecs.ZstdCodec()])
def test_a_damaged_shard_is_an_error_of_its_planes(tmp_path, damage, compressors):
    data = noise((4, 9, 11))
    path = ome(tmp_path / "a.zarr", data, (1, 9, 11), shards=(2, 9, 11), compressors=compressors)
    shard = path / "0" / "c" / "1" / "0" / "0"
    content = bytearray(shard.read_bytes())
    if damage == "index":
        content[-10] ^= 1
    elif damage == "place":
        content[-36:-4] = np.array([0, 198, 1 << 40, 198], "<u8").tobytes()
        content[-4:] = pytest.importorskip("google_crc32c").value(bytes(content[-36:-4])).to_bytes(4, "little")
    shard.write_bytes({"cut": content[:-50], "empty": b""}.get(damage, content))
    file = scan_file(path)
    np.testing.assert_array_equal(file.read(1), data[1])
    with pytest.raises(DamagedFileError, match=r"plane 3 cannot be decoded"):
        file.read(3)


def test_large_planes_in_tiles_and_shards_are_what_the_library_reads(tmp_path, monkeypatch):
    monkeypatch.setattr("xcorr_app.io.ome_zarr.zarr_write._TILE", 16)
    monkeypatch.setattr("xcorr_app.io.ome_zarr.zarr_write._SHARD_BYTES", 3 * 33 * 41 * 2)
    data = noise((4, 2, 33, 41))
    path = write(tmp_path / "a.zarr", data, metadata_of(data, "TZYX"), pyramid=2)
    group = zarr.open(str(path), mode="r")
    np.testing.assert_array_equal(group["0"][...], data)
    np.testing.assert_array_equal(group["1"][...], halve(data))
    np.testing.assert_array_equal(read_stack(path).data, data)
