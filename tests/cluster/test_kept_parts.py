"""Results of blocks in files: what is whole and of the same pass comes back, nothing else."""

from __future__ import annotations

import json
import os
import pickle
from types import SimpleNamespace

import numpy as np
import pytest

from xcorr_app.batch.align.moving import _Block
from xcorr_app.batch.align.projections import Projections
from xcorr_app.cluster import kept_parts
from xcorr_app.cluster.blocks import _Here
from xcorr_app.cluster.kept_parts import KeptParts, begin, folder_of
from xcorr_app.registration.masked.estimate import _Columns
from xcorr_app.registration.measuring.chunk_result import ChunkResult
from xcorr_app.registration.measuring.placement import Placement
from xcorr_app.registration.motion.whole_frames import _Found
from xcorr_app.registration.parts.turned_frames import Turned
from xcorr_app.registration.stack.passes import Pass
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


def test_a_disk_that_is_full_keeps_nothing(tmp_path):
    kept(tmp_path / "missing", 0).keep(OF, 0, results(1), 0.0).result()
    assert list(tmp_path.iterdir()) == []


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


def test_what_moving_and_other_passes_make_is_known(tmp_path):
    frames = np.random.default_rng(3).random((6, 40, 50)).astype(np.float32)
    projections = Projections((40, 50), np.zeros((6, 2)), [1])
    gathered = projections.begun()
    projections.add(list(range(6)), frames, frames, gathered)
    block = _Block(3, projections.end(gathered, to_join=True), (("plane", 4),))
    made = [block, _Columns(4), Turned.empty(4, (3, 3)), PeakShapes.empty(4)]
    parts = kept(tmp_path, 0)
    whole = [pickle.dumps([one]) for one in made]
    parts.keep(OF, 0, whole, 0.0).result()
    assert list(parts.known(OF, 0, 9).values()) == whole


@pytest.mark.parametrize("fault", [b"cno_such_module\nx\n.", b"1.", b"h\x05.", b"]" + b"]a" * 3])
def test_any_fault_of_a_file_means_that_it_is_not_there(tmp_path, fault):
    parts = kept(tmp_path, 0)
    parts.keep(OF, 0, [fault], 0.0).result()
    assert parts.known(OF, 0, 9) == {}


@pytest.mark.parametrize("error", [ImportError, IndexError, RecursionError, MemoryError])
def test_a_part_that_cannot_be_loaded_is_not_there(tmp_path, monkeypatch, error):
    def fails(_):
        raise error

    parts = kept(tmp_path, 0)
    parts.keep(OF, 0, results(2), 0.0).result()
    monkeypatch.setattr(kept_parts, "plain", fails)
    assert parts.known(OF, 0, 9) == {}


def test_only_what_is_asked_for_is_read(tmp_path, monkeypatch):
    parts = kept(tmp_path, 0)
    for first in (0, 3, 6):
        parts.keep(OF, first, results(3), 0.0).result()
    loaded = []
    monkeypatch.setattr(kept_parts, "plain", loaded.append)
    assert parts.known(OF, 3, 5) == dict(zip([3, 4], results(3), strict=False))
    assert len(loaded) == 3
    assert kept(tmp_path, 0, resume=False).known(OF, 0, 9) == {}
    assert kept(tmp_path, 0, device="another").known(OF, 0, 9) == {}
    assert len(loaded) == 3


def test_parts_of_another_key_are_removed(tmp_path):
    kept(tmp_path, 0, "another").keep(OF, 0, results(2), 0.0).result()
    assert kept(tmp_path, 0).known(OF, 0, 9) == {}
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_vanishes_hinders_nothing(tmp_path, monkeypatch):
    (tmp_path / "plane").write_text("")
    opened = os.open

    def vanishes(path, *how):
        if path == tmp_path / "plane":
            raise FileNotFoundError
        return opened(path, *how)

    monkeypatch.setattr(os, "open", vanishes)
    parts = kept(tmp_path, 0)
    parts.keep(OF, 0, results(2), 0.0).result()
    assert len(parts.known(OF, 0, 9)) == 2


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

    for one in (ChunkResult(0, None, np.arange(2), {1: "no such file"}), _Found(unreadable="no such file")):
        assert _could_not_read([one])
    assert not _could_not_read([ChunkResult(0, None, np.arange(2), {}), _Found(), None, np.zeros(3)])


@pytest.mark.parametrize(("failing", "is_kept"), [(None, True), (5, False)])
def test_nothing_goes_on_from_frames_that_could_not_be_read(tmp_path, failing, is_kept):
    """They may be readable by then."""

    def job(start, stop):
        return SimpleNamespace(unreadable={start: "no such file"} if start == failing else {})

    begin(tmp_path / "a", KEY, resume=True)
    folder = folder_of(tmp_path / "a", KEY)
    _Here(Pass(12, 1 << 21, on_device=False), "measure", job, None).part(0, 1, kept(folder, 0))
    (folder / "left").write_text("")
    begin(tmp_path / "a", KEY, resume=True)
    assert (folder / "left").exists() is is_kept


def test_the_head_of_a_file_may_say_anything(tmp_path):
    for head in (
        {},
        {"key": KEY, "of": ["CPU", *OF], "first": "x", "sizes": [1], "checksum": "99aa06d3014798d86001c324468d497f"},
        [],
    ):
        (tmp_path / "000-000000-1.part").write_bytes(json.dumps(head).encode() + b"\n")
        assert kept(tmp_path, 0).known(OF, 0, 9) == {}
