"""Files of microscopes, arrays and videos: those that a library writes by it, ND2, LIF and CZI byte by byte."""

import struct
import sys
import uuid

import numpy as np
import pytest
from click.testing import CliRunner

from tests.formats.nd2_files import write_nd2
from tests.io.samples import noise
from xcorr_app.cli import main
from xcorr_app.errors import InputError, LimitError
from xcorr_app.io import Limits, discover, read_stack, scan_file
from xcorr_app.io.formats import images_of

# -- MRC


def write_mrc(path, data, *, volume=False, size=(1.5, 2.5, 3.5)):
    mrcfile = pytest.importorskip("mrcfile")
    with mrcfile.new(path) as mrc:
        mrc.set_data(data)
        if volume:
            mrc.set_volume()
        elif data.ndim == 3:
            mrc.set_image_stack()
        mrc.voxel_size = size
    return path


@pytest.mark.parametrize("dtype", ["int8", "int16", "uint16", "float16", "float32"])
def test_mrc(tmp_path, dtype):
    data = np.random.default_rng(0).integers(-100, 100, (5, 17, 13)).astype(dtype)
    path = write_mrc(tmp_path / "a.mrc", data)
    stack = read_stack(path)
    assert stack.metadata.dtype == {"int8": np.int16, "float16": np.float32}.get(dtype, np.dtype(dtype))
    assert (stack.metadata.axes, stack.metadata.pixel_size, stack.metadata.unit) == ("TYX", (2.5, 1.5), "Å")
    np.testing.assert_array_equal(stack.data, data)


def test_mrc_volumes_and_single_images(tmp_path):
    data = noise((4, 9, 11), "float32")
    volume = scan_file(write_mrc(tmp_path / "v.mrc", data, volume=True)).metadata
    assert (volume.axes, volume.z_step, volume.z_unit) == ("ZYX", 3.5, "Å")
    np.testing.assert_array_equal(read_stack(write_mrc(tmp_path / "i.mrc", data[0])).data, data[0])
    write_mrc(tmp_path / "t.mrc", data, volume=True).rename(tmp_path / "t.st")
    assert scan_file(tmp_path / "t.st").metadata.axes == "TYX"


def test_mrc_cut_short(tmp_path):
    path = write_mrc(tmp_path / "a.mrc", noise((4, 9, 11), "float32"))
    content = path.read_bytes()
    for size in (0, 100, 300, 1024, len(content) - 4):
        path.write_bytes(content[:size])
        with pytest.raises(InputError, match=r"a\.mrc"):
            scan_file(path)
    path.write_bytes(content)
    with pytest.raises(LimitError):
        scan_file(path, Limits(max_pixels=50))


# -- HDF5


def h5(path):
    h5py = pytest.importorskip("h5py")
    return h5py.File(path, "w")


def test_hdf5_with_one_array(tmp_path):
    data = noise((5, 9, 11))
    with h5(tmp_path / "a.h5") as file:
        file["group/images"] = data
        file["group/times"] = np.arange(5.0)
    np.testing.assert_array_equal(read_stack(tmp_path / "a.h5").data, data)
    np.testing.assert_array_equal(read_stack(tmp_path / "a.h5:/group/images").data, data)
    assert [spec.name for spec in discover(tmp_path / "a.h5").series] == ["a"]


def test_hdf5_with_several_arrays_asks_for_one(tmp_path):
    data = noise((2, 5, 9, 11))
    with h5(tmp_path / "a.h5") as file:
        file["x/one"], file["two"] = data
    with pytest.raises(InputError, match=r"/two .5, 9, 11. uint16.*a\.h5:/two"):
        scan_file(tmp_path / "a.h5")
    with pytest.raises(InputError, match="no array /three"):
        scan_file(tmp_path / "a.h5:/three")
    (spec,) = discover(f"{tmp_path}/a.h5:/x/one").series
    assert (spec.name, spec.paths) == ("a_x_one", (tmp_path / "a.h5",))
    np.testing.assert_array_equal(spec.open().plane(t=3), data[0, 3])
    result = CliRunner().invoke(main, ["align", f"{tmp_path}/a.h5:/two", "-o", f"{tmp_path}/out", "--report", "none"])
    assert result.exit_code in (0, 1), result.output
    assert (tmp_path / "out" / "a_two" / "a_two_aligned.tif").is_file()


