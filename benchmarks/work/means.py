"""Geometric means of floor / time over the cases of a group."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from benchmarks.work.records import WorkResult, WorkTiming

__all__ = ["BEST_OWN", "BEST_PEER", "Mean", "group_means"]

BEST_OWN, BEST_PEER = "product's best of each", "best peer of each"


@dataclass(frozen=True)
class Mean:
    """How near one contender comes to the floor over a group of cases.

    Attributes
    ----------
    group, what : str
        Names of the group and the contender.
    floor_over_time : float
        Geometric mean; NaN where the contender failed in every case.
    cases, of : int
        Cases that count, and cases of the group.
    goal : float or None
        What the product is to reach; None for all others.
    """

    group: str
    what: str
    floor_over_time: float
    cases: int
    of: int
    goal: float | None = None

    @property
    def reached(self) -> bool | None:
        """Whether the goal is reached; None where there is none."""
        return None if self.goal is None else self.floor_over_time >= self.goal


def group_means(results: Sequence[WorkResult], goals: Mapping[str, float | None]) -> list[Mean]:
    """Summarise groups."""
    means = []
    for group, goal in goals.items():
        members = [result for result in results if result.group == group]
        if not members:
            continue
        contenders = {timing.what: timing.own for result in members for timing in result.timings}
        of_each = [_mean(group, what, [_timing_of(result, what) for result in members]) for what in contenders]
        of_peers = [mean.floor_over_time for mean in of_each if not contenders[mean.what] and mean.cases == mean.of]
        bound = goal if goal is not None else max(of_peers, default=None)
        best_own = _mean(group, BEST_OWN, [result.best_own for result in members])
        best_peer = _mean(group, BEST_PEER, [result.best_peer for result in members])
        means += [replace(best_own, goal=bound), best_peer, *of_each]
    return means


def _mean(group: str, what: str, timings: Sequence[WorkTiming | None]) -> Mean:
    fractions = [1 / timing.multiple_of_floor for timing in timings if timing is not None]
    return Mean(group, what, _geometric_mean(fractions), len(fractions), len(timings))


def _timing_of(result: WorkResult, what: str) -> WorkTiming | None:
    return next((timing for timing in result.timings if timing.what == what and not timing.failure), None)


def _geometric_mean(values: Iterable[float]) -> float:
    logarithms = [math.log(value) for value in values]
    return math.exp(math.fsum(logarithms) / len(logarithms)) if logarithms else math.nan
