"""The table's way of correcting, held to times that were measured: most good choices become more.

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

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
RECORD = json.loads((RESULTS / "auto.json").read_text())
H100, H200 = KNOWN_DEVICES["h100"], KNOWN_DEVICES["h200"]
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
                missed = math.log(time / expected[candidate])
                yield Row(name, candidate, decision.coordinates, expected[candidate], missed)


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
    assert np.mean(table <= 1.1) >= 0.95
    assert table.mean() < models.mean()


@pytest.mark.parametrize("name", DOMAINS)
def test_no_domain_becomes_much_worse(ratios, name):
    models, table = ratios[name]
    assert np.mean(table <= 1.1) >= np.mean(models <= 1.1) - 0.04
    # Means of filters are 1.2 % and of planes .6 % further behind the best than by the models; the others are nearer.
    assert table.mean() < models.mean() + 0.015


@pytest.mark.parametrize(
    ("record", "bad"), [("auto_h100_tuned", 5), ("auto_h100_tuned_other", 1), ("auto_h100_later", 4)]
)
def test_what_tune_measured_on_an_h100_decides_what_was_timed_there(record, bad):
    """158 problems of one run, and other random problems that were timed after it, there and later."""
    stored = json.loads((RESULTS / "auto_h100_table.json").read_text())
    table = TunedTable(stored["about"], [Row(d, name, tuple(at), *times) for d, name, at, *times in stored["rows"]])
    timed = json.loads((RESULTS / f"{record}.json").read_text())
    ratios = {"models": [], "table": []}
    for name in DOMAINS:
        times = {row["problem"]: row["microseconds"] for row in timed["outcomes"] if row["domain"] == name}
        for how, limits in (("models", H100), ("table", replace(H100, tuned=table))):
            (domain,) = domains_named((name,), limits)
            problems = domain.problems(np.random.default_rng(timed["seed"]), len(times))
            ratios[how] += behind(domain, [(problem, times[str(problem)]) for problem in problems])
    models, tuned = (np.array(ratios[how]) for how in ("models", "table"))
    assert len(tuned) == len(models) == len(timed["outcomes"])
    assert np.sum(tuned > 1.1) <= bad < np.sum(models > 1.1)
    assert np.log(tuned).mean() < np.log(models).mean()