def test_hdf5_axes_by_label(tmp_path):
    data = noise((3, 2, 4, 9, 11), "float32")
    with h5(tmp_path / "a.h5") as file:
        array = file.create_dataset("data", data=data, chunks=(1, 1, 1, 9, 11), compression="gzip")
        for dimension, name in zip(array.dims, ("time", "c", "z", "y", "x"), strict=True):
            dimension.label = name
        array.attrs["element_size_um"] = [3.0, 2.0, 1.0]
    stack = read_stack(tmp_path / "a.h5")
    assert (stack.metadata.axes, stack.metadata.z_step, stack.metadata.pixel_size) == ("TCZYX", 3.0, (2.0, 1.0))
    np.testing.assert_array_equal(stack.data, data)
    with h5(tmp_path / "b.h5") as file:
        file["data"] = data
    with pytest.raises(InputError, match="label its dimensions"):
        scan_file(tmp_path / "b.h5")


def test_emd_of_berkeley(tmp_path):
    data = noise((5, 9, 11), "float32")
    with h5(tmp_path / "a.emd") as file:
        group = file.create_group("data/movie")
        group.attrs["emd_group_type"] = 1
        group["data"] = data
        for number, (places, units) in enumerate(
            [(np.arange(5), "s"), (np.arange(9) * 0.5, "[n_m]"), (np.arange(11) * 0.25, "[n_m]")]
        ):
            group[f"dim{number + 1}"] = places
            group[f"dim{number + 1}"].attrs["units"] = units
        file["other"] = noise((30, 30))
    stack = read_stack(tmp_path / "a.emd")
    assert (stack.metadata.pixel_size, stack.metadata.unit) == ((0.5, 0.25), "nm")
    np.testing.assert_array_equal(stack.data, data)


def test_ebsd_patterns(tmp_path):
    patterns = noise((3, 4, 10, 12), "uint8")
    with h5(tmp_path / "flat.h5") as file:
        file["Scan 1/EBSD/Data/patterns"] = patterns.reshape(12, 10, 12)
        file["Scan 1/EBSD/Data/map"] = noise((3, 4), "float32")
    with h5(tmp_path / "grid.h5") as file:
        file["Scan 1/EBSD/Data/patterns"] = patterns
    for name in ("flat", "grid"):
        np.testing.assert_array_equal(read_stack(tmp_path / f"{name}.h5").data, patterns.reshape(12, 10, 12))


# -- LIF, byte by byte


def _block(content, name=None):
    """A block of a Leica file: text, or pixels with a name."""
    if name is None:
        text = content.encode("utf-16-le")
        inner = b"*" + struct.pack("<I", len(content)) + text
        return struct.pack("<II", 0x70, len(inner)) + inner
    text = name.encode("utf-16-le")
    inner = b"*" + struct.pack("<Q", len(content)) + b"*" + struct.pack("<I", len(name)) + text
    return struct.pack("<II", 0x70, len(inner)) + inner + content


def write_lif(path, stacks):
    """(T, Z, C, Y, X) images of 8 or 16 bits, pixels of 0.5 um, as the Leica software lays them out."""
    elements, blocks = [], b""
    for number, data in enumerate(stacks):
        t, z, c, y, x = data.shape
        size = data.dtype.itemsize
        channels = "".join(
            f'<ChannelDescription Resolution="{8 * size}" BytesInc="{x * y * size * i}"/>' for i in range(c)
        )
        increments = {1: (x, size), 2: (y, x * size), 3: (z, x * y * size * c), 4: (t, x * y * size * c * z)}
        lengths = {1: (x - 1) * 5e-7, 2: (y - 1) * 5e-7, 3: (z - 1) * 2e-6, 4: (t - 1) * 1.5}
        dimensions = "".join(
            f'<DimensionDescription DimID="{i}" NumberOfElements="{n}" Origin="0" Length="{lengths[i]}" Unit="m" '
            f'BytesInc="{inc}"/>'
            for i, (n, inc) in increments.items()
            if n > 1 or i < 3
        )
        elements.append(
            f'<Element Name="image {number}"><Data><Image><ImageDescription><Channels>{channels}</Channels><Dimensions>'
            f"{dimensions}</Dimensions></ImageDescription></Image></Data>"
            f'<Memory Size="{data.nbytes}" MemoryBlockID="MemBlock_{number}"/><Children/></Element>'
        )
        blocks += _block(data.tobytes(), f"MemBlock_{number}")
    xml = (
        '<LMSDataContainerHeader Version="2"><Element Name="project"><Data/><Memory Size="0" '
        f'MemoryBlockID="MemBlock_x"/><Children>{"".join(elements)}</Children></Element></LMSDataContainerHeader>'
    )
    path.write_bytes(_block(xml) + blocks)
    return path


