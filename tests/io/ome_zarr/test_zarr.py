"""OME-Zarr in and out: against the zarr library, and the models of the format."""

import json
import threading
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from click.testing import CliRunner

from tests.batch.movies import movie
from tests.io.samples import TYPES, noise
from xcorr_app.cli import main
from xcorr_app.errors import ArgumentError, InputError, LimitError, OutputError
from xcorr_app.io import Limits, StackMetadata, discover, read_stack, scan_file
from xcorr_app.io.cached_planes import read_planes
from xcorr_app.io.checksum import Checksums
from xcorr_app.io.ome_zarr.zarr_write import ZarrWriter
from xcorr_app.io.outputs import new_writer
from xcorr_app.io.source import ZarrTags, plane_positions

zarr = pytest.importorskip("zarr")

STACKS = [("YX", (33, 41)), ("TYX", (5, 33, 41)), ("TZCYX", (3, 2, 2, 33, 41)), ("CTYX", (2, 4, 33, 41))]


def metadata_of(data, axes, **changes):
    known = StackMetadata(axes, data.shape, data.dtype, "ome", pixel_size=(0.1, 0.2), unit="µm")
    if "C" in axes:
        known = replace(known, channel_names=("GFP", "RFP"))
    if "T" in axes:
        known = replace(known, time_increment=2.5, time_unit="s")
    return replace(known, **changes)


def write(path, data, metadata, **options):
    with ZarrWriter(path, metadata, **options) as writer:
        for index in np.ndindex(*data.shape[:-2]):
            writer.write(data[index])
    return path


def make_group(path, data, axes, zarr_format=2, chunks=None, others=None, transforms=None, units=None, **how):
    """A group as other programs write it."""
    types = {"t": "time", "c": "channel"}
    named = [{"name": axis, "type": types.get(axis, "space")} | (units or {}).get(axis, {}) for axis in axes]
    transforms = transforms or [{"type": "scale", "scale": [1.0] * len(axes)}]
    scales = {"axes": named, "datasets": [{"path": "0", "coordinateTransformations": transforms}]}
    if zarr_format == 2:
        attributes = {"multiscales": [{"version": "0.4", **scales}], **(others or {})}
    else:
        attributes = {"ome": {"version": "0.5", "multiscales": [scales], **(others or {})}}
    group = zarr.open_group(str(path), mode="w", zarr_format=zarr_format, attributes=attributes)
    array = group.create_array("0", shape=data.shape, dtype=data.dtype, chunks=chunks or data.shape, **how)
    if np.prod(array.chunks) < 1 << 24:  # else they are there to be refused
        array[...] = data
    return path


@pytest.mark.parametrize(("axes", "shape"), STACKS)
@pytest.mark.parametrize("version", ["0.4", "0.5"])
@pytest.mark.parametrize("compression", [None, "zstd", "zlib"])
def test_what_is_written_is_read_back(tmp_path, axes, shape, version, compression):
    data = noise(shape)
    path = write(
        tmp_path / "a.ome.zarr", data, metadata_of(data, axes, zarr=ZarrTags(version)), compression=compression
    )
    stack = read_stack(path)
    np.testing.assert_array_equal(stack.data, data.transpose([axes.index(axis) for axis in stack.metadata.axes]))
    known = metadata_of(data, axes)
    for name in ("sizes", "pixel_size", "unit", "time_increment", "time_unit", "channel_names"):
        assert getattr(stack.metadata, name) == getattr(known, name)
    direct = zarr.open(str(path), mode="r")["0"][...]
    np.testing.assert_array_equal(direct.reshape(stack.data.shape), stack.data)


@pytest.mark.parametrize("dtype", TYPES)
def test_every_type_of_pixel(tmp_path, dtype):
    data = noise((3, 17, 19), dtype)
    stack = read_stack(write(tmp_path / "a.zarr", data, metadata_of(data, "TYX")))
    assert stack.metadata.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(stack.data, data)


