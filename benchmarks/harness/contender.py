"""Who takes part in a case, and how the answer of each is read and judged: common to the product and its peers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Clocking = Literal["cupy", "torch"]
"""Whose stream the work runs in."""


@dataclass(frozen=True)
class Attempt:
    """One way of doing the work of a case, ready to be started any number of times.

    Attributes
    ----------
    run : callable
        Starts the work on the case's data and returns the result on the device.
    read : callable
        Takes the result and which part of it to read, as the case's check names it (of a correlation, the number of a
        pair); returns that part on the host: a plane (ny, nx), the flat index of its peak, some of an image.
    clocking : str
        How it is timed.
    note : str
        What sets this attempt apart from the contender's others.
    registers, local_bytes : int
        Of a thread of the kernel, where it is one of the product's own.
    cycle : int
        Calls of `run` after which it begins again with the same copy of the inputs.
    """

    run: Callable[[], Any]
    read: Callable[[Any, Any], Any]
    clocking: Clocking = "cupy"
    note: str = ""
    registers: int = 0
    local_bytes: int = 0
    cycle: int = 1


@dataclass(frozen=True)
class Contender:
    """Something that can do the work of a case, in one or several ways of which the fastest counts.

    Attributes
    ----------
    name : str
        What the tables call it.
    attempts : callable
        Yields its attempts for a case and its data.
    choice : str
        Under which name the product's own choice of engine knows it; empty for a peer.
    """

    name: str
    attempts: Callable[[Any, Any], Iterator[Attempt]]
    choice: str = ""

    @property
    def own(self) -> bool:
        """Whether it belongs to the product."""
        return bool(self.choice)


class Rotation:
    """Does the next of several pieces of work at every call, so that the cache holds none of their arrays.

    The latest result of each is kept, so that each lies in memory of its own, where a library makes new arrays.

    Parameters
    ----------
    works : sequence of callable
        Equal work on equal copies.
    """

    def __init__(self, works: Sequence[Callable[[], Any]]) -> None:
        self._works = works
        self._results: list[Any] = [None] * len(works)
        self._next = 0

    def __call__(self) -> Any:
        """Do the work whose turn it is and return its result."""
        turn = self._next
        self._next = (turn + 1) % len(self._works)
        self._results[turn] = self._works[turn]()
        return self._results[turn]


def rotating(
    works: Sequence[Callable[[], Any]],
    read: Callable[[Any, Any], Any],
    clocking: Clocking = "cupy",
    note: str = "",
) -> Attempt:
    """Make an attempt that goes through copies."""
    return Attempt(Rotation(works), read, clocking, note, cycle=len(works))


def plane_at(result: Any, pair: int) -> Any:
    """Read one plane of a result.

    Parameters
    ----------
    result : array or list of arrays
        (pairs, ny, nx), or chunks of it, of CuPy, PyTorch or NumPy.
    pair : int
        Its number in the whole batch.

    Returns
    -------
    ndarray, shape (ny, nx)
        On the host.
    """
    for chunk in result if isinstance(result, list) else [result]:
        if pair < chunk.shape[0]:
            return to_host(chunk[pair])
        pair -= chunk.shape[0]
    raise IndexError(pair)


def index_at(result: Any, pair: int) -> int:
    """Read one peak's flat index from (pairs,) or a list of chunks of it; as `plane_at`."""
    return int(plane_at(result, pair))


def to_host(array: Any) -> Any:
    """Copy an array of CuPy, PyTorch or NumPy to the host, as NumPy's."""
    if hasattr(array, "get"):
        return array.get()
    return array.cpu().numpy() if hasattr(array, "cpu") else np.asarray(array)


def relative_error(answer: Any, expected: NDArray[np.float64]) -> float:
    """Norm of the difference over that of `expected`; infinite for another shape and for values that are not finite."""
    if answer.shape != expected.shape or not np.isfinite(answer).all():
        return float("inf")
    return float(np.linalg.norm(answer - expected) / np.linalg.norm(expected))
