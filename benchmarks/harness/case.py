"""A case of work on arrays: how much arithmetic and traffic it takes at least."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from benchmarks.harness.device_rates import DeviceRates

CACHE_BYTES = 120e6
"""Bytes that copies of a case's arrays fill together: twice the second-level cache of an H200."""
MAX_COPIES = 512


@dataclass(frozen=True, kw_only=True)
class Work(ABC):
    """One row of a benchmark.

    Attributes
    ----------
    name : str
        What the tables and ``--only`` call it.
    group : str
        Of cases that one thing is varied in; empty for cases of their own.
    in_quick : bool
        Whether a quick run holds it.
    """

    name: str
    group: str = ""
    in_quick: bool = False

    @property
    @abstractmethod
    def fma(self) -> float:
        """Multiply-adds of the direct method."""

    @property
    @abstractmethod
    def moved_bytes(self) -> float:
        """Bytes of the inputs and outputs, each once."""

    @property
    def pairs(self) -> int:
        """By which times are divided where they are printed."""
        return 1

    @property
    def copies(self) -> int:
        """Copies of the arrays to go through in turn, so that none is still in the cache when its turn comes again."""
        if self.moved_bytes >= CACHE_BYTES:
            return 1
        return min(MAX_COPIES, 1 + int(CACHE_BYTES / self.moved_bytes))

    def floor_seconds(self, rates: DeviceRates) -> float:
        """Least time by direct arithmetic, at the rates measured in the same run."""
        return max(self.fma / rates.fma, self.moved_bytes / rates.copy)
