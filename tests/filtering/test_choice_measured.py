"""The choice of filters, banks and mixing kernels held to times that were measured on one H200.

`benchmarks/results/auto_fit.json` has, for 60 random problems of each domain, the microseconds of a call among many and
of the device alone, of every candidate that was timed. In the calls of that version taps were packed, and matrices and
banks brought to the device, every time; now that is done once. So what a call takes now is not in the record. Where
nothing has changed (the library's products and transforms, passes of CuPy, one filter after the other), the recorded
call counts. Elsewhere the recorded time on the device does, less what the copy of a matrix or bank took of it, or the
host's time that the choice expects, whichever is longer. The copies' times are estimates, from the smallest problems of
the same record, whose kernels take two microseconds: so this is a check of the rules and terms against the device's
times, and of nothing else as far as the host's are concerned.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from xcorr_app.filtering import array_choice, choice
from xcorr_app.gpu.runtime.limits import KNOWN_DEVICES
from xcorr_app.tuning.domains import domains_named

RECORD = Path(__file__).parents[2] / "benchmarks" / "results" / "auto_fit.json"
UNCHANGED = ("fft", "matmul", "filters", "separable:two_passes")
SHORT = 1024
"""Bytes up to which a copy to the device is part of the launch queue."""


def copied(domain: str, problem: Any, kernel: str) -> float:
    """Microseconds of the device for what calls of the record brought there every time."""
    if domain == "filters" or kernel == "mix":
        return 0.0
    if domain == "mixing":
        short = 4 * problem.channels * problem.filters <= SHORT
        return 11.0 if kernel == "mix_bytes" else 7.5 if short else 14.0
    filters, depth = problem.bank_shape[0], math.prod(problem.bank_shape[1:])
    stored = filters * depth if kernel == "shallow" else (depth + 32) * 4 * math.ceil(filters / 4)
    return 1.8 if 4 * stored <= SHORT else 11.0


def host(domain: str, problem: Any, kernel: str) -> float:
    """Microseconds that the choice expects of the host."""
    if domain == "filters":
        return choice._HOST[choice.ENGINES.get(kernel, kernel)]
    kept, size = (
        (array_choice.LARGEST_KEPT, math.prod(problem.bank_shape))
        if domain == "banks"
        else (array_choice.LARGEST_KEPT_MATRIX, problem.channels * problem.filters)
    )
    return array_choice._HOST if size <= kept else array_choice._HOST_OF_MATRIX


def expected_now(domain: str, problem: Any, name: str, call: float, device: float) -> float:
    """Microseconds of a call among many."""
    if name in UNCHANGED:
        return call
    kernel = name.partition(":")[2]
    return max(device - copied(domain, problem, kernel), host(domain, problem, kernel))


def ratios(domain_name: str) -> list[tuple[float, str]]:
    """Time of the choice over the best one's, and the problem; where it was timed."""
    record = json.loads(RECORD.read_text())
    rows = {row["problem"]: row["times"] for row in record["problems"] if row["domain"] == domain_name}
    (domain,) = domains_named([domain_name], KNOWN_DEVICES["h200"])
    found = []
    for problem in domain.problems(np.random.default_rng(record["seed"]), len(rows)):
        times = rows[str(problem)]
        now = {name: expected_now(domain_name, problem, name, *both) for name, both in times.items()}
        chosen = domain.decision(problem).name
        if chosen in now:
            found.append((now[chosen] / min(now.values()), f"{problem}: {chosen} of {now}"))
    assert len(found) >= 0.95 * len(rows)
    return found


@pytest.mark.parametrize("domain", ["filters", "banks", "mixing"])
def test_the_choice_is_rarely_behind_and_never_far(domain: str) -> None:
    found = ratios(domain)
    behind = sorted((row for row in found if row[0] > 1.1), reverse=True)
    assert len(behind) <= 0.05 * len(found), behind
    assert not behind or behind[0][0] <= 1.3, behind
