"""TIFF files of microscopes: sets, pyramids, tags."""

import struct

import numpy as np
import pytest
import tifffile

from tests.io.samples import noise
from xcorr_app.errors import DamagedFileError, InputError
from xcorr_app.io import discover, read_stack, scan_file, write_stack
from xcorr_app.io.source import Resolution

SPACE = 'xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06"'
UUIDS = [f"urn:uuid:00000000-0000-0000-0000-00000000000{i}" for i in range(4)]


def write_set(folder, data, positions=1, companion=False):
    """(position, T, C, Y, X): a file of each position and time point, all with the XML of the whole."""
    _, frames, channels, height, width = data.shape
    names = [[f"s_p{p}_{t}.ome.tif" for t in range(frames)] for p in range(positions)]

    def blocks(p):
        return "".join(
            f'<TiffData FirstT="{t}" FirstC="{c}" FirstZ="0" IFD="{c}" PlaneCount="1">'
            f'<UUID FileName="{names[p][t]}">{UUIDS[p]}{t}</UUID></TiffData>'
            for t in range(frames)
            for c in range(channels)
        )

    images = "".join(
        f'<Image ID="Image:{p}" Name="position {p}"><Pixels ID="Pixels:{p}" DimensionOrder="XYCZT" Type="uint16" '
        f'SizeX="{width}" SizeY="{height}" SizeZ="1" SizeC="{channels}" SizeT="{frames}" PhysicalSizeX="0.2" '
        f'PhysicalSizeY="0.1" TimeIncrement="3">'
        + "".join(f'<Channel ID="Channel:{p}:{c}" SamplesPerPixel="1" Name="c{c}"/>' for c in range(channels))
        + f"{blocks(p)}</Pixels></Image>"
        for p in range(positions)
    )
    if companion:
        (folder / "s.companion.ome").write_text(f"<OME {SPACE}>{images}</OME>")
    for p in range(positions):
        for t in range(frames):
            xml = f'<OME {SPACE} UUID="{UUIDS[p]}{t}">{images}</OME>'
            if companion:
                xml = f'<OME {SPACE} UUID="{UUIDS[p]}{t}"><BinaryOnly MetadataFile="s.companion.ome" UUID="x"/></OME>'
            with tifffile.TiffWriter(folder / names[p][t]) as tif:
                for c in range(channels):
                    tif.write(data[p, t, c], description=xml if c == 0 else None, metadata=None, contiguous=False)
    return names


@pytest.mark.parametrize("companion", [False, True])
def test_a_set_is_one_stack_whichever_file_is_named(tmp_path, companion):
    data = noise((1, 4, 2, 11, 13))
    names = write_set(tmp_path, data, companion=companion)
    for name in names[0]:
        stack = read_stack(tmp_path / name)
        assert (stack.metadata.axes, stack.metadata.pixel_size) == ("TCYX", (0.1, 0.2))
        assert stack.metadata.channel_names == ("c0", "c1")
        np.testing.assert_array_equal(stack.data, data[0])
    (spec,) = discover(tmp_path).series
    assert [path.name for path in spec.paths] == names[0]
    (picked,) = discover(tmp_path, channel=1).series
    assert set(spec.stamps) == set(spec.paths) == set(picked.paths) == set(picked.stamps)
    source = spec.open()
    np.testing.assert_array_equal(source.plane(t=3, c=1), data[0, 3, 1])
    assert source.origin(t=3, c=1) == (tmp_path / names[0][3], 1)


def test_every_position_of_a_set_is_a_stack(tmp_path):
    data = noise((2, 3, 1, 11, 13))
    write_set(tmp_path, data, positions=2)
    found = discover(tmp_path)
    assert not found.failures
    assert len(found.series) == 2
    for spec, planes in zip(found.series, data, strict=True):
        np.testing.assert_array_equal(spec.open().plane(t=2), planes[2, 0])


def test_what_is_written_of_a_set_is_one_file(tmp_path):
    data = noise((2, 3, 1, 11, 13))
    names = write_set(tmp_path, data, positions=2)
    stack = read_stack(tmp_path / names[1][0])
    write_stack(tmp_path / "one.ome.tif", stack.data, stack.metadata)
    one = read_stack(tmp_path / "one.ome.tif")
    np.testing.assert_array_equal(one.data, data[1, :, 0])
    np.testing.assert_array_equal(tifffile.imread(tmp_path / "one.ome.tif"), data[1, :, 0])
    assert one.metadata.time_increment == 3


def test_a_set_that_lacks_a_file_names_it(tmp_path):
    names = write_set(tmp_path, noise((1, 4, 2, 11, 13)))
    (tmp_path / names[0][2]).unlink()
    with pytest.raises(DamagedFileError, match=r"s_p0_2\.ome\.tif"):
        scan_file(tmp_path / names[0][0])