@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_lif(tmp_path, dtype):
    pytest.importorskip("readlif")
    first, second = noise((3, 2, 2, 12, 14), dtype), noise((4, 1, 1, 9, 10), dtype, seed=1)
    path = write_lif(tmp_path / "a.lif", [first, second])
    assert [spec.name for spec in discover(path).series] == ["a_0", "a_1"]
    stack = read_stack(tmp_path / "a.lif:/0")
    assert stack.metadata.axes == "TZCYX"
    np.testing.assert_array_equal(stack.data, first)
    np.testing.assert_array_equal(read_stack(tmp_path / "a.lif:/1").data, second[:, 0, 0])
    np.testing.assert_allclose(stack.metadata.pixel_size, (0.5, 0.5))
    with pytest.raises(InputError, match=r"holds 2 images; name one as .*a\.lif:/0"):
        scan_file(path)
    with pytest.raises(InputError, match="holds 2 images"):
        scan_file(tmp_path / "a.lif:/2")


# -- CZI, byte by byte


def _segment(kind, content):
    used = len(content)
    return kind.ljust(16, b"\0") + struct.pack("<qq", used, used) + content


def _entry(t, c, y, x, position):
    dims = [("X", 0, x), ("Y", 0, y), ("C", c, 1), ("T", t, 1), ("S", 0, 1)]
    entry = (
        b"DV" + struct.pack("<iqii", 1, position, 0, 0) + struct.pack("<B", 0) + bytes(5) + struct.pack("<i", len(dims))
    )
    for name, start, size in dims:
        entry += name.encode().ljust(4, b"\0") + struct.pack("<iifi", start, size, float(start), size)
    return entry


XML = (
    "<ImageDocument><Metadata><Information><Image><Dimensions><Channels><Channel Name='GFP'/><Channel Name='RFP'/>"
    "</Channels></Dimensions></Image></Information><Scaling><Items><Distance Id='X'><Value>2e-07</Value></Distance>"
    "<Distance Id='Y'><Value>1e-07</Value></Distance></Items></Scaling></Metadata></ImageDocument>"
)


def write_czi(path, data):
    """Uncompressed uint16 planes (T, C, Y, X), as DS_ZISRAW-FileFormat lays them out."""
    header_size = 32 + 512
    body, entries, position = b"", [], header_size
    for t, c in np.ndindex(*data.shape[:2]):
        entry = _entry(t, c, *data.shape[2:], position)
        # Pixel type 1 is Gray16.
        entry = entry[:2] + struct.pack("<i", 1) + entry[6:]
        head = struct.pack("<iiq", 0, 0, data[t, c].nbytes) + entry
        segment = _segment(b"ZISRAWSUBBLOCK", head.ljust(256, b"\0") + data[t, c].tobytes())
        entries.append(entry)
        body += segment
        position += len(segment)
    directory_position = position
    directory = _segment(b"ZISRAWDIRECTORY", struct.pack("<i", len(entries)) + bytes(124) + b"".join(entries))
    metadata_position = position + len(directory)
    metadata = _segment(b"ZISRAWMETADATA", struct.pack("<ii", len(XML), 0) + bytes(248) + XML.encode())
    guid = uuid.UUID(int=1).bytes
    header = struct.pack("<iiii", 1, 0, 0, 0) + guid + guid + struct.pack("<i", 0)
    header += struct.pack("<qqiq", directory_position, metadata_position, 0, 0)
    path.write_bytes(_segment(b"ZISRAWFILE", header.ljust(512, b"\0")) + body + directory + metadata)
    return path


