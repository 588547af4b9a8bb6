"""Stacks of which workers have measured parts: to whom these are given, and what is left to read afterwards."""

from types import SimpleNamespace

import pytest

from xcorr_app.cluster import divided_stacks
from xcorr_app.cluster.blocks import Part
from xcorr_app.cluster.task import MOVE, _Known
from xcorr_app.io import Checksums, MemoryBudget
from xcorr_app.pipeline.resources import Resources, StackResources


class _Measuring:
    """Work that says whether it may keep frames."""

    def __init__(self, *, walks_on):
        self.told, self._walks_on = [], walks_on

    def measured_frames(self, spec):
        return 1, 1

    def places_planes(self):
        return False

    def walks_on(self):
        return self._walks_on

    def outputs(self, name):
        return []

    def ahead(self, spec, resources):
        self.told.append(("ahead", resources.is_shared))

    def process(self, spec, resources):
        self.told.append(("process", resources.is_shared))
        return lambda: None


@pytest.mark.parametrize(
    ("stages", "walks_on", "expected"),
    [
        (["measure"], True, [("ahead", False), ("process", False)]),
        (["measure"], False, [("process", True)]),
        (["measure", MOVE], True, [("process", True)]),
    ],
)
def test_frames_that_are_not_needed_any_more_are_not_read_ahead(tmp_path, stages, walks_on, expected):
    work = _Measuring(walks_on=walks_on)
    known = _Known(work, [Part(stage) for stage in stages], tmp_path, tmp_path)
    resources = StackResources(Resources(MemoryBudget(0)), Checksums(()))
    known.ahead(None, resources)
    known.process(None, resources)
    assert work.told == expected


@pytest.mark.parametrize("there", [["a", "b"], ["a", "b", "c"], []])
def test_neighbours_go_to_one_worker_and_without_any_they_wait(there):
    asked = []

    def submit(job, *_, workers=None, allow_other_workers=False, **how):
        if job is divided_stacks.measure_part:
            # As the client: others are allowed beside those that are named.
            assert allow_other_workers == (workers is not None)
            asked.append(workers)
        return SimpleNamespace(result=lambda: Part(None))

    client = SimpleNamespace(submit=submit, nthreads=lambda: dict.fromkeys(there, 1))
    job, spec = SimpleNamespace(run="r"), SimpleNamespace(name="s")
    assert divided_stacks._passes(client, job, spec, 8, "k") is not None
    assert len(asked) == 8
    assert asked == (sorted(asked) if there else [None] * 8)
    assert set(asked) == set(there or [None])
