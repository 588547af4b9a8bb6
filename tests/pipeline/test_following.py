"""One stack is moved while the next is measured: apart from each other, in bounded memory, with the same results."""

import sys
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

from tests.batch.movies import align, record, write_movie
from tests.batch.test_killed import content
from xcorr_app.batch.align import moving
from xcorr_app.batch.align import stack as of_stack
from xcorr_app.batch.align.frames import SourceFrames
from xcorr_app.batch.align.options import AlignOptions
from xcorr_app.batch.align.run import plan_align, run_align
from xcorr_app.batch.align.without_pictures import NoPictures
from xcorr_app.errors import InputError
from xcorr_app.gpu.runtime.placement import same_device
from xcorr_app.io.finding.discover import series_of_file
from xcorr_app.io.limits import Limits
from xcorr_app.io.writing import write
from xcorr_app.pipeline import run, state
from xcorr_app.pipeline.finisher import Finisher, Stopped
from xcorr_app.pipeline.output import prepared_output
from xcorr_app.registration.moving.apply import apply_shifts
from xcorr_app.registration.stack import passes
from xcorr_app.registration.stack.frames import Chunk

NAMES = ("a", "b", "c")


@pytest.fixture
def folder(tmp_path):
    for number, name in enumerate(NAMES):
        write_movie(tmp_path / "in" / f"{name}.tif", seed=number)
    return tmp_path / "in"


def test_a_stack_that_cannot_be_moved_does_not_stop_the_next(tmp_path, folder, monkeypatch):
    assert align(folder, "-o", tmp_path / "whole", "--report", "none").code == 0
    real = of_stack.move_stack

    def move(frames, *others):
        if frames.source.name == "b":
            raise InputError("b: no")
        return real(frames, *others)

    monkeypatch.setattr(of_stack, "move_stack", move)
    assert align(folder, "-o", tmp_path / "out", "--report", "none").code == 1
    assert {name: of.get("failure") for name, of in record(tmp_path / "out")["stacks"].items()} == {
        "a": None,
        "b": "b: no",
        "c": None,
    }
    expected = content(tmp_path / "whole")
    found = {name: data for name, data in content(tmp_path / "out").items() if name.startswith(("a/", "c/"))}
    assert len(found) == 4
    assert found == {name: expected[name] for name in found}
    assert not (tmp_path / "out" / "b" / "b_aligned.tif").exists()


def test_one_thread_measures_moves_and_assesses_in_order(tmp_path, folder, monkeypatch):
    """What belongs to a device is done by the thread that has it; two threads once had, and their arrays raced."""
    happened = []

    def recorded(name, real):
        def call(*arguments, **options):
            happened.append((name, threading.current_thread()))
            return real(*arguments, **options)

        monkeypatch.setattr(of_stack, name, call)

    for name in ("estimate_from", "move_stack", "assessment_of"):
        recorded(name, getattr(of_stack, name))
    assert align(folder, "-o", tmp_path / "out").code == 0
    assert [name for name, _ in happened] == ["estimate_from", "move_stack", "assessment_of"] * len(NAMES)
    assert {thread for _, thread in happened} == {threading.current_thread()}


def test_with_debug_what_moving_raises_comes_out(tmp_path, folder, monkeypatch):
    def move(*_):
        raise ZeroDivisionError

    monkeypatch.setattr(of_stack, "move_stack", move)
    with pytest.raises(ZeroDivisionError):
        align(folder, "-o", tmp_path / "out", "--report", "none", "--debug")


def test_results_do_not_depend_on_the_number_of_threads_or_on_memory(tmp_path, folder, monkeypatch):
    found = []
    for threads, memory in ((1, "0MB"), (3, "1GB"), (2, "40KB")):
        monkeypatch.setattr(passes, "worker_count", lambda threads=threads: threads)
        out = tmp_path / str(threads)
        assert align(folder, "-o", out, "--memory", memory).code == 0
        found.append({name: data for name, data in content(out).items() if name.endswith((".csv", ".tif", ".html"))})
    assert len(found[0]) == 7
    assert found[0] == found[1] == found[2]


def test_who_works_is_told_to_stop_and_nothing_new_begins():
    begun, told, finisher = threading.Event(), [], Finisher(1, at_once=1)

    def job():
        begun.set()
        try:
            while True:
                finisher.check()
                time.sleep(0.01)
        except Stopped:
            told.append(True)
            raise

    def interrupted():
        with finisher:
            finisher.submit(job, lambda: None)
            assert begun.wait(10)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert told == [True]
    with pytest.raises(Stopped):
        finisher.submit(job, lambda: None)


