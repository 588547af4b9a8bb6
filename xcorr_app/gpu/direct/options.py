"""What a user may ask of the correlation kernels: variant, tunables and sums, or a precision; checked beforehand."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.direct.kernels import KERNELS, LARGEST
from xcorr_app.gpu.direct.tuning import TUNING

DISTRIBUTIONS = ("none", "rectangle", "triangle")
"""How the rows of a shift are split among workers, in the order of the kernel's ``DISTRIBUTION`` macro."""

PRECISIONS = ("fp16", "fp16x2")
"""What a value is on tensor cores: fp16, or split fp16 (the sum of two)."""

TUNABLES = {
    "warps": "WARPS",
    "threads": "THREADS",
    "shifts_per_block": "SHIFTS_PER_BLOCK",
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

    A variant and its tunables belong to ``direct``, the precision to ``tensor``. All variants give
    the same sums up to rounding, and the same bits in every run unless rows are distributed: the sums of several
    workers are added in any order. With `distribution` ``"none"`` one worker computes a shift alone. ``variant="auto"``
    never distributes rows.

    Parameters
    ----------
    variant : str
        ``"auto"`` (the fastest by measurement) or a name in `xcorr_app.gpu.direct.kernels.KERNELS`.
    distribution : {"none", "rectangle", "triangle"}, optional
        How rows are split among workers: of ``warp-shuffle-distributed`` (default ``"triangle"``), ``multi-right``,
        ``multi-left-right``, ``multi-row`` and ``combined-shuffle`` (default ``"none"``).
    rows_per_worker : int, optional
        Most left rows a worker sums where rows are distributed, 1 to 65536 (default 8 of ``warp-shuffle-distributed``,
        else 32); where a thread sums several row shifts, rounded up to a multiple of these.
    rights : int, optional
        Right matrices a thread works on, 1 to 8 (``multi-right``) or 1 to 4 (``multi-left-right``,
        ``combined-shuffle``).
    lefts : int, optional
        Left matrices a thread works on, 1 to 4 (``multi-left-right``, ``combined-shuffle``).
    shifts : int, optional
        Consecutive row shifts a thread works on, 1 to 8 (``multi-row``) or 1 to 4 (``combined-shuffle``).
    left_rows : int, optional
        Left rows a thread holds at a time, 1 to 8 (``multi-row``) or 1 to 4 (``combined-shuffle``).
    precision : {"fp16", "fp16x2"}, optional
        How engine ``tensor`` multiplies. ``"fp16x2"``: values as sums of two fp16 numbers; plain sums are off by less
        than 1e-6 of the product of both matrices' norms. ``"fp16"``: single fp16 numbers, a third of the products; a
        normalised score is off by 1e-3 at most, or 1.3e-3 in batches of many frames against one image, where overlaps
        vary about as much as the whole matrices. Without it planes are ``"fp16x2"``, and registration searches peaks
        as ``"fp16"`` does and recomputes what lies around them in single precision; with ``"fp16x2"`` it searches whole
        planes.
    warps : int, optional
        Warps a block, 1 to 16 (``warp-shuffle``, ``warp-shuffle-distributed``, ``multi-right``) or 1 to 8
        (``multi-left-right``, ``multi-row``, ``combined-shuffle``).
    threads : int, optional
        Threads a block, 1 to 1024 (``overlap-wise``).
    shifts_per_block : int, optional
        Shifts a block sums, a warp each, 1 to 16 (``shift-per-warp``).
    phases : bool, optional
        Whether left rows with only some of a thread's right rows have init and drain phases of their own, as the
        document has it, or are summed with rows of zeros (``multi-row``, ``combined-shuffle``; default False).

    Raises
    ------
    ArgumentError
        For an unknown name, a value out of range, or an option that the variant does not have.

    Examples
    --------
    >>> KernelOptions("multi-row", shifts=4).tuning()
    {'SHIFTS': 4}
    >>> KernelOptions(precision="fp16").engine
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
    warps: int | None = None
    threads: int | None = None
    shifts_per_block: int | None = None
    phases: bool | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.variant, str) or (self.variant != "auto" and self.variant not in KERNELS):
            raise ArgumentError(f"unknown kernel variant {self.variant!r}: use auto or one of {', '.join(KERNELS)}")
        if self.precision is not None:
            if not isinstance(self.precision, str) or self.precision not in PRECISIONS:
                raise ArgumentError(f"unknown precision {self.precision!r}: use {', '.join(PRECISIONS)}")
            if self.variant != "auto":
                what = f"kernel variant {self.variant!r}"
                raise ArgumentError(f"precision belongs to engine 'tensor', {what} to 'direct': leave one of them out")
        if self.distribution is not None:
            self._check_owner("distribution", "DISTRIBUTION")
            if not isinstance(self.distribution, str) or self.distribution not in DISTRIBUTIONS:
                raise ArgumentError(f"unknown distribution {self.distribution!r}: use {', '.join(DISTRIBUTIONS)}")
        if self.phases is not None:
            self._check_owner("phases", "PHASES")
            if not isinstance(self.phases, bool):
                raise ArgumentError(f"phases is {self.phases!r}: say True or False")
        for name, macro in TUNABLES.items():
            value = getattr(self, name)
            if value is not None:
                self._check_owner(name, macro)
                _check_count(name, value, LARGEST[self.variant][macro], self.variant)
        if self.rows_per_worker is not None and not self._distributes:
            raise ArgumentError(
                "distribution 'none' gives a worker all rows of a shift: leave out rows_per_worker, or ask for another"
            )

    @property
    def _distributes(self) -> bool:
        if self.distribution is None:
            return TUNING.get(self.variant, {}).get("DISTRIBUTION", 0) != 0
        return self.distribution != "none"

    def _check_owner(self, name: str, macro: str) -> None:
        owners = [entry.name for entry in KERNELS.values() if macro in entry.tunables]
        if self.variant not in owners:
            listed = " and ".join(filter(None, (", ".join(owners[:-1]), owners[-1])))
            raise ArgumentError(f"{name} belongs to kernel variant {listed}, not to {self.variant!r}: ask for it too")

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

    def tuning(self) -> dict[str, int]:
        """Macro values that replace the table's, for the launch of the variant's `KernelEntry`."""
        values = {
            macro: int(getattr(self, name)) for name, macro in TUNABLES.items() if getattr(self, name) is not None
        }
        if self.distribution is not None:
            values["DISTRIBUTION"] = DISTRIBUTIONS.index(self.distribution)
        if self.phases is not None:
            values["PHASES"] = int(self.phases)
        return values


def _check_count(name: str, value: object, largest: int, variant: str) -> None:
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or not 1 <= value <= largest:  # type: ignore[operator]  # `whole` says that it is a number
        raise ArgumentError(f"{name} is {value!r}: {variant} takes 1 to {largest}")
