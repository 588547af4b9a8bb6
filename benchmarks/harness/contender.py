"""Who takes part in a case, and how the answer of each is read: the common ground of the product and its peers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

__all__ = ["Attempt", "Clocking", "Contender", "index_at", "plane_at", "to_host"]

Clocking = Literal["cupy", "torch", "cupy call", "torch call"]
"""Whose stream the work runs in, and whether a call is timed by the wall clock."""


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
    remark : callable, optional
        Says, once the fastest attempt is known, what it did: for the note.
    """

    run: Callable[[], Any]
    read: Callable[[Any, Any], Any]
    clocking: Clocking = "cupy"
    note: str = ""
    registers: int = 0
    local_bytes: int = 0
    cycle: int = 1
    remark: Callable[[], str] | None = None


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
    tolerance : float, optional
        Largest error of its right answer, where a precision of its own was asked for; else the case's.
    """

    name: str
    attempts: Callable[[Any, Any], Iterator[Attempt]]
    choice: str = ""
    tolerance: float | None = None

    @property
    def own(self) -> bool:
        """Whether it belongs to the product."""
        return bool(self.choice)


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
