"""Displacement fields as OME-TIFF: read back by others, with the step of the grid as the size of a pixel."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest
import tifffile

import xcorr_app as xc
from xcorr_app.registration.motion.field_image import PixelSize, ome_tiff


def written(tmp_path, shape=(3, 5, 7), **more):
    rng = np.random.default_rng(1)
    channels = {name: rng.normal(size=shape) for name in ("dy", "dx", "sigma_y", "sigma_x", "trusted")}
    rows, columns = 15.5 + 12 * np.arange(shape[1]), 23.5 + 20 * np.arange(shape[2])
    path = tmp_path / "field.ome.tif"
    path.write_bytes(ome_tiff(channels, rows, columns, **more))
    return path, channels


def pixels_of(path):
    with tifffile.TiffFile(path) as file:
        assert file.is_ome
        root = ET.fromstring(file.ome_metadata)  # noqa: S314 (our own)
    (pixels,) = root.findall(".//{*}Pixels")
    return pixels, root


def test_others_read_what_was_written(tmp_path):
    path, channels = written(tmp_path)
    expected = np.stack(list(channels.values()), axis=1).astype(np.float32)
    with tifffile.TiffFile(path) as file:
        (series,) = file.series
        assert series.axes == "TCYX"
        np.testing.assert_array_equal(series.asarray(), expected)
    stack = xc.read_stack(path)
    assert stack.metadata.axes == "TCYX"
    assert stack.metadata.channel_names == tuple(channels)
    assert stack.metadata.pixel_size == (12.0, 20.0)
    np.testing.assert_array_equal(stack.data, expected)


def test_a_pixel_is_a_step_of_the_grid_in_the_unit_of_the_images(tmp_path):
    path, channels = written(tmp_path, size=PixelSize.of((0.5, 0.25), "µm"))
    pixels, root = pixels_of(path)
    assert [pixels.get(f"PhysicalSize{axis}") for axis in "YX"] == ["6.0", "5.0"]
    assert [pixels.get(f"PhysicalSize{axis}Unit") for axis in "YX"] == ["µm", "µm"]
    assert [channel.get("Name") for channel in pixels.findall(".//{*}Channel")] == list(channels)
    (described,) = root.findall(".//{*}Description")
    assert "at row 15.5, column 23.5" in described.text


@pytest.mark.parametrize("size", [None, PixelSize.of(None, None), PixelSize.of((2.0, 2.0), "furlong")])
def test_without_a_unit_that_is_known_steps_are_pixels(tmp_path, size):
    pixels, _ = pixels_of(written(tmp_path, size=size)[0])
    assert (pixels.get("PhysicalSizeY"), pixels.get("PhysicalSizeYUnit")) == ("12.0", "pixel")


def test_a_single_window_and_a_single_frame(tmp_path):
    path, channels = written(tmp_path, shape=(1, 1, 1))
    assert pixels_of(path)[0].get("PhysicalSizeY") == "32.0"
    assert float(tifffile.imread(path).squeeze()[1]) == np.float32(channels["dx"][0, 0, 0])


def test_the_same_field_gives_the_same_bytes(tmp_path):
    path, _ = written(tmp_path)
    content = path.read_bytes()
    assert written(tmp_path)[0].read_bytes() == content
    assert written(tmp_path, size=PixelSize(2.0, 2.0, "mm"))[0].read_bytes() != content
