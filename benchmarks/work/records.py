"""Times of a case of work on arrays, and what follows from them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.harness.device_rates import DeviceRates
from benchmarks.harness.fastest import Outcome
from benchmarks.harness.ranking import Ranked
from benchmarks.work.case import Work
from benchmarks.work.goals import Goal

__all__ = ["WorkResult", "WorkTiming"]


@dataclass(frozen=True)
class WorkTiming:
    """Result of one contender on one case.

    Attributes
    ----------
    case, what : str
        Names of the case and the contender.
    microseconds : float
        Median time; NaN where `failure` says why there is none.
    multiple_of_floor : float
        Time over the case's floor.
    fraction_of_fma_rate : float
        Multiply-adds of the direct method over time and the device's rate.
    own : bool
        Whether it belongs to the product.
    choice : str
        Under which name the product's own choice knows it.
    how : str
        ``"replay"``, ``"events"`` or ``"call"``.
    error : float
        Largest error against float64 on the host.
    note, failure : str
        What set the fastest attempt apart; why there is no time.
    registers, local_bytes : int
        Of a thread of a kernel.
    memory_bytes : int
        Device memory of a call, its result included; 0 where it was not measured.
    best_microseconds : float
        The fastest of the readings whose median is `microseconds`.
    """

    case: str
    what: str
    microseconds: float = float("nan")
    multiple_of_floor: float = float("nan")
    fraction_of_fma_rate: float = float("nan")
    own: bool = False
    choice: str = ""
    how: str = ""
    error: float = float("nan")
    note: str = ""
    failure: str = ""
    registers: int = 0
    local_bytes: int = 0
    memory_bytes: int = 0
    best_microseconds: float = float("nan")

    @classmethod
    def of(cls, outcome: Outcome, case: Work, rates: DeviceRates) -> WorkTiming:
        """Relate an outcome to what the case takes at least."""
        fields = asdict(outcome)
        seconds, best = fields.pop("seconds"), fields.pop("best_seconds")
        return cls(
            case=case.name,
            microseconds=seconds * 1e6,
            best_microseconds=best * 1e6,
            multiple_of_floor=seconds / case.floor_seconds(rates),
            fraction_of_fma_rate=case.fma / seconds / rates.fma,
            **fields,
        )


@dataclass(frozen=True)
class WorkResult(Ranked[WorkTiming]):
    """All times of one case.

    Attributes
    ----------
    name, group : str
        Of the case.
    goals : tuple of Goal
        Of the case.
    fma, moved_bytes : float
        Its arithmetic and traffic.
    floor_microseconds : float
        At the rates of this run.
    timings : tuple of WorkTiming
        One a contender.
    auto : str
        The choice that the product makes by itself.
    """

    name: str
    group: str
    goals: tuple[Goal, ...]
    fma: float
    moved_bytes: float
    floor_microseconds: float
    timings: tuple[WorkTiming, ...]
    auto: str = "auto"

    def as_dict(self) -> dict[str, Any]:
        """Turn into what JSON can hold; the timings are kept elsewhere."""
        fields = asdict(self)
        del fields["timings"]
        goals = [{"goal": goal.text, "value": goal.value(self), "reached": goal.reached(self)} for goal in self.goals]
        return fields | {
            "goals": goals,
            "winner": self.winner.what if self.winner else None,
            "best_own": self.best_own.what if self.best_own else None,
            "best_peer": self.best_peer.what if self.best_peer else None,
            "auto_behind_percent": self.auto_behind_percent,
            "speed_over_peer": self.speed_over_peer,
        }
