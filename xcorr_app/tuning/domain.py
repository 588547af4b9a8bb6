"""What a domain (correlation, filtering, mixing ...) tells so that its choice can be held to measurements, or tuned."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol, TypeVar

import numpy as np

from xcorr_app.decision import Decision
from xcorr_app.gpu.runtime.launch import Launch

__all__ = ["ANY_SIZE", "Domain", "Run", "Sizes", "drawn"]

Run = Callable[[], Any]
"""Starts the work in CuPy's current stream, on arrays that lie on the device; what it returns is dropped."""


P = TypeVar("P")
_MAX_DRAWS = 1000
"""For one problem: sizes that are asked for may leave no room for any."""


@dataclass(frozen=True)
class Sizes:
    """Rows and columns of frames: those asked for, or any."""

    asked: tuple[tuple[int, int], ...] = ()

    def draw(self, rng: np.random.Generator, anyone: Callable[[], tuple[int, int]]) -> tuple[int, int]:
        """Draw one of the sizes asked for, or where none was, what the domain draws by itself."""
        return self.asked[int(rng.integers(len(self.asked)))] if self.asked else anyone()


ANY_SIZE = Sizes()


def drawn(draw: Callable[[], P | None], count: int) -> list[P]:
    """Draw until so many problems are found; None is one that is too large. Fewer where nearly all are."""

    def found() -> Iterator[P]:
        for _ in range(_MAX_DRAWS * count):
            problem = draw()
            if problem is not None:
                yield problem

    return list(islice(found(), count))


class Domain(Protocol):
    """One kind of work; a problem is any object whose ``str`` names it on one line."""

    name: str

    def problems(self, rng: np.random.Generator, count: int) -> Sequence[Any]:
        """Draw random problems off the grid that the models were fitted on, none above about 2 GB."""
        ...

    def candidates(self, problem: Any) -> Mapping[str, Run]:
        """Everything that could compute the problem, by `Candidate.name`, ready to be timed."""
        ...

    def decision(self, problem: Any) -> Decision:
        """Ask the product what it would run here; its `name` is one of the candidates'."""
        ...

    def launches(self, problem: Any) -> Iterable[Launch]:
        """List the kernels that candidates compile, so that all are compiled beforehand side by side; may be empty."""
        ...
