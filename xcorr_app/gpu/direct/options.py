"""What a user may ask of the correlation kernels: a variant and its tunables, or a precision; checked beforehand."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.direct.kernels import KERNELS, LARGEST

__all__ = ["DISTRIBUTIONS", "PRECISIONS", "TUNABLES", "KernelOptions"]

DISTRIBUTIONS = ("none", "rectangle", "triangle")
"""How the rows of a shift are split among workers, in the order of the kernel's ``DISTRIBUTION`` macro."""

PRECISIONS = ("fp16", "fp16x2", "int8")
"""What a value is on tensor cores: fp16, split fp16 (the sum of two), or the byte that it is."""

TUNABLES = {
    "rows_per_worker": "MAX_ROWS",
    "rights": "RIGHTS",
    "lefts": "LEFTS",
    "shifts": "SHIFTS",
    "left_rows": "LEFT_ROWS",
}
"""Option -> the macro that it sets; `LARGEST` says of which kernels, and how far."""


@dataclass(frozen=True)
class KernelOptions:
    """Choice and tuning of the CUDA kernels behind engines ``direct`` and ``tensor``; None leaves it to them.

    A variant and its tunables belong to ``direct``, the precision to ``tensor``. All variants give the same sums
    up to rounding, and the same bits in every run but one: ``warp-shuffle-distributed`` adds the sums of several
    workers in any order, unless `distribution` is ``"none"``. Then one worker computes a shift alone and every run
    gives the same bits. ``variant="auto"`` never takes it.

    Parameters
    ----------
    variant : str
        ``"auto"`` (the fastest by measurement) or a name in `xcorr_app.gpu.direct.kernels.KERNELS`.
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
    precision : {"fp16", "fp16x2", "int8"}, optional
        How engine ``tensor`` multiplies. ``"fp16x2"``: values as sums of two fp16 numbers; plain sums are off by less
        than 1e-6 of the product of both matrices' norms. ``"fp16"``: single fp16 numbers, a third of the products; a
        normalised score is off by 1e-3 at most, or 1.3e-3 in batches of many frames against one image, where overlaps
        vary about as much as the whole matrices. ``"int8"``: the bytes of uint8 matrices, and of no others; plain sums
        are exact whole numbers and planes float64, which holds those of 2^37 elements. Without it planes are
        ``"fp16x2"``, and registration searches peaks as ``"fp16"`` does and recomputes what lies around them in single
        precision; with ``"fp16x2"`` or ``"int8"`` it searches whole planes.

    Raises
    ------
    ArgumentError
        For an unknown name, a value out of range, or an option that the variant does not have.

    Examples
    --------
    >>> KernelOptions("multi-row", shifts=4).tuning()
    {'SHIFTS': 4}
    >>> KernelOptions(precision="int8").engine
    'tensor'
    """

    variant: str = "auto"
    distribution: str | None = None
    rows_per_worker: int | None = None
    rights: int | None = None
    lefts: int | None = None
    shifts: int | None = None
    left_rows: int | None = None
    precision: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.variant, str) or (self.variant != "auto" and self.variant not in KERNELS):
            raise ArgumentError(f"unknown kernel variant {self.variant!r}: use auto or one of {', '.join(KERNELS)}")
        if self.precision is not None:
            if not isinstance(self.precision, str) or self.precision not in PRECISIONS:
                raise ArgumentError(f"unknown precision {self.precision!r}: use {', '.join(PRECISIONS)}")
            if self.variant != "auto":
                raise ArgumentError(
                    f"precision belongs to engine 'tensor', kernel variant {self.variant!r} to 'direct': "
                    "leave one of them out"
                )
        if self.distribution is not None:
            self._check_owner("distribution", "DISTRIBUTION")
            if not isinstance(self.distribution, str) or self.distribution not in DISTRIBUTIONS:
                raise ArgumentError(f"unknown distribution {self.distribution!r}: use {', '.join(DISTRIBUTIONS)}")
            if self.distribution == "none" and self.rows_per_worker is not None:
                raise ArgumentError("distribution 'none' gives a worker all rows of a shift: leave out rows_per_worker")
        for name, macro in TUNABLES.items():
            value = getattr(self, name)
            if value is not None:
                self._check_owner(name, macro)
                _check_count(name, value, LARGEST[self.variant][macro], self.variant)

    def _check_owner(self, name: str, macro: str) -> None:
        owners = [entry.name for entry in KERNELS.values() if macro in entry.tunables]
        if self.variant not in owners:
            raise ArgumentError(
                f"{name} belongs to kernel variant {' and '.join(owners)}, not to {self.variant!r}: ask for it too"
            )

    @property
    def asks_nothing(self) -> bool:
        """Whether everything is left to the table of measurements."""
        return all(getattr(self, option.name) == option.default for option in fields(self))

    @property
    def engine(self) -> str | None:
        """Name of the engine that has what is asked for; None where nothing is."""
        if self.asks_nothing:
            return None
        return "direct" if self.precision is None else "tensor"

    @property
    def exact(self) -> bool:
        """Whether matrices are summed as they are stored, in whole numbers: uint8 alone, nothing is standardised."""
        return self.precision == "int8"

    def tuning(self) -> dict[str, int]:
        """Macro values that replace the table's, for the launch of the variant's `KernelEntry`."""
        values = {
            macro: int(getattr(self, name)) for name, macro in TUNABLES.items() if getattr(self, name) is not None
        }
        if self.distribution is not None:
            values["DISTRIBUTION"] = DISTRIBUTIONS.index(self.distribution)
        return values


def _check_count(name: str, value: object, largest: int, variant: str) -> None:
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or not 1 <= value <= largest:  # type: ignore[operator]  # `whole` says that it is a number
        raise ArgumentError(f"{name} is {value!r}: {variant} takes 1 to {largest}")
