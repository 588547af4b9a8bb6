"""What is to be reached in a case, and whether it was."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from benchmarks.work.records import WorkResult

__all__ = ["Goal", "Measure"]

Measure = Literal["floor multiple", "floor fraction", "rate fraction", "peer speed", "peer memory"]
"""``floor multiple``: time over floor; ``floor fraction``: floor over time; ``rate fraction``: multiply-adds a second
over what the device can do; ``peer speed``: time of the best peer over the product's; ``peer memory``: memory of the
product over that of the best peer."""

_TEXT = {
    "floor multiple": "at most {} x floor",
    "floor fraction": "at least {} of floor",
    "rate fraction": "at least {} of F",
    "peer speed": "{} x the best peer's speed",
    "peer memory": "at most {} x the best peer's memory",
}
_AT_MOST = ("floor multiple", "peer memory")


@dataclass(frozen=True)
class Goal:
    """A bound on a measure of the product's best.

    Attributes
    ----------
    measure : str
        One of `Measure`.
    bound : float
        Largest, or for speeds and fractions smallest, value that reaches the goal.
    """

    measure: Measure
    bound: float

    @property
    def text(self) -> str:
        """The goal in words."""
        return _TEXT[self.measure].format(f"{self.bound:g}")

    def value(self, result: WorkResult) -> float | None:
        """Return what was measured; None where something needed for it is missing."""
        own, peer = result.best_own, result.best_peer
        if own is None:
            return None
        match self.measure:
            case "floor multiple":
                return own.multiple_of_floor
            case "floor fraction":
                return 1 / own.multiple_of_floor
            case "rate fraction":
                return own.fraction_of_fma_rate
            case "peer speed":
                return result.speed_over_peer
            case "peer memory":
                return own.memory_bytes / peer.memory_bytes if peer is not None and peer.memory_bytes else None

    def reached(self, result: WorkResult) -> bool | None:
        """Say whether the measure keeps the bound; None where it is missing."""
        value = self.value(result)
        if value is None:
            return None
        return value <= self.bound if self.measure in _AT_MOST else value >= self.bound
