"""What decides whether a scientist trusts a run: the points that concern files, batches and records, one test each."""

from __future__ import annotations

import numpy as np
import xxhash

from tests.batch.movies import align, record, write_movie, xcorr


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
