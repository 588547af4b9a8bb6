"""Times of a case of the correlation benchmark."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.harness.ranking import Ranked

__all__ = ["CaseResult", "Timing", "as_dict"]


@dataclass(frozen=True)
class Timing:
    """Result of one contender on one case.

    Attributes
    ----------
    case, what : str
        Names of the case and the contender.
    microseconds_a_pair : float
        Median time over the number of pairs; NaN where `failure` says why there is none.
    fraction_of_fma_rate : float
        Multiply-adds of the direct method over time and the device's rate.
    fraction_of_floor : float
        The case's floor over the time.
    own : bool
        Whether it belongs to the product.
    choice : str
        Under which name the product's choice of engine knows it.
    how : str
        ``"replay"``, ``"events"`` or ``"call"``.
    error : float
        Largest error against float64 on the host.
    note, failure : str
        What set the fastest attempt apart; why there is no time.
    registers, local_bytes : int
        Of a thread of a kernel.
    """

    case: str
    what: str
    microseconds_a_pair: float = float("nan")
    fraction_of_fma_rate: float = float("nan")
    fraction_of_floor: float = float("nan")
    own: bool = False
    choice: str = ""
    how: str = ""
    error: float = float("nan")
    note: str = ""
    failure: str = ""
    registers: int = 0
    local_bytes: int = 0

    @property
    def microseconds(self) -> float:
        """What timings of a case are ranked by."""
        return self.microseconds_a_pair


@dataclass(frozen=True)
class CaseResult(Ranked[Timing]):
    """All times of one case.

    Attributes
    ----------
    name, goal : str
        Of the case.
    pairs : int
        In its batch.
    fma, products, moved_bytes : float
        Its arithmetic and traffic.
    floor_microseconds_a_pair : float
        At the rates of this run.
    timings : tuple of Timing
        One a contender.
    auto : str
        The choice that engine ``auto`` makes.
    """

    name: str
    goal: str
    pairs: int
    fma: float
    products: float
    moved_bytes: float
    floor_microseconds_a_pair: float
    timings: tuple[Timing, ...]
    auto: str


def as_dict(result: CaseResult) -> dict[str, Any]:
    """Turn a result into what JSON can hold; its timings are kept elsewhere.

    Parameters
    ----------
    result : CaseResult
        Any.

    Returns
    -------
    dict
        Its fields and conclusions.
    """
    fields = asdict(result)
    del fields["timings"]
    return fields | {
        "winner": result.winner.what if result.winner else None,
        "best_own": result.best_own.what if result.best_own else None,
        "best_peer": result.best_peer.what if result.best_peer else None,
        "auto_behind_percent": result.auto_behind_percent,
        "speed_over_peer": result.speed_over_peer,
    }
