"""Stacks one after the other: begun ahead, finished behind, in order."""

import threading
import time

import numpy as np
import pytest

from tests.batch.movies import align, content, record, write_movie, write_movies
from xcorr_app.batch.align import stack as of_stack
from xcorr_app.batch.align.options import AlignOptions
from xcorr_app.batch.align.run import Align
from xcorr_app.errors import InputError
from xcorr_app.io import HeldSource, StackMetadata
from xcorr_app.pipeline import stack_steps
from xcorr_app.pipeline.new_channels import with_new_channels
from xcorr_app.pipeline.stack_steps import Finisher, Interruption, StackSteps
from xcorr_app.pipeline.work import plan_stacks
from xcorr_app.registration.stack import passes

NAMES = ("a", "b", "c", "d", "e")


@pytest.fixture
def folder(tmp_path):
    return write_movies(tmp_path / "in", NAMES)


def test_a_stack_that_cannot_be_moved_does_not_stop_the_next(tmp_path, folder, monkeypatch):
    assert align(folder, "-o", tmp_path / "whole", "--report", "none").code == 0
    real = of_stack.move_stack

    def move(frames, *others, **how):
        if frames.source.name == "b":
            raise InputError("b: no")
        return real(frames, *others, **how)

    monkeypatch.setattr(of_stack, "move_stack", move)
    assert align(folder, "-o", tmp_path / "out", "--report", "none").code == 1
    assert {name: of.get("failure") for name, of in record(tmp_path / "out")["stacks"].items()} == {
        **dict.fromkeys(NAMES),
        "b": "b: no",
    }
    expected = content(tmp_path / "whole")
    found = {name: data for name, data in content(tmp_path / "out").items() if name[:2] in ("a/", "c/", "d/", "e/")}
    assert len(found) == 8
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


def test_results_do_not_depend_on_the_number_of_threads_or_on_memory(tmp_path, folder, monkeypatch):
    found = []
    for threads, memory in ((1, "0MB"), (3, "1GB"), (2, "40KB")):
        monkeypatch.setattr(passes, "worker_count", lambda threads=threads: threads)
        out = tmp_path / str(threads)
        assert align(folder, "-o", out, "--memory", memory).code == 0
        found.append({name: data for name, data in content(out).items() if name.endswith((".csv", ".tif", ".html"))})
    assert len(found[0]) == 21
    assert found[0] == found[1] == found[2]


def test_who_works_is_told_to_stop_and_nothing_new_begins():
    begun, told, finisher = threading.Event(), [], Finisher(1, at_once=1)

    def job():
        begun.set()
        try:
            while True:
                finisher.check()
                time.sleep(0.01)
        except Interruption:
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
    with pytest.raises(Interruption):
        finisher.submit(job, lambda: None)


@pytest.fixture
def events(monkeypatch):
    """What happened, in order; stacks are begun ahead on a CPU, too."""
    told, real_measure, real_begin = [], of_stack.estimate_from, Align.begin

    def begin(self, spec, resources, *, ahead=False):
        if ahead:
            told.append(("ahead", spec.name))
            if spec.name == "c":
                raise InputError("c: not now")
        told.append(("begin", spec.name))
        return real_begin(self, spec, resources)

    def measure(frames, *others, **how):
        told.append(("measure", frames.source.name))
        return real_measure(frames, *others, **how)

    monkeypatch.setattr(Align, "begin", begin)
    monkeypatch.setattr(stack_steps, "np", None)
    monkeypatch.setattr(of_stack, "estimate_from", measure)
    return told


def test_two_stacks_are_begun_ahead_once_and_the_results_are_the_same(tmp_path, folder, events, monkeypatch):
    assert align(folder, "-o", tmp_path / "out", "--memory", "0MB").code == 0
    begun = [name for what, name in events if what == "begin"]
    assert sorted(begun) == list(NAMES)
    assert events.index(("begin", "b")) < events.index(("measure", "a"))
    assert events.index(("ahead", "c")) < events.index(("measure", "a"))
    assert events.index(("measure", "a")) < events.index(("ahead", "d"))
    # What failed ahead is tried again in its turn.
    assert events.index(("measure", "b")) < events.index(("begin", "c"))
    monkeypatch.setattr(StackSteps, "ahead", lambda _: None)
    assert align(folder, "-o", tmp_path / "alone", "--memory", "0MB").code == 0
    assert content(tmp_path / "out") == content(tmp_path / "alone")


