"""What is wrong does not pass for a result: damage outside what is measured, an earlier input, a failed check."""

import numpy as np
import pytest
import tifffile

from tests.batch.movies import align, files, movie, record, write_movie
from tests.io.samples import write_ome, write_plain
from xcorr_app.errors import DamagedFileError, OutputError
from xcorr_app.io import read_stack, write_stack
from xcorr_app.io.writing import write as write_module

pytestmark = pytest.mark.usefixtures("short_report")


def test_a_damaged_plane_of_a_channel_that_is_not_measured(tmp_path):
    """Of a frame whose measured plane is sound; it is no plane of zeros in the output."""
    path = tmp_path / "m.ome.tif"
    data = np.stack([movie(), movie(seed=1)], axis=1)
    write_ome(path, data, "TCYX", compression="zlib")
    with tifffile.TiffFile(path) as file:
        page = file.pages[2 * 2 + 1]
        offset, count = page.dataoffsets[0], page.databytecounts[0]
    content = bytearray(path.read_bytes())
    content[offset : offset + count] = bytes(count)
    path.write_bytes(content)
    run = align(path, "-o", tmp_path / "out")
    assert run.code == 1
    assert "failure" in record(tmp_path / "out")["stacks"]["m"]
    assert not [name for name in files(tmp_path / "out") if name.startswith("m/")]


def test_results_of_an_earlier_input_go_when_the_new_one_fails(tmp_path):
    path, out = write_movie(tmp_path / "m.tif"), tmp_path / "out"
    write_movie(tmp_path / "n.tif", seed=1)
    assert align(path, tmp_path / "n.tif", "-o", out).code == 0
    assert "m/m_aligned.tif" in files(out)
    write_plain(path, np.full((4, 40, 48), 7, "uint16"))  # flat: no shift can be measured
    assert align(path, tmp_path / "n.tif", "-o", out, "--resume").code == 1
    stale = tifffile.imread(out / "m" / "m_aligned.tif") if (out / "m" / "m_aligned.tif").exists() else np.array(7)
    assert (stale == 7).all()
    assert record(out)["resumed"] == ["n"]


def test_what_does_not_read_back_gets_no_name(tmp_path, monkeypatch):
    stack = read_stack(write_movie(tmp_path / "m.tif"))

    def damaged(*_arguments, **_options):
        raise DamagedFileError("directory 2 is beyond the end")

    monkeypatch.setattr(write_module, "scan_tiff", damaged)
    with pytest.raises(OutputError, match=r"does not read back .*directory 2"):
        write_stack(tmp_path / "copy.tif", stack.data, stack.metadata)
    assert [path.name for path in tmp_path.iterdir()] == ["m.tif"]