@pytest.mark.parametrize("version", ["0.4", "0.5"])
def test_the_models_of_the_format_accept_what_is_written(tmp_path, version):
    models = pytest.importorskip("ome_zarr_models")
    data = noise((3, 2, 40, 50))
    path = write(tmp_path / "a.ome.zarr", data, metadata_of(data, "TCYX", zarr=ZarrTags(version)), pyramid=3)
    image = models.open_ome_zarr(zarr.open_group(str(path), mode="r"))
    assert type(image).__module__.split(".")[1] == "v" + version.replace(".", "")
    assert type(image).__name__ == "Image"


def test_a_pyramid_is_of_means_and_says_where_its_pixels_are(tmp_path):
    data = noise((5, 21, 30))
    path = write(tmp_path / "a.zarr", data, metadata_of(data, "TYX"), pyramid=3)
    group = zarr.open(str(path), mode="r")
    padded = np.pad(data.astype(float), [(0, 0), (0, 1), (0, 0)], mode="edge").reshape(5, 11, 2, 15, 2)
    np.testing.assert_array_equal(group["1"][...], np.rint(padded.mean((2, 4))))
    assert group["2"].shape == (5, 6, 8)
    transforms = group.attrs["ome"]["multiscales"][0]["datasets"][2]["coordinateTransformations"]
    np.testing.assert_allclose(transforms[0]["scale"], [2.5, 0.4, 0.8])
    np.testing.assert_allclose(transforms[1]["translation"], [0, 0.15, 0.3])


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("chunks", [(1, 1, 1, 31, 37), (3, 2, 1, 10, 37), (5, 2, 3, 31, 37), (2, 1, 2, 8, 9)])
def test_groups_of_other_programs(tmp_path, zarr_format, chunks):
    data = noise((5, 2, 3, 31, 37))
    path = make_group(tmp_path / "a.zarr", data, "tczyx", zarr_format, chunks)
    file = scan_file(path)
    assert file.metadata.axes == "TCZYX"
    np.testing.assert_array_equal(read_stack(path).data, data)
    (spec,) = discover(path).series
    source = spec.open()
    out = np.empty((30, 31, 37), data.dtype)
    assert read_planes(source, plane_positions(source.metadata), out) == {}
    np.testing.assert_array_equal(out, data.reshape(out.shape))
    np.testing.assert_array_equal(source.plane(t=4, z=2, c=1), data[4, 1, 2])


OMERO = {
    "channels": [{"label": "A", "color": "FF0000"}, {"label": "B", "color": "00FF00"}],
    "rdefs": {"model": "color"},
}


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_calibration_and_rendering_settings_go_the_whole_way(tmp_path, zarr_format):
    data = noise((3, 2, 40, 50))
    transforms = [
        {"type": "scale", "scale": [0.5, 1.0, 0.25, 0.125]},
        {"type": "translation", "translation": [10.0, 0.0, 100.0, 200.0]},
    ]
    micro, seconds = {"unit": "micrometer"}, {"unit": "second"}
    units = {"t": seconds, "y": micro, "x": micro}
    path = make_group(
        tmp_path / "a.zarr", data, "tcyx", zarr_format, (1, 1, 40, 50), {"omero": OMERO}, transforms, units
    )
    metadata = scan_file(path).metadata
    assert metadata.pixel_size == (0.25, 0.125)
    assert (metadata.unit, metadata.time_increment, metadata.time_unit) == ("µm", 0.5, "s")
    assert metadata.channel_names == ("A", "B")
    result = CliRunner().invoke(main, ["align", str(path), "-o", str(tmp_path / "out"), "--report", "none", "-q"])
    assert result.exit_code in (0, 1), result.output
    written = zarr.open(str(tmp_path / "out" / "a" / "a_aligned.ome.zarr"), mode="r")
    attributes = dict(written.attrs) if zarr_format == 2 else written.attrs["ome"]
    assert written.metadata.zarr_format == zarr_format
    assert attributes["omero"] == OMERO
    scales = attributes["multiscales"][0]
    assert scales["datasets"][0]["coordinateTransformations"] == transforms
    assert [axis.get("unit") for axis in scales["axes"]] == ["second", None, "micrometer", "micrometer"]
    one = read_stack(path, channel=1).metadata
    with new_writer(tmp_path / "one.ome.zarr", one) as writer:
        for t in range(3):
            writer.write(data[t, 1])
    kept = zarr.open(str(tmp_path / "one.ome.zarr"), mode="r")
    kept = dict(kept.attrs) if zarr_format == 2 else kept.attrs["ome"]
    assert [channel["label"] for channel in kept["omero"]["channels"]] == ["B"]


