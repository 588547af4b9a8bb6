"""One channel of colours or of a series; pages of another kind."""

import re

import cv2
import imagecodecs
import numpy as np
import pytest
import tifffile

from tests.io.samples import noise, write_imagej, write_ome
from xcorr_app.errors import ArgumentError, InputError
from xcorr_app.io import StackWriter, discover, read_stack, scan_file
from xcorr_app.io.finding.scan import parse_channel, scan_channel
from xcorr_app.io.matrices import scan_matrices
from xcorr_app.io.series import frames_source

RGB = noise((3, 6, 5, 3), "uint8")


def gray(data):
    """ITU-R BT.601, in float64."""
    return np.rint(0.299 * data[..., 0] + 0.587 * data[..., 1] + 0.114 * data[..., 2])


def colour_files(folder):
    tifffile.imwrite(folder / "contig.tif", RGB, photometric="rgb")
    tifffile.imwrite(folder / "planes.tif", np.moveaxis(RGB, -1, 1), photometric="rgb", planarconfig="separate")
    tifffile.imwrite(folder / "imagej.tif", RGB[:, None, None], imagej=True)
    tifffile.imwrite(folder / "deflate.tif", RGB, photometric="rgb", compression="zlib")
    np.save(folder / "a.npy", RGB)
    (folder / "a.png").write_bytes(imagecodecs.png_encode(RGB[0]))
    (folder / "a.bmp").write_bytes(imagecodecs.bmp_encode(RGB[0]))
    return sorted(folder.iterdir())


@pytest.mark.parametrize(
    ("text", "channel"), [("R", "R"), ("b", "B"), ("gray", "gray"), ("Grey", "gray"), ("0", 0), ("12", 12)]
)
def test_how_a_channel_is_written(text, channel):
    assert parse_channel(text) == channel


@pytest.mark.parametrize("text", ["", "Q", "-1", "1.5", "²", "red", "1234567"])
def test_what_is_no_channel(text):
    with pytest.raises(ArgumentError, match="give R, G, B, gray, or the number"):
        parse_channel(text)


@pytest.mark.parametrize("channel", ["R", "G", "B", "gray", 0, 1, 2])
def test_colours(tmp_path, channel):
    wanted = gray(RGB) if channel == "gray" else RGB[..., "RGB".index(channel) if isinstance(channel, str) else channel]
    for path in colour_files(tmp_path):
        file = scan_channel(path, channel=channel)
        assert file.metadata.axes in ("TYX", "YX"), path
        assert file.samples == 1
        for t in range(file.page_count):
            np.testing.assert_array_equal(file.read(file.page_at(t, 0, 0)), wanted[t], err_msg=str(path))


@pytest.mark.parametrize("write", [write_ome, write_imagej])
def test_a_channel_by_number(tmp_path, write):
    data = noise((4, 2, 3, 6, 5))
    write(tmp_path / "a.tif", data, "TZCYX")
    file = scan_channel(tmp_path / "a.tif", channel=2)
    assert file.metadata.axes == "TZYX"
    (series,) = discover(tmp_path / "a.tif", channel=2).series
    with series.open() as source, StackWriter(tmp_path / "b.tif", source.metadata) as writer:
        for t, z in np.ndindex(4, 2):
            np.testing.assert_array_equal(source.plane(t, z), data[t, z, 2])
            path, page = source.origin(t, z)
            np.testing.assert_array_equal(tifffile.imread(path, key=page), data[t, z, 2])
            writer.write(source.plane(t, z))
    back = read_stack(tmp_path / "b.tif")
    np.testing.assert_array_equal(back.data, data[:, :, 2])
    assert back.metadata.channel_names == (("dye 2",) if write is write_ome else ())
    assert back.metadata.pixel_size == file.metadata.pixel_size


def test_what_has_no_such_channel(tmp_path):
    write_ome(tmp_path / "two.ome.tif", noise((2, 6, 5)), "CYX")
    tifffile.imwrite(tmp_path / "grey.tif", noise((6, 5)), photometric="minisblack")
    tifffile.imwrite(tmp_path / "rgb.tif", RGB, photometric="rgb")
    for name, channel, words in (
        ("two.ome.tif", 2, "has 2 channels: --channel counts from 0, up to 1"),
        ("two.ome.tif", "gray", "no colours for --channel gray; it has 2 channels"),
        ("grey.tif", "R", "is a grey image: leave it out"),
        ("grey.tif", 1, "has one channel; leave --channel 1 out"),
        ("rgb.tif", 3, "R, G, B, gray or 0 to 2"),
    ):
        with pytest.raises(InputError, match=words):
            scan_channel(tmp_path / name, channel=channel)
    for channel in ("gray", 0):
        assert scan_channel(tmp_path / "grey.tif", channel=channel).metadata.axes == "YX"
    assert scan_channel(tmp_path / "grey.tif", channel="R", lenient=True).metadata.axes == "YX"


@pytest.mark.parametrize("channel", ["G", "gray", 2])
def test_matrices_of_a_colour(tmp_path, channel):
    wanted = gray(RGB) if channel == "gray" else RGB[..., 1 if channel == "G" else 2]
    for path in colour_files(tmp_path):
        file = scan_matrices(path, channel)
        assert file.channels == 3
        np.testing.assert_array_equal(file.read(), wanted if len(file.shape) == 3 else wanted[0])
    with pytest.raises(InputError, match="--channel R, G, B or gray"):
        scan_matrices(tmp_path / "contig.tif")


@pytest.mark.parametrize("axes", ["TYXS", "ZYXS", "TZYXS"])
def test_ome_in_colours(tmp_path, axes):
    data = noise((*range(4, 2, -1), 6, 5, 3)[2 - axes.index("Y") :], "uint8")
    metadata = {"axes": axes, "PhysicalSizeX": 0.5, "PhysicalSizeY": 0.25, "TimeIncrement": 2.0}
    tifffile.imwrite(tmp_path / "a.ome.tif", data, photometric="rgb", metadata=metadata)
    (series,) = discover(tmp_path / "a.ome.tif", channel="R").series
    with series.open() as source, StackWriter(tmp_path / "b.ome.tif", source.metadata) as writer:
        assert source.metadata.axes == axes[:-1]
        for index in np.ndindex(*data.shape[: axes.index("Y")]):
            at = dict(zip(axes.lower(), index, strict=False))
            writer.write(source.plane(**at))
    back = read_stack(tmp_path / "b.ome.tif")
    np.testing.assert_array_equal(back.data, data[..., 0])
    assert (back.metadata.pixel_size, back.metadata.time_increment) == ((0.25, 0.5), 2.0)
    assert b'SamplesPerPixel="3"' not in (tmp_path / "b.ome.tif").read_bytes()


def test_pages_of_another_kind_are_named(tmp_path):
    cv2.imwrite(str(tmp_path / "a.png"), noise((8, 9), "uint8"))
    cv2.imwrite(str(tmp_path / "b.png"), noise((8, 10), "uint8"))
    files = [scan_file(tmp_path / name) for name in ("a.png", "b.png")]
    message = re.escape(f"{tmp_path / 'b.png'}: its pages are 8 x 10 uint8, those of {tmp_path / 'a.png'} are 8 x 9")
    with pytest.raises(InputError, match=message):
        frames_source("series", files)
    assert np.array_equal(frames_source("series", files[:1]).plane(t=0), files[0].read(0))
