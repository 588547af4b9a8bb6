"""Results of blocks in files: what is whole and of the same pass comes back, nothing else."""

from __future__ import annotations

import json
import os
import pickle

import numpy as np
import pytest

from xcorr_app.cluster.kept_parts import KeptParts, begin
from xcorr_app.registration.placement import Placement

OF = ("measure", False, 9, 32)


def results(count):
    rng = np.random.default_rng(count)
    nothing = np.zeros(3)
    values = [[(rng.normal(size=(3, 5)), Placement(nothing[:, None], nothing, nothing, nothing), slice(2), {1})]]
    return [pickle.dumps((number, values, np.float64(0.5))) for number in range(count)]


def test_what_was_kept_comes_back(tmp_path):
    parts = KeptParts(tmp_path, 1)
    parts.keep(OF, 4, results(3), 0.0).result()
    parts.keep(OF, 0, results(2), 0.0).result()
    assert KeptParts(tmp_path, 1).known(OF) == dict(zip([4, 5, 6, 0, 1], results(3) + results(2), strict=True))
    assert KeptParts(tmp_path, 0).known(OF) == {}
    assert parts.known(("measure", True, 9, 32)) == {}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["001-000000-2.part", "001-000004-3.part"]


def test_a_disk_that_is_full_keeps_nothing(tmp_path):
    KeptParts(tmp_path / "missing", 0).keep(OF, 0, results(1), 0.0).result()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("cut", [0, 1, 40, -1])
def test_what_is_not_whole_is_left(tmp_path, cut):
    parts = KeptParts(tmp_path, 0)
    parts.keep(OF, 0, results(2), 0.0).result()
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:cut])
    assert parts.known(OF) == {}


class Harmful:
    def __init__(self, what, *arguments):
        self.what, self.arguments = what, arguments

    def __reduce__(self):
        return self.what, self.arguments


def test_nothing_is_called_by_a_file(tmp_path):
    from xcorr_app.registration.passes import worker_count

    made = tmp_path / "made"
    for harmful in (Harmful(os.mkdir, str(made)), Harmful(eval, "1"), Harmful(worker_count)):
        parts = KeptParts(tmp_path, 0)
        parts.keep(OF, 0, [pickle.dumps([harmful])], 0.0).result()
        assert parts.known(OF) == {}
    assert not made.exists()


def test_another_run_begins_anew(tmp_path):
    folder = tmp_path / ".xcorr" / "a.begun"
    begin(folder, "one", resume=True)
    (folder / "left").write_text("")
    begin(folder, "one", resume=True)
    assert (folder / "left").exists()
    begin(folder, "two", resume=True)
    assert not (folder / "left").exists()
    for key, resume in (("two", False), (None, True)):
        (folder / "left").write_text("")
        begin(folder, key, resume=resume)
        assert not (folder / "left").exists()


def test_the_head_of_a_file_may_say_anything(tmp_path):
    for head in ({}, {"of": list(OF), "first": "x", "sizes": [1], "checksum": "99aa06d3014798d86001c324468d497f"}, []):
        (tmp_path / "000-000000-1.part").write_bytes(json.dumps(head).encode() + b"\n")
        assert KeptParts(tmp_path, 0).known(OF) == {}
