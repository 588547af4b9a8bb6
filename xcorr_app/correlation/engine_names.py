"""Names of engines, as users write them."""

from __future__ import annotations

from typing import TypeVar

ENGINE_NAMES = ("fft", "direct", "tensor", "definition")
"""Every engine, besides ``"auto"``, which is one of them."""

_FORMER = {"warp-shuffle": "direct"}
"""Names of earlier versions, which are still understood."""

T = TypeVar("T")


def canonical_engine(name: T) -> T | str:
    """Return the name by which an engine goes now; what is no name comes back as it is."""
    return _FORMER.get(name, name) if isinstance(name, str) else name
