"""Stacks are begun while others are computed, with the same results, and given up where a run ends before that."""

import pytest

from tests.batch.movies import align, write_movie
from tests.batch.test_killed import content
from xcorr_app.batch.align import stack as of_stack
from xcorr_app.batch.align.run import Align
from xcorr_app.errors import InputError
from xcorr_app.io import HeldSource
from xcorr_app.pipeline import stack_steps
from xcorr_app.pipeline.stack_steps import StackSteps

NAMES = ("a", "b", "c", "d", "e")


@pytest.fixture
def folder(tmp_path):
    for number, name in enumerate(NAMES):
        write_movie(tmp_path / "in" / f"{name}.tif", seed=number)
    return tmp_path / "in"


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
