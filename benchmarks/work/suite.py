"""A suite: its cases, who takes part in them, how data are made and answers checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks.harness.clock import Clock
from benchmarks.harness.contender import Contender
from benchmarks.harness.effort import Effort
from benchmarks.harness.fastest import Expectation, Outcome, fastest_of
from benchmarks.work.case import Work

__all__ = ["Suite", "outcomes_of"]


@dataclass(frozen=True)
class Suite:
    """What one command of ``python -m benchmarks`` runs.

    Attributes
    ----------
    name : str
        Of the command.
    cases : tuple of Work
        In the order in which they are run.
    data : callable
        Makes the arrays of a case with a library, numpy or cupy; takes the case, the library and how many copies.
    expected : callable
        Takes a case and its data and returns what the answer should be.
    contenders : callable
        Yields the product's own contenders for a case, and CuPy's.
    of_torch : callable
        Yields PyTorch's contenders for a case; takes the case and whether cuDNN searches for its fastest algorithm:
        without the search, only those that it matters to. They run in a process of their own.
    clock : Clock
        How thoroughly times are taken in a run that is not quick.
    measures_memory : bool
        Whether device memory is of interest.
    mean_goals : mapping
        Groups over whose cases geometric means are taken, and what the product is to reach in each; None for what the
        best peer reaches.
    """

    name: str
    cases: tuple[Any, ...]
    data: Callable[[Any, Any, int], Any]
    expected: Callable[[Any, Any], Expectation]
    contenders: Callable[[Any], Iterator[Contender]]
    of_torch: Callable[[Any, bool], Iterator[Contender]]
    clock: Clock = field(default_factory=lambda: Clock(repeats=7, min_seconds=0.01))
    measures_memory: bool = False
    mean_goals: Mapping[str, float | None] = field(default_factory=dict)

    def cases_named(self, text: str, *, quick: bool) -> list[Work]:
        """Return the cases whose name contains a text."""
        named = [case for case in self.cases if text in case.name]
        return [case for case in named if case.in_quick] or named if quick else named


def outcomes_of(suite: Suite, case: Any, contenders: Iterable[Contender], xp: Any, effort: Effort) -> list[Outcome]:
    """Make the data of a case, then check and time some contenders on it."""
    data = suite.data(case, xp, case.copies)
    expected = suite.expected(case, data)
    with_memory = suite.measures_memory
    return [fastest_of(each, case, data, expected, effort, with_memory=with_memory) for each in contenders]
