"""One stack is moved while the next is measured: apart from each other, in bounded memory, with the same results."""

import threading
import time

import pytest

from tests.batch.movies import align, record, write_movie
from tests.batch.test_killed import content
from xcorr_app.batch.align import stack as of_stack
from xcorr_app.errors import InputError
from xcorr_app.pipeline.stack_steps import Finisher, Stopped
from xcorr_app.registration.stack import passes

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


def test_results_do_not_depend_on_the_number_of_threads_or_on_memory(tmp_path, folder, monkeypatch):
    found = []
    for threads, memory in ((1, "0MB"), (3, "1GB"), (2, "40KB")):
        monkeypatch.setattr(passes, "worker_count", lambda threads=threads: threads)
        out = tmp_path / str(threads)
        assert align(folder, "-o", out, "--memory", memory).code == 0
        found.append({name: data for name, data in content(out).items() if name.endswith((".csv", ".tif", ".html"))})
    assert len(found[0]) == 10
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
