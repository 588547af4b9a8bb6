"""How much time a benchmark spends on each contender."""

from __future__ import annotations

from dataclasses import dataclass, field

from benchmarks.harness.clock import Clock

__all__ = ["QUICK", "THOROUGH", "Effort"]


@dataclass(frozen=True)
class Effort:
    """How much time is spent on a contender.

    Attributes
    ----------
    clock : Clock
        How thoroughly times are taken.
    quick : bool
        Only the variants that may be the fastest.
    attempts : int
        Most attempts of one contender.
    """

    clock: Clock = field(default_factory=Clock)
    quick: bool = False
    attempts: int = 100


THOROUGH = Effort()
QUICK = Effort(Clock(repeats=3, min_seconds=0.004, calls=60), quick=True, attempts=6)
