"""Parts of stacks in formats of microscopes: planes, scenes, entries, what a library only logs, video."""

import gc
import logging
import struct
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tests.formats.test_formats import write_czi
from tests.io.samples import noise
from xcorr_app.errors import DamagedFileError, InputError
from xcorr_app.io import discover, read_stack
from xcorr_app.io.declared import Limits
from xcorr_app.io.formats import czi, nd2_file
from xcorr_app.io.formats.czi import logged_as_damage
from xcorr_app.io.source import make_metadata

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


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


def test_what_the_library_only_logs_is_an_error_and_not_printed(caplog):
    logger = logging.getLogger("czifile")
    with logged_as_damage(Path("b.czi")):
        logger.info("nothing of interest")
    with pytest.raises(DamagedFileError, match=r"b\.czi: strange thing found"), logged_as_damage(Path("b.czi")):
        logger.warning("strange thing found")
    assert not caplog.records
    logger.warning("outside of any reading")
    assert [record.getMessage() for record in caplog.records] == ["outside of any reading"]


# The library leaves the pipes of its processes to the garbage collector, which warns of them.


@pytest.fixture(autouse=True)
def collected():
    yield
    gc.collect()


def write_video(path, frames, pix_fmt, *options):
    ffmpeg = pytest.importorskip("imageio_ffmpeg")
    writer = ffmpeg.write_frames(
        str(path),
        frames.shape[2:0:-1],
        pix_fmt_in=pix_fmt,
        fps=8,
        codec="rawvideo" if path.suffix == ".avi" else "libx264",
        output_params=list(options),
        macro_block_size=2,
    )
    writer.send(None)
    for frame in frames:
        writer.send(np.ascontiguousarray(frame))
    writer.close()
    return path


def test_video_without_loss(tmp_path):
    data = noise((7, 18, 22), "uint8")
    path = write_video(tmp_path / "a.avi", data, "gray", "-pix_fmt", "gray")
    stack = read_stack(path)
    assert (stack.metadata.axes, stack.metadata.time_increment, stack.metadata.time_unit) == ("TYX", 0.125, "s")
    np.testing.assert_array_equal(stack.data, data)


def test_mp4_in_any_order(tmp_path):
    ramp = np.linspace(0, 120, 32)[None, :, None] + np.arange(6)[:, None, None] * 20 + np.zeros((1, 1, 48))
    path = write_video(tmp_path / "a.mp4", ramp.astype(np.uint8), "gray", "-qp", "0")
    source = discover(path).series[0].open()
    for t in (5, 0, 3):
        np.testing.assert_allclose(source.plane(t=t).astype(float), ramp[t], atol=5)


def test_a_damaged_video_is_told(tmp_path):
    path = write_video(tmp_path / "a.avi", noise((7, 18, 22), "uint8"), "gray", "-pix_fmt", "gray")
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(InputError, match=r"a\.avi"):
        read_stack(path)
