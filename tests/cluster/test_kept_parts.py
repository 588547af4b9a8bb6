"""Results of blocks in files: what is whole and of the same pass comes back, nothing else."""

from __future__ import annotations

import os
import pickle
from dataclasses import replace

import numpy as np
import pytest

from xcorr_app.cluster.kept_parts import KeptParts, begin, folder_of
from xcorr_app.registration.measuring.chunk_result import ChunkResult
from xcorr_app.registration.measuring.measured import Measured
from xcorr_app.registration.measuring.placement import Placement
from xcorr_app.registration.motion.whole_frames import Found
from xcorr_app.registration.standard_error.peak_shapes import PeakShapes

OF = ("measure", False, 9, 32)
KEY = "0123456789abcdef-and-more"


def kept(folder, number, key=KEY, device="CPU", *, resume=True):
    return KeptParts(folder, key, number, device, resume=resume)


def results(count):
    rng = np.random.default_rng(count)
    nothing = np.zeros(3)
    values = [[(rng.normal(size=(3, 5)), Placement(nothing[:, None], nothing, nothing, nothing), slice(2), {1})]]
    return [pickle.dumps((number, values, np.float64(0.5))) for number in range(count)]


def test_what_was_kept_comes_back(tmp_path):
    parts = kept(tmp_path, 1)
    parts.keep(OF, 4, results(3), 0.0).result()
    parts.keep(OF, 0, results(2), 0.0).result()
    assert kept(tmp_path, 1).known(OF, 0, 9) == dict(zip([4, 5, 6, 0, 1], results(3) + results(2), strict=True))
    assert kept(tmp_path, 0).known(OF, 0, 9) == {}
    assert parts.known(("measure", True, 9, 32), 0, 9) == {}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["001-000000-2.part", "001-000004-3.part"]


@pytest.mark.parametrize("cut", [0, 1, 40, -1])
def test_what_is_not_whole_is_left(tmp_path, cut):
    parts = kept(tmp_path, 0)
    parts.keep(OF, 0, results(2), 0.0).result()
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:cut])
    assert parts.known(OF, 0, 9) == {}


class Harmful:
    def __init__(self, what, *arguments):
        self.what, self.arguments = what, arguments

    def __reduce__(self):
        return self.what, self.arguments


def named(module, name, *arguments):
    """A pickle that calls what a dotted name in a module leads to."""
    texts = b"".join(b"\x8c" + bytes([len(text)]) + text.encode() for text in (module, name))
    return b"\x80\x04" + texts + b"\x93" + pickle.dumps(arguments, 0)[:-1] + b"R."


def test_nothing_is_called_by_a_file(tmp_path):
    from xcorr_app.registration.stack.passes import worker_count

    made = tmp_path / "made"
    harmful = [pickle.dumps([Harmful(*each)]) for each in ((os.mkdir, str(made)), (eval, "1"), (worker_count,))]
    # A module may have others in it, with classes that do something when they are made.
    modules = "xcorr_app.registration.stack.frames", "xcorr_app.registration.measuring.match"
    harmful += [named(module, "np.memmap", str(made), "uint8", "w+", 0, 3) for module in modules]
    for each in harmful:
        parts = kept(tmp_path, 0)
        parts.keep(OF, 0, [each], 0.0).result()
        assert parts.known(OF, 0, 9) == {}
    assert not made.exists()


@pytest.mark.parametrize("fault", [b"cno_such_module\nx\n.", b"1.", b"h\x05.", b"]" + b"]a" * 3])
def test_any_fault_of_a_file_means_that_it_is_not_there(tmp_path, fault):
    parts = kept(tmp_path, 0)
    parts.keep(OF, 0, [fault], 0.0).result()
    assert parts.known(OF, 0, 9) == {}


def test_another_run_begins_anew(tmp_path):
    root = tmp_path / ".xcorr" / "a.begun"
    begin(root, "one", resume=True)
    one, two = root / "one" / "left", root / "two" / "left"
    one.write_text("")
    begin(root, "one", resume=True)
    assert one.exists()
    begin(root, "two", resume=True)
    assert not one.exists()
    two.write_text("")
    begin(root, "two", resume=False)
    assert not two.exists()
    assert folder_of(root, KEY) == root / KEY[:16]


def test_a_frame_that_cannot_be_read_is_noticed():
    from xcorr_app.cluster.blocks import _could_not_read

    lost, known = (replace(Measured.empty(2), reasons=reasons) for reasons in ({1: "no such file"}, {}))
    shapes = PeakShapes.empty(2)
    for one in (ChunkResult(0, lost, shapes), Found(unreadable="no such file")):
        assert _could_not_read([one])
    assert not _could_not_read([ChunkResult(0, known, shapes), Found(), None, np.zeros(3)])
