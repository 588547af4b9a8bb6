"""Seconds of stages, from threads that work together and a run that waits for them."""

import time

from xcorr_app.pipeline.stages import Stages


def by_name(stages):
    return {stage.name: stage for stage in stages.times()}


def test_threads_that_are_in_a_stage_together_count_once():
    stages = Stages()
    for begin, end in ((1.0, 2.0), (1.5, 2.5), (5.0, 6.0), (0.0, 7.0), (8.0, 8.5)):
        stages.meter("read", begin, end, 10**9)
    read = by_name(stages)["read"]
    assert read.busy == 7.5
    assert read.size == 5 * 10**9
    assert round(read.rate, 3) == round(5 / 7.5, 3)


def test_a_step_does_not_count_what_it_waited_for_and_the_longest_sets_the_pace():
    stages = Stages()
    with stages.step("measure"):
        time.sleep(0.05)
        with stages.waiting("write"):
            time.sleep(0.3)
    known = by_name(stages)
    assert 0.04 < known["measure"].busy < 0.25
    assert known["write"].waited > 0.29
    assert stages.pace() == "write"
    stages.meter("read", 0.0, 100.0, 1)  # beside the run, which did not wait for it
    assert stages.pace() == "write"


def test_nothing_sets_the_pace_of_nothing():
    assert Stages().pace() is None
