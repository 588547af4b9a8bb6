"""What ``xcorr tune`` does: candidates of random problems timed until the time is up, and what follows from them."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from xcorr_app.gpu.runtime.launch import Launch
from xcorr_app.gpu.runtime.tuned import Row
from xcorr_app.tuning.domain import Domain
from xcorr_app.tuning.measure import Outcome, compile_ahead, measured

__all__ = ["SEED", "Tuning", "tune"]

SEED = 1
_OF_FIRST_ROUND, _OF_A_ROUND = 10, 20
"""Problems of a domain between two times at which kernels are compiled, side by side; processes take time to start."""

Measure = Callable[[Domain, Any], Outcome]
_MEASURE: Measure = functools.partial(measured, only_expected=True)


class Tuning:
    """What has been measured: rows for a table, and how good the choices were beforehand."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.outcomes: list[Outcome] = []

    def add(self, outcome: Outcome, coordinates: tuple[float, ...]) -> None:
        """Take in a problem: how far off the expected time of each of its candidates was."""
        self.outcomes.append(outcome)
        for name, microseconds in outcome.microseconds.items():
            expected = outcome.expected.get(name)
            if expected:
                self.rows.append(Row(outcome.domain, name, coordinates, expected, math.log(microseconds / expected)))


def tune(
    domains: Sequence[Domain],
    seconds: float,
    *,
    seed: int = SEED,
    measure: Measure = _MEASURE,
    compile_kernels: Callable[[Iterable[Launch]], int] = compile_ahead,
    clock: Callable[[], float] = time.monotonic,
    tell: Callable[[str], None] = lambda _: None,
) -> Tuning:
    """Time the candidates of random problems of all domains by turns, on the current device.

    Parameters
    ----------
    domains : sequence of Domain
        Made for the device's limits without a table, so that what is expected is what the models say.
    seconds : float
        After which no further problem is begun; compiling counts.
    seed : int, optional
        Of the problems.
    measure, compile_kernels, clock : callable, optional
        Times the candidates of a problem, compiles kernels beforehand, and reads the time.
    tell : callable, optional
        Is told how far it has come, and which problems could not be measured.

    Returns
    -------
    Tuning
        Of the problems that were measured.
    """
    began, rng, found = clock(), np.random.default_rng(seed), Tuning()
    until = began + seconds
    while clock() < until:
        count = _of_next_round(clock() - began, until - clock(), len(found.outcomes), len(domains))
        problems = [(domain, domain.problems(rng, count)) for domain in domains]
        if not any(of_domain for _, of_domain in problems):
            break
        kernels = compile_kernels(
            launch for domain, of_domain in problems for each in of_domain for launch in domain.launches(each)
        )
        tell(f"{kernels} kernels compiled")
        for domain, problem in _by_turns(problems):
            if clock() >= until:
                break
            try:
                found.add(measure(domain, problem), domain.decision(problem).coordinates)
            except Exception as failure:  # noqa: BLE001 - such as memory that runs out: the others still count
                tell(f"{domain.name}, {problem}: {type(failure).__name__}: {failure}")
        tell(f"{len(found.outcomes)} problems measured")
    return found


def _of_next_round(spent: float, left: float, measured: int, domains: int) -> int:
    """Problems of a domain for which the time that is left will do, as far as those before tell: no kernel for none."""
    if not measured or not spent:
        return _OF_FIRST_ROUND
    return max(1, min(_OF_A_ROUND, math.ceil(left * measured / spent / domains)))


def _by_turns(problems: Sequence[tuple[Domain, Sequence[Any]]]) -> Iterator[tuple[Domain, Any]]:
    """Yield the first problem of each domain, then the second of each, and so on."""
    for i in range(max(len(of_domain) for _, of_domain in problems)):
        yield from ((domain, of_domain[i]) for domain, of_domain in problems if i < len(of_domain))
