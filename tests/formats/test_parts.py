"""Readers of formats without their libraries: what is asked of a file, and what is refused."""

from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from xcorr_app.errors import InputError
from xcorr_app.io.declared import Limits
from xcorr_app.io.formats import czi, nd2_file
from xcorr_app.io.source import make_metadata


class Opened:
    """Readers of which one is open already."""

    def __init__(self, file):
        self._file = file

    @contextmanager
    def of(self, _path, _stamp):
        yield self._file


@pytest.fixture
def path(tmp_path):
    (tmp_path / "a.bin").write_bytes(b"content")
    return tmp_path / "a.bin"


def nd2(data, sizes, dtype="uint16", **more):
    """What the library nd2 hands out: frames (n, ...) and the sizes of all axes."""
    known = {"voxel_size": lambda: SimpleNamespace(x=0.2, y=0.1, z=0.5), "experiment": (), "metadata": None}
    return SimpleNamespace(sizes=sizes, dtype=np.dtype(dtype), read_frame=lambda n: data[n], **known | more)


def test_planes_of_nd2_are_found_whatever_the_order_of_the_loops(path, monkeypatch, rng):
    sizes = {"P": 2, "T": 3, "Z": 4, "C": 2, "Y": 5, "X": 6}
    data = rng.integers(0, 1000, (2, 3, 4, 2, 5, 6)).astype(np.uint16)
    monkeypatch.setattr(nd2_file, "_READERS", Opened(nd2(data.reshape(-1, 2, 5, 6), sizes)))
    assert nd2_file.images(path) == ["0", "1"]
    found = nd2_file.scan(path, "1", Limits())
    assert (found.metadata.axes, found.metadata.shape) == ("TZCYX", (3, 4, 2, 5, 6))
    assert (found.metadata.pixel_size, found.metadata.z_step) == ((0.1, 0.2), 0.5)
    for t, z, c in np.ndindex(3, 4, 2):
        np.testing.assert_array_equal(found.read(found.page_at(t, z, c)), data[1, t, z, c])
    single = nd2(data[0, 0, 0, :1], {"Y": 5, "X": 6})
    monkeypatch.setattr(nd2_file, "_READERS", Opened(single))
    assert nd2_file.images(path) == ["0"]
    found = nd2_file.scan(path, "0", Limits())
    assert (found.metadata.axes, found.metadata.z_step, found.metadata.z_unit) == ("YX", None, None)
    np.testing.assert_array_equal(found.read(0), data[0, 0, 0, 0])


@pytest.mark.parametrize(
    ("x", "y", "z", "expected"),
    [(0.2, 0.1, 0.5, ((0.1, 0.2), "µm", 0.5, "µm")), (0.0, 0.1, 0.0, (None,) * 4), (0.2, 0.0, -1.0, (None,) * 4)],
)
def test_calibration_of_nd2(x, y, z, expected):
    metadata = make_metadata({"T": 3, "Z": 4, "C": 2, "Y": 5, "X": 6}, "TZCYX", np.dtype(np.uint16), "ome")
    loops = [
        SimpleNamespace(type="ZStackLoop", parameters=SimpleNamespace(periodMs=7.0)),
        SimpleNamespace(type="TimeLoop", parameters=SimpleNamespace(periodMs=0.0)),
        SimpleNamespace(type="TimeLoop", parameters=SimpleNamespace(periodMs=250.0)),
    ]
    names = SimpleNamespace(channels=[SimpleNamespace(channel=SimpleNamespace(name=name)) for name in ("A", "B")])
    file = nd2(None, {}, experiment=loops, metadata=names, voxel_size=lambda: SimpleNamespace(x=x, y=y, z=z))
    found = nd2_file._calibrated(metadata, file)
    assert (found.pixel_size, found.unit, found.z_step, found.z_unit) == expected
    assert (found.time_increment, found.time_unit) == (0.25, "s")
    assert found.channel_names == ("A", "B")
    bare = nd2_file._calibrated(metadata, nd2(None, {}))
    assert (bare.time_increment, bare.time_unit, bare.channel_names) == (None, None, ())
    names.channels[0].channel.name = names.channels[1].channel.name = ""
    assert nd2_file._calibrated(metadata, file).channel_names == ()
    names.channels.pop()
    assert nd2_file._calibrated(metadata, file).channel_names == ()


def block(data, axes="TZCYX", start=(0, 0, 0, 0, 0), shape=None, dtype="uint16"):
    """A sub-block as the library czifile describes it."""
    segment = SimpleNamespace(data=lambda resize: data)
    shape = (1,) * (len(axes) - 2) + data.shape[-2:] if shape is None else shape
    return SimpleNamespace(axes=axes, start=start, shape=shape, dtype=np.dtype(dtype), data_segment=lambda: segment)


def czi_of(blocks, text=""):
    return SimpleNamespace(filtered_subblock_directory=blocks, metadata=lambda: text)


