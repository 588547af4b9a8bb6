"""What a user may ask of the correlation kernels: a variant and its tunables, checked before anything is compiled."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.correlation_launch import VARIANTS

__all__ = ["DISTRIBUTIONS", "TUNABLES", "KernelOptions"]

DISTRIBUTIONS = ("none", "rectangle", "triangle")
"""How the rows of a shift are split among workers, in the order of the kernel's ``DISTRIBUTION`` macro."""

_DISTRIBUTED = "warp-shuffle-distributed"

TUNABLES: dict[str, tuple[str, dict[str, int]]] = {
    "rows_per_worker": ("MAX_ROWS", {_DISTRIBUTED: 65536}),
    "rights": ("RIGHTS", {"multi-right": 8, "multi-left-right": 4}),
    "lefts": ("LEFTS", {"multi-left-right": 4}),
    "shifts": ("SHIFTS", {"multi-row": 8}),
    "left_rows": ("LEFT_ROWS", {"multi-row": 8}),
}
"""Option -> its macro, and the largest value by variant. Every combination up to these stays in registers."""


@dataclass(frozen=True)
class KernelOptions:
    """Choice and tuning of the CUDA kernels behind engine ``warp-shuffle``; None is the measured table's value.

    All variants give the same sums up to rounding, and the same bits in every run but one:
    ``warp-shuffle-distributed`` adds the sums of several workers in any order, unless `distribution` is ``"none"``.
    Then one worker computes a shift alone and every run gives the same bits. ``variant="auto"`` never takes it.

    Parameters
    ----------
    variant : str
        ``"auto"`` (the fastest by measurement) or a name in `xcorr_app.gpu.correlation_launch.VARIANTS`.
    distribution : {"none", "rectangle", "triangle"}, optional
        How rows are split among workers (``warp-shuffle-distributed``).
    rows_per_worker : int, optional
        Most rows a worker sums, 1 to 65536 (``warp-shuffle-distributed``).
    rights : int, optional
        Right matrices a thread works on, 1 to 8 (``multi-right``) or 1 to 4 (``multi-left-right``).
    lefts : int, optional
        Left matrices a thread works on, 1 to 4 (``multi-left-right``).
    shifts : int, optional
        Consecutive row shifts a thread works on, 1 to 8 (``multi-row``).
    left_rows : int, optional
        Left rows a thread holds at a time, 1 to 8 (``multi-row``).

    Raises
    ------
    ArgumentError
        For an unknown name, a value out of range, or an option that the variant does not have.

    Examples
    --------
    >>> KernelOptions("multi-row", shifts=4).tuning()
    {'SHIFTS': 4}
    """

    variant: str = "auto"
    distribution: str | None = None
    rows_per_worker: int | None = None
    rights: int | None = None
    lefts: int | None = None
    shifts: int | None = None
    left_rows: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.variant, str) or (self.variant != "auto" and self.variant not in VARIANTS):
            raise ArgumentError(f"unknown kernel variant {self.variant!r}: use auto or one of {', '.join(VARIANTS)}")
        if self.distribution is not None:
            self._check_owner("distribution", (_DISTRIBUTED,))
            if not isinstance(self.distribution, str) or self.distribution not in DISTRIBUTIONS:
                raise ArgumentError(f"unknown distribution {self.distribution!r}: use {', '.join(DISTRIBUTIONS)}")
            if self.distribution == "none" and self.rows_per_worker is not None:
                raise ArgumentError("distribution 'none' gives a worker all rows of a shift: leave out rows_per_worker")
        for name, (_, largest) in TUNABLES.items():
            value = getattr(self, name)
            if value is not None:
                self._check_owner(name, tuple(largest))
                _check_count(name, value, largest[self.variant], self.variant)

    def _check_owner(self, name: str, owners: tuple[str, ...]) -> None:
        if self.variant not in owners:
            raise ArgumentError(
                f"{name} belongs to kernel variant {' and '.join(owners)}, not to {self.variant!r}: ask for it too"
            )

    @property
    def asks_nothing(self) -> bool:
        """Whether everything is left to the table of measurements."""
        return all(getattr(self, option.name) == option.default for option in fields(self))

    def tuning(self) -> dict[str, int]:
        """Macro values that replace the table's, for `xcorr_app.gpu.correlation_launch.launch_of`."""
        values = {
            macro: int(getattr(self, name)) for name, (macro, _) in TUNABLES.items() if getattr(self, name) is not None
        }
        if self.distribution is not None:
            values["DISTRIBUTION"] = DISTRIBUTIONS.index(self.distribution)
        return values


def _check_count(name: str, value: object, largest: int, variant: str) -> None:
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or not 1 <= value <= largest:  # type: ignore[operator]  # `whole` says that it is a number
        raise ArgumentError(f"{name} is {value!r}: {variant} takes 1 to {largest}")
