"""The same work on one copy of the arrays after the other, so that the cache holds none of them when its turn comes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.harness.contender import Attempt, Clocking

__all__ = ["Rotation", "rotating"]


class Rotation:
    """Does the next of several pieces of work at every call, and keeps the latest result of each.

    Results are kept so that each lies in memory of its own, where a library makes new arrays.

    Parameters
    ----------
    works : sequence of callable
        Equal work on equal copies.
    """

    def __init__(self, works: Sequence[Callable[[], Any]]) -> None:
        self._works = works
        self._results: list[Any] = [None] * len(works)
        self._next = 0

    def __call__(self) -> Any:
        """Do the work whose turn it is and return its result."""
        turn = self._next
        self._next = (turn + 1) % len(self._works)
        self._results[turn] = self._works[turn]()
        return self._results[turn]


def rotating(
    works: Sequence[Callable[[], Any]],
    read: Callable[[Any, Any], Any],
    clocking: Clocking = "cupy",
    note: str = "",
    **more: Any,
) -> Attempt:
    """Make an attempt that goes through copies."""
    return Attempt(Rotation(works), read, clocking, note, cycle=len(works), **more)