def test_planes_and_scenes_of_czi(path, monkeypatch, rng):
    data = rng.integers(0, 1000, (2, 3, 4, 2, 5, 6)).astype(np.uint16)
    at = [(s, t, z, c) for s, t, z, c in np.ndindex(2, 3, 4, 2)]
    blocks = [block(data[p], "STZCYX", (7 + 2 * p[0], 1 + p[1], p[2], 4 + p[3], 0, 0)) for p in at]
    monkeypatch.setattr(czi, "_READERS", Opened(czi_of(blocks[::-1])))
    assert czi.images(path) == ["0", "1"]
    for scene in range(2):
        found = czi.scan(path, str(scene), Limits())
        assert (found.metadata.axes, found.metadata.shape) == ("TZCYX", (3, 4, 2, 5, 6))
        for t, z, c in np.ndindex(3, 4, 2):
            np.testing.assert_array_equal(found.read(found.page_at(t, z, c)), data[scene, t, z, c])
    # Blocks without scenes belong to the first.
    mixed = [block(data[0, 0, 0, 0], "YX", (0, 0)), block(data[1, 0, 0, 0], "SYX", (1, 0, 0))]
    monkeypatch.setattr(czi, "_READERS", Opened(czi_of(mixed)))
    assert czi.images(path) == ["0", "1"]
    np.testing.assert_array_equal(czi.scan(path, "0", Limits()).read(0), data[0, 0, 0, 0])
    np.testing.assert_array_equal(czi.scan(path, "1", Limits()).read(0), data[1, 0, 0, 0])


PLANE = np.zeros((5, 6), np.uint16)


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ([block(PLANE, "MYX", (1, 0, 0))], "has an axis M"),
        ([block(PLANE, "TYX", (0, 0, 0), (2, 5, 6))], "has an axis T"),
        ([block(PLANE, "YX0", (0, 0, 0), (5, 6, 3))], "has colours"),
        ([block(PLANE, "TYX", (0, 0, 0)), block(PLANE, "TYX", (1, 0, 0), (1, 6, 6))], "several sizes or types"),
        ([block(PLANE, "TYX", (0, 0, 0)), block(PLANE, "TYX", (1, 0, 0), (1, 5, 7))], "several sizes or types"),
        ([block(PLANE, "TYX", (0, 0, 0)), block(PLANE, "TYX", (1, 0, 0), dtype="uint8")], "several sizes or types"),
        ([block(PLANE, "TYX", (0, 0, 0)), block(PLANE, "TYX", (2, 0, 0))], "has 2 planes for T=3 x Z=1 x C=1"),
        ([block(PLANE, "TYX", (0, 0, 0)), block(PLANE, "TYX", (0, 0, 0))], "has 2 planes for T=1 x Z=1 x C=1"),
    ],
)
def test_blocks_of_czi_that_are_no_stack(blocks, message):
    with pytest.raises(InputError, match=message):
        czi._grid(Path("a.czi"), blocks)
    assert czi._grid(Path("a.czi"), [block(PLANE, "MYX0", (0, 0, 0, 0), (1, 5, 6, 1))])[0]["Y"] == 5


SAID = """<ImageDocument><Metadata><Scaling><Items>{distances}</Items></Scaling><Information><Image><Dimensions>
<Channels><Channel Name="A"/><Channel Name="B"/></Channels>
<T><Positions><Interval><Increment>2.5</Increment></Interval></Positions></T>
</Dimensions></Image></Information></Metadata></ImageDocument>"""


def test_calibration_of_czi():
    metadata = make_metadata({"T": 3, "Z": 4, "C": 2, "Y": 5, "X": 6}, "TZCYX", np.dtype(np.uint16), "ome")

    def found(**steps):
        text = "".join(f'<Distance Id="{axis}"><Value>{value}</Value></Distance>' for axis, value in steps.items())
        return czi._calibrated(metadata, Path("a.czi"), czi_of([], SAID.format(distances=text)))

    full = found(X=2e-7, Y=1e-7, Z=5e-7)
    np.testing.assert_allclose(full.pixel_size, (0.1, 0.2))
    assert full.z_step == pytest.approx(0.5)
    assert (full.unit, full.z_unit, full.time_increment, full.time_unit) == ("µm", "µm", 2.5, "s")
    assert full.channel_names == ("A", "B")
    for steps in ({"X": 2e-7}, {"Y": 2e-7}, {"X": 0, "Y": 1e-7}, {"X": 2e-7, "Y": 0}):
        assert (found(**steps).pixel_size, found(**steps).unit, found(**steps).z_step) == (None, None, None)
    assert czi._calibrated(metadata, Path("a.czi"), czi_of([])) is metadata
    with pytest.raises(InputError, match="entities"):
        czi._calibrated(metadata, Path("a.czi"), czi_of([], "<!DOCTYPE a><a/>"))
