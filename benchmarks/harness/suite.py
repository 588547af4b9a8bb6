"""A suite: its cases, who takes part in them, how data are made and answers checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from benchmarks.harness.case import Work
from benchmarks.harness.clock import Clock
from benchmarks.harness.contender import Contender
from benchmarks.harness.fastest import Expectation, Outcome, fastest_of


@dataclass(frozen=True)
class Suite:
    """What one command of ``python -m benchmarks`` runs.

    Attributes
    ----------
    name : str
        Of the command.
    about : str
        Its help.
    cases : tuple of Work
        In the order in which they are run.
    data : callable
        Makes the arrays of a case with a library, numpy or cupy; takes the case, the library and how many copies.
    expected : callable
        Takes a case and its data and returns what the answer should be.
    contenders : callable
        Yields the product's own contenders for a case, and CuPy's.
    of_torch : callable
        Yields PyTorch's contenders for a case.
    clock : Clock
        How thoroughly times are taken in a run that is not quick.
    quick : Clock
        In one that is.
    measures_memory : bool
        Whether device memory is of interest.
    auto : callable
        Returns under which of the contenders' choices the product would do a case by itself.
    """

    name: str
    about: str
    cases: tuple[Any, ...]
    data: Callable[[Any, Any, int], Any]
    expected: Callable[[Any, Any], Expectation]
    contenders: Callable[[Any], Iterator[Contender]]
    of_torch: Callable[[Any], Iterator[Contender]] = lambda _case: iter(())
    clock: Clock = field(default_factory=lambda: Clock(repeats=7, min_seconds=0.01))
    quick: Clock = field(default_factory=lambda: Clock(repeats=3, min_seconds=0.004, attempts=6))
    measures_memory: bool = False
    auto: Callable[[Any], str] = lambda _case: "auto"

    def cases_named(self, text: str, *, quick: bool) -> list[Work]:
        """Return the cases whose name contains a text; of a quick run those that matter most, if there are any."""
        named = [case for case in self.cases if text in case.name]
        return [case for case in named if case.in_quick] or named if quick else named

    def outcomes(self, case: Any, contenders: Iterable[Contender], xp: Any, clock: Clock) -> list[Outcome]:
        """Make the data of a case, then check and time some contenders on it."""
        data = self.data(case, xp, case.copies)
        expected, memory = self.expected(case, data), self.measures_memory
        return [fastest_of(each, case, data, expected, clock, with_memory=memory) for each in contenders]
