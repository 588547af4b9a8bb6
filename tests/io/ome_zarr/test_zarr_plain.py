"""OME-Zarr whose chunks are nothing but pixels, read without its library."""

import numpy as np
import pytest

from tests.io.ome_zarr.test_zarr import metadata_of, write
from tests.io.samples import noise
from xcorr_app.errors import DamagedFileError
from xcorr_app.io import read_stack, scan_file
from xcorr_app.io.ome_zarr.zarr_write import halve

zarr = pytest.importorskip("zarr")


def make_shards(path, data, shards, chunks, index_location="end", **options):
    """An array in shards without compression, as the zarr library writes it."""
    axes = [{"name": axis, "type": kind} for axis, kind in zip("tyx", ("time", "space", "space"), strict=True)]
    datasets = [{"path": "0", "coordinateTransformations": [{"type": "scale", "scale": [1.0] * 3}]}]
    attributes = {"ome": {"version": "0.5", "multiscales": [{"axes": axes, "datasets": datasets}]}}
    group = zarr.open_group(str(path), mode="w", zarr_format=3, attributes=attributes)
    # Through the zarr library; an array whose chunks are whole shards is the way to say where an index is.
    sharding = zarr.codecs.ShardingCodec(
        chunk_shape=chunks, codecs=[zarr.codecs.BytesCodec()], index_location=index_location
    )
    kind: dict = {"chunks": shards, "serializer": sharding, "compressors": None, "filters": None}
    array = group.create_array("0", shape=data.shape, dtype=data.dtype, **kind, **options)
    array[...] = data
    return path


@pytest.mark.parametrize("index_location", ["start", "end"])
@pytest.mark.parametrize("shards", [(3, 33, 41), (2, 33, 41), (1, 33, 41), (5, 33, 41)])
def test_plain_shards_of_other_programs_are_read_without_their_library(tmp_path, shards, index_location):
    data = noise((5, 33, 41))
    data[2:4] = 0  # chunks of the fill value are not stored
    path = make_shards(tmp_path / "a.zarr", data, shards, (1, 33, 41), index_location)
    file = scan_file(path)
    assert file.plain is not None
    out = np.empty_like(data)
    file.read_into(range(5), out)
    np.testing.assert_array_equal(out, data)
    np.testing.assert_array_equal(file.read(4), data[4])


@pytest.mark.parametrize("shards", [(3, 40, 48), (5, 40, 16)])
def test_shards_of_tiles_are_left_to_the_library(tmp_path, shards):
    data = noise((5, 33, 41))
    file = scan_file(make_shards(tmp_path / "a.zarr", data, shards, (1, 20, 16)))
    assert file.plain is None
    out = np.empty_like(data)
    file.read_into(range(5), out)
    np.testing.assert_array_equal(out, data)


def test_what_is_not_there_is_the_fill_value(tmp_path):
    data = noise((4, 9, 11))
    path = make_shards(tmp_path / "a.zarr", data, (2, 9, 11), (1, 9, 11), fill_value=7)
    (path / "0" / "c" / "1" / "0" / "0").unlink()
    file = scan_file(path)
    assert file.plain is not None
    np.testing.assert_array_equal(file.read(1), data[1])
    np.testing.assert_array_equal(file.read(2), np.full((9, 11), 7))


@pytest.mark.parametrize("damage", ["index", "cut", "place", "empty"])
def test_a_damaged_shard_is_an_error_of_its_planes(tmp_path, damage):
    data = noise((4, 9, 11))
    path = make_shards(tmp_path / "a.zarr", data, (2, 9, 11), (1, 9, 11))
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
    with pytest.raises(DamagedFileError, match=r"c/1/0/0"):
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
