"""What a domain (correlation, filtering, mixing ...) tells so that its choice can be held to measurements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from xcorr_app.decision import Decision
from xcorr_app.gpu.runtime.launch import Launch

__all__ = ["Domain", "Run"]

Run = Callable[[], Any]
"""Starts the work in CuPy's current stream, on arrays that lie on the device; what it returns is dropped."""


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
