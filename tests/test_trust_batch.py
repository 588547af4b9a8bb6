"""What decides whether a scientist trusts a run: the points that concern files, batches and records, one test each."""

from __future__ import annotations

import numpy as np
import tifffile
import xxhash

from tests.batch.movies import DRIFT, align, files, movie, record, refused, shifts, start, table, write_movie, xcorr
from tests.io.samples import page_tags, tiff_bytes, write_plain


def test_point_5_files_in_human_order(tmp_path):
    (tmp_path / "in").mkdir()
    for number, frame in enumerate(movie(), start=8):
        write_plain(tmp_path / "in" / f"image{number}.tif", frame)
    assert min(path.name for path in (tmp_path / "in").iterdir()) == "image10.tif"
    run = align(tmp_path / "in", "-o", tmp_path / "out")
    assert [row["source"] for row in table(tmp_path / "out" / "in" / "shifts.csv")] == [
        f"image{number}.tif" for number in (8, 9, 10, 11)
    ]
    np.testing.assert_allclose(shifts(tmp_path / "out" / "in" / "shifts.csv"), DRIFT, atol=0.02)
    assert "layout frames" in run.stdout
    write_movie(tmp_path / "stacks" / "m.tif")
    assert "layout stacks" in align(tmp_path / "stacks", "-o", tmp_path / "out2").stdout


def test_point_6_reading_is_not_believing(tmp_path):
    tifffile.imwrite(tmp_path / "promise.tif", movie(), photometric="minisblack", metadata={"axes": "TYX"})
    promised = (tmp_path / "promise.tif").read_bytes()
    (tmp_path / "promise.tif").write_bytes(promised[: len(promised) - 2000])
    write_plain(tmp_path / "cut.tif", movie())
    content = (tmp_path / "cut.tif").read_bytes()
    (tmp_path / "cut.tif").write_bytes(content[: len(content) // 2])
    with tifffile.TiffFile(tmp_path / "cut.tif") as tif:
        assert 0 < len(tif.pages) < 4  # the reading library gives fewer frames, without an exception
    run = align(tmp_path / "promise.tif", tmp_path / "cut.tif", "-o", tmp_path / "out", "--layout", "stacks")
    assert run.code == 1
    assert set(record(tmp_path / "out")["failures"]) == {str(tmp_path / "promise.tif"), str(tmp_path / "cut.tif")}
    assert files(tmp_path / "out") == {"report.html", "run.json"}


def test_point_7_one_bad_file_does_not_stop_the_batch_and_is_never_forgotten(tmp_path):
    for name in ("a", "c"):
        write_movie(tmp_path / "in" / f"{name}.tif")
    assert align(tmp_path / "in", "-o", tmp_path / "good").code == 0
    (tmp_path / "in" / "b.tif").write_bytes(b"broken")
    run = align(tmp_path / "in", "-o", tmp_path / "out")
    assert run.code == 1
    assert "b.tif" in run.stdout
    assert "b.tif" in (tmp_path / "out" / "report.html").read_text()
    assert record(tmp_path / "out")["failed"] is True
    for name in ("a", "c"):
        ours, alone = (tmp_path / out / name / f"{name}_aligned.tif" for out in ("out", "good"))
        assert ours.read_bytes() == alone.read_bytes()
    refused(align(tmp_path / "nowhere", "-o", tmp_path / "other"), "nowhere")


def test_point_9_limits_before_allocation(tmp_path):
    (tmp_path / "bomb.tif").write_bytes(tiff_bytes([page_tags(100_000, 100_000, 8, 10)]))
    assert (tmp_path / "bomb.tif").stat().st_size < 200
    arguments = ("--device", "cpu", tmp_path / "bomb.tif", "-o", tmp_path / "out")
    with start(*arguments) as process:
        stdout, stderr = process.communicate()
    assert (process.returncode, stderr) == (1, "")
    for words in ("100000 x 100000 = 10000000000 pixels", "10 GB", "--max-pixels 10000000000"):
        assert words in stdout
    # Lifted, the limit is not what stops it: the file then lacks its pixels.
    run = align(tmp_path / "bomb.tif", "-o", tmp_path / "lifted", "--max-pixels", 10**10)
    assert run.code == 1
    assert "--max-pixels" not in run.stdout


def test_point_10_it_says_what_it_ran_on(tmp_path):
    path = write_movie(tmp_path / "m.tif")
    assert align(path, "-o", tmp_path / "out", "--max-shift", "9,7").code == 0
    known = record(tmp_path / "out")
    assert known["device"] == "CPU"
    assert known["processor"].endswith("cores")
    assert known["parameters"]["max_shift"] == [9, 7]
    assert known["versions"]["numpy"] == np.__version__
    stack = known["stacks"]["m"]
    assert stack["inputs"] == {str(path): xxhash.xxh3_128(path.read_bytes()).hexdigest()}
    assert stack["seconds"]["measure"] >= 0
    assert stack["seconds"]["move"] >= 0
    env = xcorr("env").stdout
    for name, version in known["versions"].items():
        assert any(line.split() == [name, version] for line in env.splitlines()), name
    assert known["processor"] in env
