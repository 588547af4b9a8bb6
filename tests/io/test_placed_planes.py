"""Planes that several processes place in one TIFF file: the same bytes as of one writer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from xcorr_app.errors import OutputError, ShapeError
from xcorr_app.io import StackMetadata, StackWriter
from xcorr_app.io.atomic import begun_path, remove_abandoned
from xcorr_app.io.placed_planes import PlacedPlanes
from xcorr_app.io.source import TiffTags

MARK = "0123456789ab"


@pytest.mark.parametrize(("kind", "byteorder"), [("plain", "<"), ("imagej", ">"), ("ome", "<")])
def test_the_same_bytes_as_of_one_writer(tmp_path, kind, byteorder):
    planes = np.random.default_rng(1).integers(0, 60000, (23, 17, 31)).astype(np.uint16)
    metadata = StackMetadata(axes="TYX", shape=planes.shape, dtype=planes.dtype, kind=kind)
    metadata = replace(metadata, tiff=TiffTags(byteorder=byteorder))
    with StackWriter(tmp_path / "one.tif", metadata) as writer:
        for plane in planes:
            writer.write(plane)
    path = tmp_path / "many.tif"
    for first, last in ((16, 23), (0, 5), (5, 16), (0, 5)):
        with PlacedPlanes(path, metadata, MARK) as placed:
            placed.place(first, planes[first:last])
    assert not path.exists()
    remove_abandoned(path, MARK)
    with StackWriter(path, metadata, begun=MARK) as writer:
        assert writer.is_placed
    assert path.read_bytes() == (tmp_path / "one.tif").read_bytes()
    assert [file.name for file in tmp_path.iterdir() if "partial" in file.name] == []


def test_what_does_not_fit_is_refused(tmp_path):
    metadata = StackMetadata(axes="TYX", shape=(4, 5, 6), dtype=np.dtype(np.uint8))
    with PlacedPlanes(tmp_path / "a.tif", metadata, MARK) as placed, pytest.raises(ShapeError):
        placed.place(0, [np.zeros((5, 7), np.uint8)])
    with PlacedPlanes(tmp_path / "a.tif", metadata, MARK) as placed, pytest.raises(OutputError):
        placed.place(3, [np.zeros((5, 6), np.uint8)] * 2)
    # Nothing was begun but an empty file, which is removed as any that is abandoned.
    remove_abandoned(tmp_path / "a.tif", "another")
    assert not begun_path(tmp_path / "a.tif", MARK).exists()
    with pytest.raises(OutputError), StackWriter(tmp_path / "a.tif", metadata, begun=MARK):
        pass
