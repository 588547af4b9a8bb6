"""Who wins a case, and how far the product's own choice is from its best."""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

__all__ = ["WHEN_ASKED", "Ranked", "RankedTiming"]

WHEN_ASKED = "when asked"
"""Choice of what the product does only when asked for it, such as planes of another precision."""


class RankedTiming(Protocol):
    """What ranking needs to know of a timing."""

    @property
    def own(self) -> bool:
        """Whether it belongs to the product."""

    @property
    def choice(self) -> str:
        """Under which name the product's own choice knows it."""

    @property
    def failure(self) -> str:
        """Why there is no time."""

    @property
    def microseconds(self) -> float:
        """The time."""


AnyTiming = TypeVar("AnyTiming", bound=RankedTiming)


class Ranked(Generic[AnyTiming]):
    """Conclusions from all timings of a case.

    Attributes
    ----------
    timings : tuple
        One a contender.
    auto : str
        The choice that the product makes by itself.
    """

    timings: tuple[AnyTiming, ...]
    auto: str

    @property
    def winner(self) -> AnyTiming | None:
        """The fastest of all; None where nothing could be timed."""
        return _fastest([timing for timing in self.timings if not timing.failure])

    @property
    def best_own(self) -> AnyTiming | None:
        """The fastest of the product's own."""
        return _fastest([timing for timing in self.timings if timing.own and not timing.failure])

    @property
    def best_peer(self) -> AnyTiming | None:
        """The fastest of the others."""
        return _fastest([timing for timing in self.timings if not timing.own and not timing.failure])

    @property
    def of_auto(self) -> AnyTiming | None:
        """What ``auto`` takes; None where that was not timed."""
        return next((timing for timing in self.timings if timing.choice == self.auto and not timing.failure), None)

    @property
    def auto_behind_percent(self) -> float | None:
        """How much longer ``auto`` takes than the product's best of those that it may take."""
        own = [timing for timing in self.timings if timing.own and not timing.failure]
        best = _fastest([timing for timing in own if timing.choice != WHEN_ASKED])
        if self.of_auto is None or best is None:
            return None
        return 100 * (self.of_auto.microseconds / best.microseconds - 1)

    @property
    def speed_over_peer(self) -> float | None:
        """Time of the best peer over that of the product's best."""
        if self.best_own is None or self.best_peer is None:
            return None
        return self.best_peer.microseconds / self.best_own.microseconds


def _fastest(timings: list[AnyTiming]) -> AnyTiming | None:
    return min(timings, key=lambda timing: timing.microseconds, default=None)
