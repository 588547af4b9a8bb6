"""``xcorr unmix`` on a folder: each file for itself, and what an interrupted run left."""

from __future__ import annotations

import numpy as np
import pytest
import tifffile

from tests.batch.movies import align, refused, xcorr
from tests.cli.test_unmix import run_unmix
from tests.io.samples import noise, write_plain
from xcorr_app import read_stack, stain_matrix, unmix


@pytest.fixture
def slides(tmp_path):
    """A folder of colour images, one of them cut off, and something that is no image."""
    folder = tmp_path / "slides"
    folder.mkdir()
    for number in (1, 2, 10):
        data = noise((20, 30, 3), "uint8", seed=number)
        tifffile.imwrite(folder / f"s{number}.tif", data, photometric="rgb", compression="zlib")
    whole = (folder / "s2.tif").read_bytes()
    (folder / "s2.tif").write_bytes(whole[:-60])
    (folder / "notes.txt").write_text("mine")
    return folder


def test_a_folder_of_files_of_which_one_is_damaged(tmp_path, slides):
    out = tmp_path / "out"
    run = run_unmix(slides, out, "--stain", "he")
    assert run.code == 1
    lines = run.stdout.splitlines()
    assert [line.split()[0] for line in lines if line.endswith("failed")] == ["s2.tif"]
    assert any(line.startswith("  s2.tif: ") for line in lines)
    assert lines[-2:] == ["1 of 3 stacks failed.", f"Record: {out / 'run.json'}"]
    assert {path.name for path in out.glob("*/*.tif")} == {"s1_unmixed.tif", "s10_unmixed.tif"}
    for number in (1, 10):
        data = np.moveaxis(tifffile.imread(slides / f"s{number}.tif"), -1, 0)
        expected = unmix(data, stain_matrix("he").matrix, from_log=True)
        np.testing.assert_allclose(read_stack(out / f"s{number}" / f"s{number}_unmixed.tif").data, expected, atol=1e-6)


def test_an_interrupted_folder_is_gone_on_with(tmp_path, slides):
    out = tmp_path / "out"
    assert run_unmix(slides, out, "--stain", "he").code == 1
    contents = {path.name: path.read_bytes() for path in out.glob("*/*.tif")}
    (out / "s10" / "s10_unmixed.tif").unlink()
    tifffile.imwrite(slides / "s2.tif", noise((20, 30, 3), "uint8"), photometric="rgb")
    before = (out / "s1" / "s1_unmixed.tif").stat().st_mtime_ns
    refused(run_unmix(slides, out, "--stain", "he"), "is not empty; use --resume")
    run = run_unmix(slides, out, "--stain", "he", "--resume")
    assert run.code == 0
    assert "Finished before: s1\n" in run.stdout
    assert (out / "s1" / "s1_unmixed.tif").stat().st_mtime_ns == before
    assert (out / "s10" / "s10_unmixed.tif").read_bytes() == contents["s10_unmixed.tif"]
    assert (out / "s2" / "s2_unmixed.tif").exists()
    refused(run_unmix(slides, out, "--stain", "he", "--resume", "--clip"), "holds a run with clip false, not true")
    assert run_unmix(slides, out, "--stain", "he", "--overwrite").code == 0


def test_results_of_another_command_are_not_gone_on_with(tmp_path, slides):
    write_plain(tmp_path / "m.tif", noise((2, 20, 30)))
    assert xcorr("filter", "--device", "cpu", tmp_path / "m.tif", "-o", tmp_path / "out", "--box", "3").code == 0
    refused(run_unmix(slides, tmp_path / "out", "--stain", "he", "--resume"), "results of `xcorr filter`")
    refused(align(tmp_path / "m.tif", "-o", tmp_path / "out", "--resume"), "results of `xcorr filter`")


def test_results_never_lie_among_the_inputs(tmp_path, slides):
    refused(run_unmix(slides, slides, "--stain", "he", "--overwrite"), "lies in the input folder")
    assert run_unmix(slides / "s1*.tif", tmp_path / "o", "--matrix", tmp_path / "none.csv").code == 2
