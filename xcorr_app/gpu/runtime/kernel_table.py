"""What a family says of each of its kernels: the one table over which choice, options, tests and benchmarks iterate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from xcorr_app.gpu.runtime.limits import DeviceLimits

P = TypeVar("P")


@dataclass(frozen=True)
class KernelEntry(Generic[P]):
    """One kernel of a family.

    Attributes
    ----------
    name : str
        By which a user asks for it.
    sources : tuple of str
        Paths of its ``.cu`` files below the kernels' root, without their ending.
    accepts : callable
        ``accepts(problem, limits)``: None, or in words why it does not take the problem on such a device.
    launch : callable
        Problem and options in, `xcorr_app.gpu.runtime.launch.Launch` (or the family's own group of launches) out.
    cost : callable or None
        ``cost(problem, limits)``: expected microseconds; None where it is never chosen by itself.
    tunables : frozenset of str
        Macros that a user may set.
    """

    name: str
    sources: tuple[str, ...]
    accepts: Callable[[P, DeviceLimits], str | None]
    launch: Callable[..., Any]
    cost: Callable[[P, DeviceLimits], float] | None = None
    tunables: frozenset[str] = field(default=frozenset())
