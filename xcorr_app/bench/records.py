"""Times of a case, who wins, and how far the product's own choice is from its best."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

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


@dataclass(frozen=True)
class CaseResult:
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

    @property
    def winner(self) -> Timing | None:
        """The fastest of all; None where nothing could be timed."""
        return _fastest([timing for timing in self.timings if not timing.failure])

    @property
    def best_own(self) -> Timing | None:
        """The fastest of the product's own."""
        return _fastest([timing for timing in self.timings if timing.own and not timing.failure])

    @property
    def best_peer(self) -> Timing | None:
        """The fastest of the others."""
        return _fastest([timing for timing in self.timings if not timing.own and not timing.failure])

    @property
    def of_auto(self) -> Timing | None:
        """What ``auto`` takes; None where that was not timed."""
        return next((timing for timing in self.timings if timing.choice == self.auto and not timing.failure), None)

    @property
    def auto_behind_percent(self) -> float | None:
        """How much longer ``auto`` takes than the product's best engine and variant."""
        if self.of_auto is None or self.best_own is None:
            return None
        return 100 * (self.of_auto.microseconds_a_pair / self.best_own.microseconds_a_pair - 1)

    @property
    def speed_over_peer(self) -> float | None:
        """Time of the best peer over that of the product's best."""
        if self.best_own is None or self.best_peer is None:
            return None
        return self.best_peer.microseconds_a_pair / self.best_own.microseconds_a_pair


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


def _fastest(timings: list[Timing]) -> Timing | None:
    return min(timings, key=lambda timing: timing.microseconds_a_pair, default=None)
