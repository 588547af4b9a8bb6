"""Entries of CZI as the library czifile names them from 2026 on, and entries that are damaged."""

from __future__ import annotations

import struct
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tests.formats.test_formats import write_czi
from tests.io.samples import noise
from xcorr_app.errors import DamagedFileError, InputError
from xcorr_app.io import read_stack
from xcorr_app.io.formats import czi

PATH = Path("a.czi")


def entry(t=0, c=0, *, colours=1, tile=-1, scene=-1, stored=63):
    """A plane of 7 x 9 pixels; its last axis, called S, are the colours."""
    segment = SimpleNamespace(
        data_size=2 * stored, directory_entry=SimpleNamespace(stored_size=stored), data=lambda: np.full((7, 9), t)
    )
    return SimpleNamespace(
        dims=("C", "T", "Y", "X", "S"), start=(c, t, 0, 0, 0), shape=(1, 1, 7, 9, colours), dtype=np.dtype(np.uint16),
        scene_index=scene, mosaic_index=tile, stored_size=63, subblock_entry_offset=0,
        read_segment_data=lambda file: segment,
    )  # fmt: skip


def test_every_plane_has_its_place():
    blocks = [entry(t, c, scene=2) for t in range(3) for c in range(2)]
    sizes, places = czi._grid(PATH, blocks)
    assert sizes == {"T": 3, "Z": 1, "C": 2, "Y": 7, "X": 9}
    assert places[2, 0, 1] is blocks[5]
    assert czi._at(blocks[0])["S"] == 2


@pytest.mark.parametrize("other", [{"colours": 3}, {"tile": 1}])
def test_colours_and_mosaics_are_refused(other):
    with pytest.raises(InputError, match="export it as OME-TIFF"):
        czi._grid(PATH, [entry(**other)])


def test_an_entry_of_many_axes_is_damaged(tmp_path):
    """Before memory is taken for them."""
    pytest.importorskip("czifile")
    path = write_czi(tmp_path / "a.czi", noise((2, 1, 7, 9)))
    content = bytearray(path.read_bytes())
    at = content.rindex(b"DV") + 28
    content[at : at + 4] = struct.pack("<i", 100_000_000)
    path.write_bytes(content)
    with pytest.raises(DamagedFileError, match=r"a\.czi.*100000000 axes"):
        read_stack(path)
