import dataclasses
import errno
import os
import xml.etree.ElementTree as ET

import numpy as np
import pytest
import tifffile

from tests.io.samples import TYPES, noise, write_imagej, write_ome
from xcorr_app.errors import DataTypeError, OutputError, ShapeError
from xcorr_app.io import StackMetadata, StackWriter, read_stack, write_stack
from xcorr_app.io.source import TiffTags
from xcorr_app.io.writing import write as write_module

ADVICE = "check that the folder exists, is writable and has space left"
OME = "{http://www.openmicroscopy.org/Schemas/OME/2016-06}"


def _round_trip(tmp_path, change=None):
    """Read in.tif, write it twice, and return what was read and what was written."""
    stack = read_stack(tmp_path / "in.tif")
    metadata = change(stack.metadata) if change else stack.metadata
    for name in ("out.tif", "again.tif"):
        write_stack(tmp_path / name, stack.data, metadata)
    assert (tmp_path / "out.tif").read_bytes() == (tmp_path / "again.tif").read_bytes()
    written = read_stack(tmp_path / "out.tif")
    np.testing.assert_array_equal(written.data, stack.data)
    np.testing.assert_array_equal(np.squeeze(tifffile.imread(tmp_path / "out.tif")), stack.data)
    return stack, written


def _calibration(metadata):
    return [getattr(metadata, field.name) for field in dataclasses.fields(metadata) if field.name != "tiff"]


@pytest.mark.parametrize("axes", ["TZCYX", "CTZYX", "ZTCYX", "TCYX", "TYX", "YX"])
def test_ome_stays_ome(tmp_path, axes):
    size = {"T": 4, "Z": 3, "C": 2, "Y": 6, "X": 5}
    write_ome(tmp_path / "in.tif", noise([size[axis] for axis in axes]), axes, compression="zlib")
    stack, written = _round_trip(tmp_path)
    assert _calibration(written.metadata) == _calibration(stack.metadata)
    with tifffile.TiffFile(tmp_path / "out.tif") as tif:
        assert tif.is_ome
        assert (tif.series[0].axes, tif.series[0].shape) == (axes, stack.data.shape)
        root = ET.fromstring(tif.ome_metadata)  # noqa: S314 - written by us
    pixels = root.find(f"{OME}Image/{OME}Pixels")
    assert {axis: int(pixels.get(f"Size{axis}")) for axis in "TZCYX"} == stack.metadata.sizes
    assert (pixels.get("PhysicalSizeX"), pixels.get("PhysicalSizeXUnit")) == ("0.325", "µm")
    assert (pixels.get("PhysicalSizeY"), pixels.get("PhysicalSizeYUnit")) == ("0.65", "µm")
    assert (pixels.get("PhysicalSizeZ"), pixels.get("PhysicalSizeZUnit")) == ("1.5", "µm")
    assert (pixels.get("TimeIncrement"), pixels.get("TimeIncrementUnit")) == ("2.5", "s")
    assert [channel.get("Name") for channel in pixels.iter(f"{OME}Channel")] == (
        ["dye 0", "dye 1"] if "C" in axes else [None]
    )
    (block,) = pixels.iter(f"{OME}TiffData")
    assert block.attrib == {"IFD": "0", "PlaneCount": str(stack.metadata.planes)}
    assert root.get("UUID") is None


def test_ome_keeps_what_it_does_not_understand(tmp_path):
    xml = (
        '<OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06" UUID="urn:uuid:1" Creator="scope">'
        '<Instrument ID="Instrument:0"><Objective ID="Objective:0" NominalMagnification="63.0"/></Instrument>'
        '<Image ID="Image:0" Name="cells"><AcquisitionDate>2020-01-01T00:00:00</AcquisitionDate>'
        '<Pixels ID="Pixels:0" DimensionOrder="XYZCT" SizeX="5" SizeY="6" SizeZ="1" SizeC="1" SizeT="2" Type="uint16">'
        '<Channel ID="Channel:0:0" Name="GFP" Color="16711935"/>'
        '<TiffData><UUID FileName="old.tif">urn:uuid:1</UUID></TiffData>'
        '<Plane TheT="0" TheZ="0" TheC="0" DeltaT="0.1"/><Plane TheT="1" TheZ="0" TheC="0" DeltaT="0.7"/>'
        "</Pixels></Image></OME>"
    )
    with tifffile.TiffWriter(tmp_path / "in.tif") as tif:
        for index, plane in enumerate(noise((2, 6, 5))):
            tif.write(plane, metadata=None, photometric="minisblack", description=None if index else xml)
    _round_trip(tmp_path)
    with tifffile.TiffFile(tmp_path / "out.tif") as tif:
        text = tif.ome_metadata
    root = ET.fromstring(text)  # noqa: S314 - written by us
    assert root.find(f"{OME}Instrument/{OME}Objective").get("NominalMagnification") == "63.0"
    assert root.find(f".//{OME}Channel").attrib["Color"] == "16711935"
    assert root.find(f".//{OME}AcquisitionDate").text == "2020-01-01T00:00:00"
    assert [plane.get("DeltaT") for plane in root.iter(f"{OME}Plane")] == ["0.1", "0.7"]
    assert "old.tif" not in text
    children = [child.tag.removeprefix(OME) for child in root.find(f".//{OME}Pixels")]
    assert children == ["Channel", "TiffData", "Plane", "Plane"]  # the order of the schema


