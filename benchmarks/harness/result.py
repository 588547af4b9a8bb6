"""What became of a case: who wins, and how far the product's own choice is from its best."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.harness.case import Work
from benchmarks.harness.device_rates import DeviceRates
from benchmarks.harness.fastest import Outcome


@dataclass(frozen=True)
class Result:
    """All times of one case.

    Attributes
    ----------
    case : Work
        What was done.
    rates : DeviceRates
        The ceilings of this run.
    outcomes : tuple of Outcome
        One a contender.
    auto : str
        The choice that the product makes by itself.
    """

    case: Work
    rates: DeviceRates
    outcomes: tuple[Outcome, ...]
    auto: str = "auto"

    @property
    def floor(self) -> float:
        """Least seconds of the case."""
        return self.case.floor_seconds(self.rates)

    @property
    def winner(self) -> Outcome | None:
        """The fastest of all; None where nothing could be timed."""
        return _fastest(self.outcomes)

    @property
    def best_own(self) -> Outcome | None:
        """The fastest of the product's own."""
        return _fastest(each for each in self.outcomes if each.own)

    @property
    def best_peer(self) -> Outcome | None:
        """The fastest of the others."""
        return _fastest(each for each in self.outcomes if not each.own)

    @property
    def of_auto(self) -> Outcome | None:
        """What ``auto`` takes; None where that was not timed."""
        return _fastest(each for each in self.outcomes if each.choice == self.auto)

    @property
    def auto_behind_percent(self) -> float | None:
        """How much longer ``auto`` takes than the product's best."""
        best = _fastest(each for each in self.outcomes if each.own)
        if self.of_auto is None or best is None:
            return None
        return 100 * (self.of_auto.seconds / best.seconds - 1)

    @property
    def speed_over_peer(self) -> float | None:
        """Time of the best peer over that of the product's best."""
        if self.best_own is None or self.best_peer is None:
            return None
        return self.best_peer.seconds / self.best_own.seconds

    def microseconds(self, outcome: Outcome) -> float:
        """Time of a contender, of a pair where there are many."""
        return outcome.seconds * 1e6 / self.case.pairs

    def of_fma_rate(self, outcome: Outcome) -> float:
        """Multiply-adds of the direct method over a contender's time and the device's rate."""
        return self.case.fma / outcome.seconds / self.rates.fma

    def as_dict(self) -> dict[str, Any]:
        """Turn into what JSON can hold; the timings are kept beside the cases."""
        fields = ("name", "group", "pairs", "fma", "moved_bytes")
        best = {name: getattr(self, name) for name in ("winner", "best_own", "best_peer")}
        return {
            **{name: getattr(self.case, name) for name in fields},
            "floor_microseconds": self.floor * 1e6,
            "auto": self.auto,
            **{name: outcome.what if outcome else None for name, outcome in best.items()},
            "auto_behind_percent": self.auto_behind_percent,
            "speed_over_peer": self.speed_over_peer,
        }

    def timings(self) -> list[dict[str, Any]]:
        """Turn the outcomes into what JSON can hold, related to what the case takes at least."""
        found = []
        for outcome in self.outcomes:
            fields = asdict(outcome)
            seconds, best = fields.pop("seconds"), fields.pop("best_seconds")
            found.append(
                {
                    "case": self.case.name,
                    "microseconds": seconds * 1e6,
                    "best_microseconds": best * 1e6,
                    "microseconds_a_pair": self.microseconds(outcome),
                    "multiple_of_floor": seconds / self.floor,
                    "fraction_of_fma_rate": self.of_fma_rate(outcome),
                    **fields,
                }
            )
        return found


def _fastest(outcomes: Iterable[Outcome]) -> Outcome | None:
    timed = [outcome for outcome in outcomes if not outcome.failure]
    return min(timed, key=lambda outcome: outcome.seconds, default=None)