def test_what_was_begun_is_closed_where_the_run_ends(tmp_path, folder, events, monkeypatch):
    closed, real = [], HeldSource.close

    def close(source):
        closed.append(source.name)
        real(source)

    def stop(frames, *_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(HeldSource, "close", close)
    monkeypatch.setattr(of_stack, "estimate_from", stop)
    assert align(folder, "-o", tmp_path / "out").code == 130
    assert set(closed) == {"a", "b"}
    assert not (tmp_path / "out" / "run.json").exists()


def test_outcomes_and_errors_are_those_of_the_jobs():
    with Finisher(3) as finisher:
        later = [finisher.submit(lambda i=i: 10 // (i - 2), lambda: None) for i in range(5)]
    assert [later[i].result() for i in (0, 1, 3, 4)] == [-5, -10, 10, 5]
    with pytest.raises(ZeroDivisionError):
        later[2].result()


def test_an_error_abandons_what_waits_and_does_not_wait_long_for_what_runs():
    gate, abandoned = threading.Event(), []
    began = time.monotonic()

    def interrupted():
        with Finisher(1) as finisher:
            finisher.submit(gate.wait, lambda: abandoned.append("runs"))
            time.sleep(0.1)
            finisher.submit(gate.wait, lambda: abandoned.append("waits"))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert time.monotonic() - began < 5
    assert abandoned == ["waits"]
    gate.set()


OLD = {"pixel_size": (0.1, 0.2), "unit": "µm", "z_step": 0.5, "z_unit": "nm", "time_increment": 2.0, "time_unit": "s"}
SIZES = {"T": 3, "Z": 4, "C": 2, "Y": 5, "X": 6}


@pytest.mark.parametrize("kind", ["ome", "imagej", "tiff"])
@pytest.mark.parametrize(
    ("order", "axis"),
    [("TZC", "C"), ("ZCT", "C"), ("CZT", "C"), ("ZT", "Z"), ("ZT", "T"), ("TZ", "T"), ("TZ", "Z"), ("T", "T")],
)
@pytest.mark.parametrize("count", [1, 3])
def test_the_other_axes_stay_in_their_order(kind, order, axis, count):
    old = StackMetadata(order + "YX", tuple(SIZES[a] for a in order + "YX"), np.dtype(np.uint8), kind, **OLD)
    names = tuple("ABC"[:count])
    found = with_new_channels(old, axis, count, names, np.dtype(np.float32))
    others = [other for other in order if other != axis]
    if kind == "imagej":
        others = [other for other in "TZ" if other in others]
    assert found.axes == "".join(others) + ("C" if count > 1 else "") + "YX"
    assert found.shape == tuple({**SIZES, "C": count}[a] for a in found.axes)
    assert (found.dtype, found.channel_names, found.kind) == (np.dtype(np.float32), names, kind)
    assert (found.pixel_size, found.unit) == ((0.1, 0.2), "µm")
    assert (found.time_increment, found.time_unit) == ((None, None) if axis == "T" else (2.0, "s"))
    assert (found.z_step, found.z_unit) == ((None, None) if axis == "Z" else (0.5, "nm"))


def test_the_cpu_goes_on_by_the_files_that_the_run_began_with(tmp_path):
    write_movie(tmp_path / "in" / "movie.tif")
    mask = write_movie(tmp_path / "mask.tif", drift=[(0, 0)])
    work = plan_stacks(Align, [tmp_path / "in"], tmp_path / "out", AlignOptions(mask=mask, device="cpu"))
    assert work.checksums["mask_file"]
    mask.write_bytes(b"")
    assert work.on_cpu("lost").checksums == work.checksums