def test_plates_are_stacks_of_every_field_of_view(tmp_path):
    plate = tmp_path / "plate.zarr"
    root = zarr.open_group(str(plate), mode="w", zarr_format=2)
    wells = [{"path": "A/1", "rowIndex": 0, "columnIndex": 0}, {"path": "B/2", "rowIndex": 1, "columnIndex": 1}]
    root.attrs["plate"] = {"wells": wells, "rows": [{"name": "A"}], "columns": [{"name": "1"}], "version": "0.4"}
    for well in ("A/1", "B/2"):
        group = root.create_group(well)
        group.attrs["well"] = {"images": [{"path": "0"}, {"path": "1"}], "version": "0.4"}
        for field in "01":
            make_group(plate / well / field, noise((1 if well == "A/1" else 3, 12, 13)), "tyx")
    found = discover(plate)
    assert [spec.name for spec in found.series] == ["plate_A_1_0", "plate_A_1_1", "plate_B_2_0", "plate_B_2_1"]
    assert [spec.open().sizes["T"] for spec in found.series] == [1, 1, 3, 3]
    assert [spec.name for spec in discover(tmp_path).series] == [
        f"{tmp_path.name}_{spec.name}"[len(tmp_path.name) + 1 :] for spec in found.series
    ]
    assert not found.failures


def test_a_plate_cannot_lead_out_of_itself(tmp_path):
    root = zarr.open_group(str(tmp_path / "plate.zarr"), mode="w", zarr_format=2)
    root.attrs["plate"] = {"wells": [{"path": "../other.zarr"}]}
    with pytest.raises(InputError):
        scan_file(tmp_path / "plate.zarr")
    assert not discover(tmp_path / "plate.zarr").series


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def test_urls(tmp_path):
    pytest.importorskip("aiohttp")
    data = noise((3, 12, 13))
    # Python's server sends files whole; parts of them, which shards need, not.
    path = write(tmp_path / "a.ome.zarr", data, metadata_of(data, "TYX", zarr=ZarrTags("0.4")))
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        for url in (f"http://127.0.0.1:{server.server_port}/a.ome.zarr", f"file://{path}"):
            (spec,) = discover([url]).series
            assert spec.name == "a"
            np.testing.assert_array_equal(spec.open().plane(t=2), data[2])
    finally:
        server.shutdown()
        server.server_close()


def test_the_checksum_of_a_folder_is_of_all_its_files(tmp_path):
    data = noise((3, 12, 13))
    path = write(tmp_path / "a.zarr", data, metadata_of(data, "TYX"))
    before = Checksums([path]).finished()
    assert Checksums([path]).finished() == before
    chunk = next(file for file in (path / "0" / "c").rglob("*") if file.is_file())
    content = bytearray(chunk.read_bytes())
    content[5] ^= 1
    chunk.write_bytes(content)
    assert Checksums([path]).finished() != before


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b'{"zarr_format": 3}', b"\xff" * 40])
def test_damaged_metadata_name_the_folder(tmp_path, text):
    data = noise((3, 12, 13))
    path = write(tmp_path / "a.zarr", data, metadata_of(data, "TYX"))
    for place in (path / "0" / "zarr.json", path / "zarr.json"):
        place.write_bytes(text)
        with pytest.raises(InputError, match=r"a\.zarr"):
            scan_file(path)