def test_imagej_stays_imagej_with_labels_and_tables(tmp_path):
    data = noise((2, 3, 2, 6, 5))
    tables = [np.stack([np.arange(256, dtype=np.uint8)] * 3), np.stack([np.arange(256, dtype=np.uint8)[::-1]] * 3)]
    labels = [f"plane {index}" for index in range(12)]
    write_imagej(
        tmp_path / "in.tif",
        data,
        "TZCYX",
        Labels=labels,
        LUTs=tables,
        Ranges=(1.0, 9.0, 2.0, 8.0),
        Info="by µ-scope",
        mode="color",
    )
    stack, written = _round_trip(tmp_path)
    assert _calibration(written.metadata) == _calibration(stack.metadata)
    with tifffile.TiffFile(tmp_path / "in.tif") as before, tifffile.TiffFile(tmp_path / "out.tif") as after:
        assert after.is_imagej
        assert (after.series[0].axes, after.series[0].shape) == ("TZCYX", data.shape)
        old, new = before.imagej_metadata, after.imagej_metadata
        for key in (
            "images",
            "channels",
            "slices",
            "frames",
            "mode",
            "unit",
            "finterval",
            "spacing",
            "Labels",
            "Ranges",
            "Info",
        ):
            assert new[key] == old[key], key
        np.testing.assert_array_equal(new["LUTs"], tables)
        assert after.pages[0].tags["XResolution"].value == before.pages[0].tags["XResolution"].value


def test_imagej_calibration_can_be_changed(tmp_path):
    write_imagej(tmp_path / "in.tif", noise((4, 6, 5)), "TYX")
    change = {"pixel_size": (0.004, 0.1), "unit": "Å", "time_increment": 0.1}
    _, written = _round_trip(tmp_path, lambda metadata: dataclasses.replace(metadata, **change))
    assert {name: getattr(written.metadata, name) for name in change} == change


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("byteorder", ["<", ">"])
def test_plain_stays_plain_with_resolution_and_description(tmp_path, dtype, byteorder):
    options = {"resolution": ((300, 7), (200, 3)), "resolutionunit": 3, "description": "gain 3"}
    with tifffile.TiffWriter(tmp_path / "in.tif", byteorder=byteorder) as tif:
        for plane in noise((3, 6, 5), dtype):
            tif.write(plane, metadata=None, photometric="miniswhite" if dtype == "uint8" else "minisblack", **options)
    stack, written = _round_trip(tmp_path)
    assert written.metadata == stack.metadata
    with tifffile.TiffFile(tmp_path / "out.tif") as tif:
        assert tif.byteorder == byteorder
        assert (tif.is_ome, tif.is_imagej, tif.is_bigtiff) == (False, False, False)
        for page in tif.pages:
            assert page.tags["XResolution"].value == (300, 7)
            assert page.tags["YResolution"].value == (200, 3)
            assert page.tags["ResolutionUnit"].value == 3
        assert tif.pages[0].description == "gain 3"
        assert "DateTime" not in tif.pages[0].tags


def test_palette_is_kept(tmp_path):
    grey = np.tile(np.arange(256, dtype=np.uint16) * 257, (3, 1))
    tifffile.imwrite(tmp_path / "in.tif", noise((6, 5), "uint8"), photometric="palette", colormap=grey, metadata=None)
    _round_trip(tmp_path)
    with tifffile.TiffFile(tmp_path / "out.tif") as tif:
        np.testing.assert_array_equal(tif.pages[0].colormap, grey)


def test_cropped_planes(tmp_path):
    write_ome(tmp_path / "in.tif", noise((3, 6, 5)), "TYX")
    stack = read_stack(tmp_path / "in.tif")
    write_stack(tmp_path / "out.tif", stack.data[:, 1:, :4], stack.metadata.with_plane_shape(5, 4))
    written = read_stack(tmp_path / "out.tif")
    np.testing.assert_array_equal(written.data, stack.data[:, 1:, :4])
    assert written.metadata.pixel_size == stack.metadata.pixel_size