def test_a_set_cannot_lead_out_of_its_folder(tmp_path):
    names = write_set(tmp_path, noise((1, 2, 1, 11, 13)))
    path = tmp_path / names[0][0]
    path.write_bytes(path.read_bytes().replace(b'FileName="s_p0_1.ome.tif"', b'FileName="../_1.ome.tif.."'[:27]))
    with pytest.raises(InputError):
        scan_file(path)


@pytest.mark.parametrize("in_chain", [False, True])
def test_pyramids_are_read_at_full_resolution(tmp_path, in_chain):
    data = noise((3, 64, 96))
    with tifffile.TiffWriter(tmp_path / "p.tif") as tif:
        if in_chain:
            for plane in data:
                tif.write(plane, metadata=None, tile=(16, 16), contiguous=False)
            for plane in data:
                tif.write(plane[::2, ::2], metadata=None, tile=(16, 16), subfiletype=1, contiguous=False)
        else:
            for plane in data:
                tif.write(plane, metadata=None, tile=(16, 16), subifds=2, contiguous=False)
                tif.write(plane[::2, ::2], metadata=None, tile=(16, 16), subfiletype=1)
                tif.write(plane[::4, ::4], metadata=None, tile=(16, 16), subfiletype=1)
    np.testing.assert_array_equal(read_stack(tmp_path / "p.tif").data, data)


def test_lsm_is_refused_with_the_way_out(tmp_path):
    tifffile.imwrite(tmp_path / "a.lsm", noise((7, 9)), metadata=None, extratags=[(34412, 1, 4, b"LSM1", True)])
    with pytest.raises(InputError, match=r"a\.lsm: is a Zeiss LSM file; convert it to OME-TIFF"):
        read_stack(tmp_path / "a.lsm")


RAMP = np.arange(256, dtype=np.uint16) * 257


def _with_resolution(path, *, y=(4, 1), has_unit=True):
    """Two pixels a centimetre along rows; what is not asked for is changed in the file."""
    options = {"resolution": (2, 4), "resolutionunit": "CENTIMETER", "metadata": None, "software": False}
    tifffile.imwrite(path, noise((6, 5)), **options)
    with tifffile.TiffFile(path) as file:
        tags = file.pages[0].tags
        places = tags[283].valueoffset, tags[296].offset
    content = bytearray(path.read_bytes())
    content[places[0] : places[0] + 8] = struct.pack("<II", *y)
    if not has_unit:
        content[places[1] : places[1] + 2] = struct.pack("<H", 300)
    path.write_bytes(content)
    return read_stack(path).metadata.tiff.resolution


def test_resolution(tmp_path):
    path = tmp_path / "a.tif"
    assert _with_resolution(path) == Resolution((2, 1), (4, 1), 3)
    assert _with_resolution(path, has_unit=False) == Resolution((2, 1), (4, 1), 2)  # inches, where a file does not say
    assert _with_resolution(path, y=(4, 0)) is None


@pytest.mark.parametrize(
    ("colours", "is_grey"),
    [
        ((RAMP, RAMP, RAMP), True),
        ((RAMP[::-1],) * 3, False),  # more is darker: what is measured would be the negative
        ((RAMP, RAMP, RAMP[::-1]), False),
        ((RAMP, RAMP[::-1], RAMP), False),
    ],
)
def test_a_palette_is_read_where_it_is_grey(tmp_path, colours, is_grey):
    data = noise((6, 5), "uint8")
    tifffile.imwrite(tmp_path / "a.tif", data, photometric="palette", colormap=np.array(colours), metadata=None)
    if is_grey:
        np.testing.assert_array_equal(read_stack(tmp_path / "a.tif").data.squeeze(), data)
    else:
        with pytest.raises(InputError, match=r"a\.tif: is a palette image"):
            read_stack(tmp_path / "a.tif")


@pytest.mark.parametrize(("code", "is_read"), [(65001, True), (700, False)])
def test_a_private_tag_of_an_unknown_type_is_passed_over(tmp_path, code, is_read):
    path, pixels = tmp_path / "a.tif", noise((6, 5))
    tifffile.imwrite(path, pixels, extratags=[(code, 3, 1, 7, True)], metadata=None)
    with tifffile.TiffFile(path) as file:
        place = file.pages[0].tags[code].offset
    content = bytearray(path.read_bytes())
    content[place + 2 : place + 4] = struct.pack("<H", 99)
    path.write_bytes(content)
    if is_read:
        assert np.array_equal(read_stack(path).data.squeeze(), pixels)
    else:
        with pytest.raises(InputError, match="of a type 99"):
            read_stack(path)