def test_what_no_image_is_is_refused(tmp_path):
    zarr.open_group(str(tmp_path / "group.zarr"), mode="w")
    zarr.create_array(str(tmp_path / "array.zarr"), shape=(3, 4), dtype="u2")
    make_group(tmp_path / "wide.zarr", noise((3, 9, 9)).astype(np.int64), "tyx")
    make_group(tmp_path / "odd.zarr", noise((3, 9, 9)), "qyx")
    for name, words in {"group": "multiscales", "array": "axis", "wide": "int64", "odd": "'q'"}.items():
        with pytest.raises(InputError, match=words):
            scan_file(tmp_path / f"{name}.zarr")
    with pytest.raises(LimitError):
        scan_file(make_group(tmp_path / "large.zarr", noise((3, 9, 9)), "tyx"), Limits(max_pixels=50))


def test_nothing_is_left_of_a_writer_that_fails(tmp_path):
    data = noise((3, 12, 13))
    write(tmp_path / "a.zarr", data, metadata_of(data, "TYX"))
    with pytest.raises(OutputError), ZarrWriter(tmp_path / "a.zarr", metadata_of(data, "TYX")) as writer:
        writer.write(data[0])
    with pytest.raises(ArgumentError), ZarrWriter(tmp_path / "b.zarr", metadata_of(data, "TYX")) as writer:
        writer.write(data[0, 1:])
    assert [path.name for path in tmp_path.iterdir()] == ["a.zarr"]
    np.testing.assert_array_equal(read_stack(tmp_path / "a.zarr").data, data)


def test_what_is_not_written_is_refused(tmp_path):
    data = noise((3, 12, 13))
    with pytest.raises(ArgumentError):
        ZarrWriter(tmp_path / "a.zarr", metadata_of(data, "TYX"), compression="lzw")
    with pytest.raises(ArgumentError, match="--format"):
        new_writer(tmp_path / "a.tif", metadata_of(data, "TYX"), pyramid=2)


def test_align_writes_the_format_asked_for_and_resumes(tmp_path):
    data = movie((48, 48), drift=[(i, i) for i in range(4)])
    path = write(tmp_path / "s.ome.zarr", data, metadata_of(data, "TYX"))

    def align(out, *options):
        arguments = ["align", str(path), "-o", str(tmp_path / out), "--report", "none", "-q", "--border", "crop"]
        result = CliRunner().invoke(main, [*arguments, *options], catch_exceptions=False)
        assert result.exit_code in (0, 1), result.output
        return result.output

    align("same", "--format", "ome-zarr:2")
    align("tiff", "--format", "ome-tiff")
    zarrs = read_stack(tmp_path / "same" / "s" / "s_aligned.ome.zarr")
    tiffs = read_stack(tmp_path / "tiff" / "s" / "s_aligned.ome.tif")
    np.testing.assert_array_equal(zarrs.data, tiffs.data)
    assert zarrs.metadata.pixel_size == tiffs.metadata.pixel_size == (0.1, 0.2)
    align("same", "--format", "ome-zarr:2", "--resume")
    assert json.loads((tmp_path / "same" / "run.json").read_text())["resumed"] == ["s"]
    chunk = next(file for file in (tmp_path / "same" / "s" / "s_aligned.ome.zarr" / "0" / "c").rglob("*/0"))
    chunk.unlink() if chunk.is_file() else next(file for file in chunk.rglob("*") if file.is_file()).unlink()
    align("same", "--format", "ome-zarr:2", "--resume")
    assert json.loads((tmp_path / "same" / "run.json").read_text())["resumed"] == []
    again = read_stack(tmp_path / "same" / "s" / "s_aligned.ome.zarr")
    np.testing.assert_array_equal(again.data, zarrs.data)
    assert json.loads((tmp_path / "same" / "run.json").read_text())["parameters"]["format"] == "ome-zarr:2"


@pytest.mark.parametrize("arguments", [["filter", "--gaussian", "1", "-q"], ["correlate", "--form", "n-to-m"]])
def test_other_commands_read_it(tmp_path, arguments):
    data = noise((3, 24, 25))
    path = str(write(tmp_path / "a.ome.zarr", data, metadata_of(data, "TYX")))
    name, *options = arguments
    inputs = [path, path] if name == "correlate" else [path]
    out = tmp_path / ("out.tif" if name == "correlate" else "out")
    result = CliRunner().invoke(main, [name, *inputs, "-o", str(out), *options])
    assert result.exit_code == 0, result.output
    assert out.exists()