def test_wrong_planes_are_refused_and_leave_nothing(tmp_path):
    metadata = StackMetadata("TYX", (2, 6, 5), np.dtype("uint16"))
    for plane, error in ((noise((5, 6)), ShapeError), (noise((6, 5), "uint8"), DataTypeError)):
        with pytest.raises(error, match=r"a\.tif"), StackWriter(tmp_path / "a.tif", metadata) as writer:
            writer.write(plane)
    with pytest.raises(OutputError, match="1 of 2 planes"), StackWriter(tmp_path / "a.tif", metadata) as writer:
        writer.write(noise((6, 5)))
    with pytest.raises(OutputError, match="written already"), StackWriter(tmp_path / "a.tif", metadata) as writer:
        [writer.write(noise((6, 5))) for _ in range(3)]
    with pytest.raises(ShapeError, match=r"a\.tif"):
        write_stack(tmp_path / "a.tif", noise((3, 6, 5)), metadata)
    assert list(tmp_path.iterdir()) == []


class _FullDisk:
    """A disk whose n-th write fails."""

    def __init__(self, real, count):
        self._real = real
        self._left = count

    def __call__(self, descriptor, parts, offset):
        self._left -= 1
        if self._left < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return self._real(descriptor, parts, offset)


@pytest.mark.parametrize("kind", ["tiff", "ome", "imagej"])
def test_disk_full_at_every_write(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(write_module, "_BYTES_AT_ONCE", 100)  # by threads, a few planes at a time
    data = noise((9, 6, 5))
    metadata = StackMetadata("TYX", data.shape, data.dtype, kind)
    failures = 0
    for count in range(1000):
        with monkeypatch.context() as patch:
            patch.setattr(write_module, "write_at", _FullDisk(write_module.write_at, count))
            try:
                write_stack(tmp_path / "a.tif", data, metadata)
                break
            except OutputError as error:
                message = str(error)
        assert message == f"{tmp_path}/a.tif: cannot be written (No space left on device); {ADVICE}"
        assert list(tmp_path.iterdir()) == []
        failures += 1
    assert failures >= 5
    np.testing.assert_array_equal(read_stack(tmp_path / "a.tif").data, data)


def _written(path, metadata, planes, **options):
    with StackWriter(path, metadata, **options) as writer:
        for plane in planes:
            writer.write(plane)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("compression", ["zlib", "zstd", "lzw"])
@pytest.mark.parametrize("byteorder", ["<", ">"])
def test_compressed_planes_read_back_here_and_elsewhere(tmp_path, dtype, compression, byteorder):
    data = noise((5, 17, 23), dtype)
    tags = TiffTags(byteorder=byteorder)
    metadata = StackMetadata("TYX", data.shape, data.dtype, tiff=tags)
    for name in ("a.tif", "b.tif"):
        _written(tmp_path / name, metadata, data, compression=compression)
    np.testing.assert_array_equal(read_stack(tmp_path / "a.tif").data, data)
    np.testing.assert_array_equal(tifffile.imread(tmp_path / "a.tif"), data)
    assert (tmp_path / "a.tif").read_bytes() == (tmp_path / "b.tif").read_bytes()
    with tifffile.TiffFile(tmp_path / "a.tif") as tif:
        assert tif.pages[0].compression.name.lower().endswith({"zlib": "adobe_deflate"}.get(compression, compression))


@pytest.mark.parametrize("bytes_at_once", [1, 3 * 60, 1 << 22])
def test_bytes_do_not_depend_on_how_planes_are_gathered(tmp_path, monkeypatch, bytes_at_once):
    data = noise((11, 6, 5))
    metadata = StackMetadata("TYX", data.shape, data.dtype)
    write_stack(tmp_path / "expected.tif", data, metadata)
    monkeypatch.setattr(write_module, "_BYTES_AT_ONCE", bytes_at_once)
    _written(tmp_path / "a.tif", metadata, data, waiting=2 * bytes_at_once)
    assert (tmp_path / "a.tif").read_bytes() == (tmp_path / "expected.tif").read_bytes()


def test_a_file_that_cannot_be_brought_to_the_disk_leaves_nothing(tmp_path, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with StackWriter(
        tmp_path / "a.tif", StackMetadata("YX", (2, 2), np.dtype(np.uint8)), later=lambda _: None
    ) as writer:
        writer.write(np.zeros((2, 2), np.uint8))
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutputError, match=ADVICE):
        writer.complete()
    writer.abandon()
    assert list(tmp_path.iterdir()) == []