def test_czi(tmp_path):
    pytest.importorskip("czifile")
    data = noise((3, 2, 12, 14))
    stack = read_stack(write_czi(tmp_path / "a.czi", data))
    assert (stack.metadata.axes, stack.metadata.channel_names, stack.metadata.unit) == ("TCYX", ("GFP", "RFP"), "µm")
    np.testing.assert_allclose(stack.metadata.pixel_size, (0.1, 0.2))
    assert (stack.metadata.z_step, stack.metadata.z_unit, stack.metadata.time_unit) == (None, None, None)
    np.testing.assert_array_equal(stack.data, data)


def test_czi_plane_that_is_said_to_be_enlarged(tmp_path):
    """The entry beside the pixels is damaged: what is read is what was stored, not a thousand times as much."""
    pytest.importorskip("czifile")
    data = noise((1, 1, 7, 9))
    path = write_czi(tmp_path / "a.czi", data)
    content = path.read_bytes()
    entry = content.index(b"DV")
    size = content.index(b"T\0\0\0", entry) + 8
    assert content[size : size + 4] == struct.pack("<i", 1)
    path.write_bytes(content[:size] + struct.pack("<i", 1000) + content[size + 4 :])
    np.testing.assert_array_equal(read_stack(path).data.squeeze(), data.squeeze())


# -- ND2


def test_nd2_has_positions_times_and_channels(tmp_path):
    pytest.importorskip("nd2")
    data, path = noise((3, 2, 2, 9, 11)), tmp_path / "a.nd2"
    write_nd2(path, data, names=("DAPI", "GFP"), pixel_size=0.25, period=500.0)
    assert [spec.name for spec in discover(path).series] == ["a_0", "a_1"]
    stack = read_stack(f"{path}:/1")
    assert (stack.metadata.axes, stack.metadata.channel_names) == ("TCYX", ("DAPI", "GFP"))
    assert (stack.metadata.pixel_size, stack.metadata.unit) == ((0.25, 0.25), "µm")
    assert (stack.metadata.time_increment, stack.metadata.time_unit) == (0.5, "s")
    np.testing.assert_array_equal(stack.data, data[:, 1])
    np.testing.assert_array_equal(read_stack(f"{path}:/0").data, data[:, 0])


# -- all of them


@pytest.mark.parametrize(
    ("library", "content"),
    [
        ("nd2", b"\xda\xce\xbe\x0a" + bytes(400)),
        ("czifile", b"ZISRAWFILE" + bytes(400)),
        ("readlif.reader", b"p\0\0\0\x10\0\0\0*" + bytes(400)),
        ("mrcfile", bytes(208) + b"MAP " + bytes(1000)),
        ("h5py", b"\x89HDF\r\n\x1a\n" + bytes(400)),
        ("imageio_ffmpeg", b"RIFF\0\0\0\0AVI LIST"),
    ],
)
def test_without_its_library_the_error_names_the_pip_line(tmp_path, monkeypatch, library, content):
    monkeypatch.setitem(sys.modules, library, None)
    (tmp_path / "a.bin").write_bytes(content)
    with pytest.raises(InputError, match=r'pip install "\.\[formats\]" in the checkout'):
        scan_file(tmp_path / "a.bin")


def test_without_zarr_the_error_names_the_pip_line(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "zarr", None)
    (tmp_path / "a.zarr").mkdir()
    (tmp_path / "a.zarr" / "zarr.json").write_text("{}")
    with pytest.raises(InputError, match=r'pip install "\.\[zarr\]" in the checkout'):
        scan_file(tmp_path / "a.zarr")


def test_no_library_of_a_format_is_imported_before_such_a_file_comes(tmp_path):
    import subprocess

    code = (
        "import sys; from xcorr_app.cli import main; import xcorr_app.batch.align.run; "
        "print(sorted({'zarr', 'nd2', 'czifile', 'readlif', 'mrcfile', 'h5py', 'imageio_ffmpeg', "
        "'fsspec'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_file_of_no_such_format_is_one_image(tmp_path):
    """TIFF files are read by a reader of their own; what else there is, is told when it is scanned."""
    for name in ("a.tif", "b.txt", "c"):
        (tmp_path / name).write_bytes(b"II*\0 or whatever this is")
        assert images_of(tmp_path / name) == [tmp_path / name]
