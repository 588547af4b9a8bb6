"""Threads that finish stacks: bounded, in any order, abandoned where something goes wrong."""

import threading
import time

import pytest

from xcorr_app.pipeline.stack_steps import Finisher


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
