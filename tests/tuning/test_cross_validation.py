"""The table's way of correcting, held to times that were measured on one H200: most good choices become more.

`benchmarks/results/auto.json` has the microseconds of every candidate of 60 random problems of each domain. A table of
four fifths of them decides the others.
"""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from xcorr_app.gpu.runtime.limits import KNOWN_DEVICES
from xcorr_app.gpu.runtime.tuned import Row, TunedTable
from xcorr_app.tuning.domains import DOMAINS, domains_named

RECORD = json.loads((Path(__file__).parents[2] / "benchmarks" / "results" / "auto.json").read_text())
H200 = KNOWN_DEVICES["h200"]
FOLDS, SPLITS = 5, 3


def measured(name):
    (domain,) = domains_named((name,), H200)
    times = {row["problem"]: row["microseconds"] for row in RECORD["outcomes"] if row["domain"] == name}
    problems = domain.problems(np.random.default_rng(RECORD["seed"]), len(times))
    return domain, [(problem, times[str(problem)]) for problem in problems if str(problem) in times]


def rows_of(name, domain, measurements):
    for problem, times in measurements:
        decision = domain.decision(problem)
        expected = {each.name: each.microseconds for each in decision.candidates}
        for candidate, time in times.items():
            if expected.get(candidate):
                missed, is_chosen = math.log(time / expected[candidate]), candidate == decision.name
                yield Row(name, candidate, decision.coordinates, expected[candidate], missed, is_chosen)


def behind(domain, measurements):
    """How many times the best candidate's time each choice takes that was timed."""
    chosen = [(domain.decision(problem).name, times) for problem, times in measurements]
    return [times[name] / min(times.values()) for name, times in chosen if name in times]


@pytest.fixture(scope="module")
def ratios():
    found = {}
    for name in DOMAINS:
        domain, measurements = measured(name)
        assert len(measurements) >= 50
        by_table = []
        for split in range(SPLITS):
            order = np.random.default_rng(split).permutation(len(measurements))
            for fold in range(FOLDS):
                known = [measurements[i] for i in np.setdiff1d(order, order[fold::FOLDS])]
                table = TunedTable({}, list(rows_of(name, domain, known)))
                (tuned,) = domains_named((name,), replace(H200, tuned=table))
                by_table += behind(tuned, [measurements[i] for i in order[fold::FOLDS]])
        found[name] = (np.array(behind(domain, measurements)), np.array(by_table))
    return found


def test_more_choices_are_good_than_by_the_models(ratios):
    models, table = (np.concatenate([both[i] for both in ratios.values()]) for i in range(2))
    assert np.mean(table <= 1.1) > np.mean(models <= 1.1)
    assert np.mean(table <= 1.1) >= 0.94
    assert table.mean() < models.mean()


@pytest.mark.parametrize("name", DOMAINS)
def test_no_domain_becomes_worse(ratios, name):
    models, table = ratios[name]
    assert np.mean(table <= 1.1) >= np.mean(models <= 1.1) - 0.04
    assert table.mean() < models.mean() + 0.005
