"""Frames measured while their series is still written: each once, in the order in which they come."""

import numpy as np
from scipy import ndimage

from tests.io.samples import noise, write_plain
from xcorr_app.batch.align.options import AlignOptions
from xcorr_app.batch.align.watched_frames import FramesSoFar
from xcorr_app.gpu.runtime.select import select_device
from xcorr_app.io import discover
from xcorr_app.registration.settings import Settings
from xcorr_app.report.table import parse_shifts_csv


def test_frames_so_far_are_those_of_the_first_size_each_once(tmp_path):
    rng = np.random.default_rng(5)
    (folder := tmp_path / "in").mkdir()
    base = ndimage.gaussian_filter(rng.normal(size=(80, 90)), 1.5)
    moves = [(0, 0), (2, -1), (-3, 4)]
    for number, (y, x) in enumerate(moves):
        frame = base[8 + y : 72 + y, 8 + x : 80 + x]
        write_plain(folder / f"f{number}.tif", (20000 + 30000 * frame).astype(np.uint16))
    write_plain(folder / "f3.tif", noise((9, 11)))
    specs = {path.stem: discover([path]).series[0] for path in sorted(folder.iterdir())}
    so_far = FramesSoFar(AlignOptions(reference=1, settings=Settings(max_shift=9)), select_device("cpu"), tmp_path)
    so_far([specs["f0"]])
    assert not so_far.table.exists()  # the one to compare with is not there
    so_far([specs["f1"], specs["f0"]])
    so_far([specs["f3"]])
    so_far([specs["f2"], specs["f1"]])
    rows = parse_shifts_csv(so_far.table.read_text())
    assert [(row.frame, row.source) for row in rows] == [(i, f"f{i}.tif") for i in range(3)]
    np.testing.assert_allclose([(row.dy, row.dx) for row in rows], np.array(moves) - moves[1], atol=0.05)
    assert np.isnan([(row.applied_dy, row.applied_dx) for row in rows]).all()