def test_frames_are_moved_from_the_device_that_they_were_measured_on(tmp_path, monkeypatch):
    path = write_movie(tmp_path / "m.tif")
    with series_of_file(path, Limits()).open() as source:
        stack = np.stack([source.plane(t) for t in range(4)])
        asked = []

        def read(start, stop):
            asked.append((start, stop))
            return Chunk(start, stack[start:stop], {})

        # Nothing else may bring frames there.
        frames = SourceFrames(source, "T", 0, SimpleNamespace())
        monkeypatch.setattr(passes, "bytes_within_limit", lambda: 1 << 34)
        monkeypatch.setattr(moving, "device_limits", lambda _: None)
        monkeypatch.setattr(moving, "current_device", lambda: 0)
        written = []

        class Writer:
            def __enter__(self):
                return self

            def __exit__(self, *_):
                pass

            def write(self, plane):
                written.append(plane)

        shifts = np.array([(0.0, 0.0), (1.5, -2.0), (0.25, 3.0), (-1.0, 0.5)])
        out = tmp_path / "o.tif"
        there = SimpleNamespace(read=read)
        pictures = NoPictures()
        moving.move_stack(frames, shifts, AlignOptions(), out, (), pictures, None, lambda *_: Writer(), there)
    assert asked == [(0, 4)]
    np.testing.assert_array_equal(np.stack(written), apply_shifts(stack, shifts))


def test_another_thread_works_on_the_device_of_this_one():
    assert same_device(np)() is None
    used = []
    number = SimpleNamespace(use=lambda: used.append(threading.get_ident()))
    thread = threading.Thread(target=same_device(SimpleNamespace(cuda=SimpleNamespace(Device=lambda: number))))
    thread.start()
    thread.join()
    assert used
    assert used != [threading.get_ident()]


def test_threads_hand_over_sooner_as_long_as_a_device_is_at_work():
    before = sys.getswitchinterval()
    with run._handing_over_soon(on_device=False):
        assert sys.getswitchinterval() == before
    with run._handing_over_soon(on_device=True):
        assert sys.getswitchinterval() < before / 5
    assert sys.getswitchinterval() == before


def test_runs_at_once_leave_python_as_it_was():
    before = sys.getswitchinterval()
    one, other = (run._handing_over_soon(on_device=True) for _ in range(2))
    one.__enter__()
    other.__enter__()
    one.__exit__(None, None, None)
    assert sys.getswitchinterval() < before / 5
    other.__exit__(None, None, None)
    assert sys.getswitchinterval() == before


def test_a_stopped_run_completes_no_stack_that_is_still_assessed(tmp_path, folder, monkeypatch):
    begun, gate, assess = threading.Event(), threading.Event(), of_stack.assessment_of

    def held_up(*arguments):
        begun.set()
        assert gate.wait(10)
        return assess(*arguments)

    def measure(frames, *others, **how):
        if frames.source.name != "a":
            assert begun.wait(10)
            raise KeyboardInterrupt
        return measured(frames, *others, **how)

    measured = of_stack.estimate_from
    monkeypatch.setattr(of_stack, "assessment_of", held_up)
    monkeypatch.setattr(of_stack, "estimate_from", measure)
    before = set(threading.enumerate())
    out = tmp_path / "out"
    plan = plan_align([folder], out, AlignOptions(device="cpu"))
    with prepared_output(out, resume=False, overwrite=False), pytest.raises(KeyboardInterrupt):
        run_align(plan)
    gate.set()
    for thread in set(threading.enumerate()) - before:
        thread.join(30)
    assert [path for path in out.rglob("a*") if path.is_file()] == []


def test_large_results_are_brought_to_the_disk_early_and_read_once_for_their_checksum(tmp_path, folder, monkeypatch):
    assert align(folder, "-o", tmp_path / "late").code == 0
    hashed, prepared = [], []
    for module in (write, state):

        def counted(path, real=module.checksum_of):
            hashed.append(path)
            return real(path)

        monkeypatch.setattr(module, "checksum_of", counted)
    monkeypatch.setattr(write, "_LARGE", 0)
    prepare = write.StackWriter.prepare

    def seen(writer):
        prepare(writer)
        prepared.append((writer.path.name, writer.path.exists(), writer.checksum is not None))

    monkeypatch.setattr(write.StackWriter, "prepare", seen)
    assert align(folder, "-o", tmp_path / "early").code == 0
    assert sorted(prepared) == [(f"{name}_aligned.tif", False, True) for name in NAMES]
    assert len([path for path in hashed if "_aligned.tif" in path.name]) == len(NAMES)
    # The reports name the folder.
    found, expected = (
        {name: data for name, data in content(tmp_path / out).items() if name.endswith((".tif", ".csv"))}
        for out in ("early", "late")
    )
    assert len(found) == 2 * len(NAMES)
    assert found == expected
    assert align(folder, "-o", tmp_path / "early", "--resume").code == 0
    assert record(tmp_path / "early")["resumed"] == list(NAMES)
