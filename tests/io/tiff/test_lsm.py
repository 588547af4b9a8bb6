"""LSM files of Zeiss: what is read, what is damage."""

import numpy as np
import pytest
import tifffile

from tests.io.samples import noise
from xcorr_app.errors import InputError
from xcorr_app.io import read_stack


def lsm_info(t, z, c, *, scan=6, positions=0):
    values = {
        "MagicNumber": 0x00494C44,
        "StructureSize": 500,
        "DimensionZ": z,
        "DimensionChannels": c,
        "ScanType": scan,
    }
    values |= {"DimensionTime": t, "VoxelSizeX": 2.5e-7, "VoxelSizeY": 5e-7, "VoxelSizeZ": 1e-6, "TimeIntervall": 1.5}
    values["DimensionP"] = positions
    packed = b""
    for name, kind in tifffile.TIFF.CZ_LSMINFO:
        dtype = np.dtype(kind).newbyteorder("<")
        packed += np.full(1, values.get(name, 0), dtype).tobytes() if dtype.subdtype is None else bytes(dtype.itemsize)
    return packed


def write_lsm(path, data, *, thumbnails=True, **info):
    """Planes T, Z, C as Zeiss' program stores them: a page of all channels apart, each with a thumbnail behind it."""
    t, z, c = data.shape[:3]
    content = lsm_info(t, z, c, **info)
    with tifffile.TiffWriter(path, byteorder="<") as tif:
        for index, page in enumerate(data.reshape(-1, *data.shape[2:])):
            tag = [(34412, 1, len(content), content, True)] if index == 0 else ()
            how = {"metadata": None, "contiguous": False, "photometric": "minisblack"}
            if c > 1:
                tif.write(page, planarconfig="separate", extratags=tag, rowsperstrip=data.shape[-2], **how)
            else:
                tif.write(page[0], extratags=tag, rowsperstrip=data.shape[-2], **how)
            if thumbnails:
                tif.write(np.zeros((8, 8, 3), np.uint8), subfiletype=1, **(how | {"photometric": "rgb"}))


@pytest.mark.parametrize("shape", [(2, 3, 2), (1, 4, 1), (5, 1, 3), (1, 1, 2)])
@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_lsm(tmp_path, shape, dtype):
    data = noise((*shape, 7, 9), dtype)
    write_lsm(tmp_path / "a.lsm", data)
    stack = read_stack(tmp_path / "a.lsm")
    metadata = stack.metadata
    assert metadata.axes == "".join(a for a, n in zip("TZC", shape, strict=True) if n > 1) + "YX"
    np.testing.assert_array_equal(stack.data, data.reshape(stack.data.shape))
    assert (metadata.pixel_size, metadata.unit) == (pytest.approx((0.5, 0.25)), "µm")
    assert (metadata.z_step, metadata.time_increment, metadata.time_unit) == (pytest.approx(1.0), 1.5, "s")


def test_truncated_lsm_is_never_read(tmp_path):
    write_lsm(tmp_path / "a.lsm", noise((2, 1, 2, 7, 9)))
    content = (tmp_path / "a.lsm").read_bytes()
    for size in range(0, len(content) - 400, 37):
        (tmp_path / "a.lsm").write_bytes(content[:size])
        with pytest.raises(InputError, match=r"a\.lsm"):
            read_stack(tmp_path / "a.lsm")
