"""Planes that several processes place in one TIFF file: the same bytes as of one writer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from xcorr_app.errors import OutputError, ShapeError
from xcorr_app.io import StackMetadata, StackWriter
from xcorr_app.io.ome_zarr import zarr_write
from xcorr_app.io.ome_zarr.zarr_write import ZarrWriter
from xcorr_app.io.source import TiffTags, ZarrTags
from xcorr_app.io.writing.placed_planes import PlacedPlanes


def begun(path):
    return path.with_name("begun")


def place(path, metadata, first, planes, **how):
    begun(path).mkdir(exist_ok=True)
    with PlacedPlanes(path, metadata, begun(path), **how) as placed, placed.part(first) as writer:
        for plane in planes:
            writer.write(plane)
    return writer.placed


@pytest.mark.parametrize("compression", [None, "zlib", "lzw"])
@pytest.mark.parametrize(("kind", "byteorder"), [("plain", "<"), ("imagej", ">"), ("ome", "<")])
def test_the_same_bytes_as_of_one_writer(tmp_path, kind, byteorder, compression):
    planes = np.random.default_rng(1).integers(0, 60000, (23, 17, 31)).astype(np.uint16)
    metadata = StackMetadata(axes="TYX", shape=planes.shape, dtype=planes.dtype, kind=kind)
    metadata = replace(metadata, tiff=TiffTags(byteorder=byteorder))
    with StackWriter(tmp_path / "one.tif", metadata, compression=compression) as writer:
        for plane in planes:
            writer.write(plane)
    path = tmp_path / "many.tif"
    parts = {}
    for first, last in ((16, 23), (0, 5), (5, 16), (0, 5)):
        parts[first] = place(path, metadata, first, planes[first:last], compression=compression)
    assert not path.exists()
    with StackWriter(path, metadata, compression=compression, begun=begun(path)) as writer:
        writer.take(sum((parts[first] for first in sorted(parts)), ()))
    assert path.read_bytes() == (tmp_path / "one.tif").read_bytes()
    assert not (begun(path) / path.name).exists()
    assert [file.name for file in tmp_path.iterdir() if "partial" in file.name] == []


def test_what_does_not_fit_is_refused(tmp_path):
    metadata = StackMetadata(axes="TYX", shape=(4, 5, 6), dtype=np.dtype(np.uint8))
    with pytest.raises(ShapeError):
        place(tmp_path / "a.tif", metadata, 0, [np.zeros((5, 7), np.uint8)])
    with pytest.raises(OutputError):
        place(tmp_path / "a.tif", metadata, 3, [np.zeros((5, 6), np.uint8)] * 2)
    (begun(tmp_path / "a.tif") / "a.tif").unlink()
    with pytest.raises(OutputError), StackWriter(tmp_path / "a.tif", metadata, begun=begun(tmp_path / "a.tif")):
        pass


def test_a_compressed_part_that_is_cut_short_is_noticed(tmp_path):
    planes = np.random.default_rng(2).integers(0, 200, (4, 30, 41)).astype(np.uint8)
    metadata = StackMetadata(axes="TYX", shape=planes.shape, dtype=planes.dtype)
    path = tmp_path / "a.tif"
    placed = place(path, metadata, 0, planes, compression="zlib")
    part = begun(path) / placed[0][0]
    part.write_bytes(part.read_bytes()[:-1])
    with (
        pytest.raises(OutputError, match="ends before"),
        StackWriter(path, metadata, compression="zlib", begun=begun(path)) as writer,
    ):
        writer.take(placed)
    assert not path.exists()


@pytest.mark.parametrize(("version", "compression"), [("0.5", None), ("0.5", "zstd"), ("0.4", None), ("0.4", "zlib")])
@pytest.mark.parametrize("axes", ["TYX", "TCYX"])
def test_shards_are_those_of_one_writer(tmp_path, version, compression, axes, monkeypatch):
    pytest.importorskip("zarr")
    monkeypatch.setattr(zarr_write, "_SHARD_BYTES", 6 * 17 * 31 * 2)
    rng = np.random.default_rng(1)
    planes = rng.integers(0, 60000, (22, 17, 31)).astype(np.uint16)
    shape = (22, 17, 31) if axes == "TYX" else (11, 2, 17, 31)
    metadata = StackMetadata(axes=axes, shape=shape, dtype=planes.dtype)
    how = {"compression": compression, "pyramid": 3}
    metadata = replace(metadata, zarr=ZarrTags(version)) if version == "0.4" else metadata
    with ZarrWriter(tmp_path / "one.ome.zarr", metadata, **how) as writer:
        for plane in planes:
            writer.write(plane)
    assert zarr_write.planes_together(metadata) == 6
    path = tmp_path / "many.ome.zarr"
    for first, last in ((18, 22), (0, 12), (12, 18), (0, 12)):
        assert place(path, metadata, first, planes[first:last], **how) == ()
    assert not path.exists()
    with ZarrWriter(path, metadata, **how, begun=begun(path)) as writer:
        writer.take(())
    one, many = ({file.relative_to(top): file.read_bytes() for file in top.rglob("*") if file.is_file()}
                 for top in (tmp_path / "one.ome.zarr", path))  # fmt: skip
    assert one == many
    assert not (begun(path) / path.name).exists()
    assert [file.name for file in tmp_path.iterdir() if "partial" in file.name] == []
