"""A device that stops working in mid-run."""

from tests.batch.movies import write_movie
from xcorr_app.batch.align.options import AlignOptions
from xcorr_app.batch.align.run import Align
from xcorr_app.pipeline.work import plan_stacks


def test_the_cpu_goes_on_by_the_files_that_the_run_began_with(tmp_path):
    write_movie(tmp_path / "in" / "movie.tif")
    mask = write_movie(tmp_path / "mask.tif", drift=[(0, 0)])
    work = plan_stacks(Align, [tmp_path / "in"], tmp_path / "out", AlignOptions(mask=mask, device="cpu"))
    began_with = work.checksums["mask_file"]
    mask.write_bytes(b"")
    on_cpu = work.on_cpu("lost")
    assert on_cpu.checksums["mask_file"] == began_with
    assert on_cpu.fingerprint({}) == work.fingerprint({})
    assert on_cpu.notes == ("lost",)
