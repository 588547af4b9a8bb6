"""Constants of dynamic blocking that the document sets, as options: planner and kernel take other values too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from xcorr_app.errors import ArgumentError

Staging: TypeAlias = Literal["async", "registers"]
STAGINGS: tuple[Staging, ...] = get_args(Staging)

_ARRANGEMENTS = {1: (1, 1), 2: (1, 2), 4: (2, 2), 8: (2, 4)}
"""Warps of a block along the filters and along the pixels."""
_VALUES: Mapping[str, tuple[int, ...] | range] = {
    "warps": tuple(_ARRANGEMENTS),
    "blocks": range(1, 17),
    "channel_count": (1, 2, 4, 8, 16, 32),
    "registers": range(1024, 2**20),
    "shared_bytes": range(1024, 2**20),
    "filters_for_l1": range(1, 2**13),
    "halved_from_l1": range(1, 2**13),
    "halved_from_l2": range(1, 2**13),
    "rounds": range(1, 17),
}
MACROS = {
    "warps": "WARPS",
    "blocks": "MIN_BLOCKS",
    "channel_count": "CHANNEL_COUNT",
    "registers": "REGISTERS",
    "shared_bytes": "SHARED_BYTES",
    "filters_for_l1": "FILTERS_FOR_L1",
    "halved_from_l1": "HALVED_FROM_L1",
    "halved_from_l2": "HALVED_FROM_L2",
    "rounds": "ROUNDS",
}
"""Option -> its name among the tunables of kernel `blocking`."""


@dataclass(frozen=True)
class BlockingOptions:
    """Constants of the published pointwise convolution with dynamic blocking; None leaves a value to the planner.

    Parameters
    ----------
    warps : {4, 1, 2, 8}
        Warps of a block.
    blocks : int, optional
        Blocks meant to share a multiprocessor, 1 to 16; by default the planner tries 2 and 4.
    channel_count : {1, 2, 4, 8, 16, 32}, optional
        Lanes that share the channels of an output.
    registers, shared_bytes : int, optional
        Registers, and bytes of shared memory, of a multiprocessor; the document has 65536 of each. By default, and at
        most, what the device has.
    filters_for_l1 : int
        Filters from which layout L1 spreads them across lanes.
    halved_from_l1, halved_from_l2 : int
        Filters from which a block takes half of them, in layouts L1 and L2.
    staging : {"async", "registers"}
        How the next channels reach shared memory: by asynchronous copies, or through registers as published.
    rounds : int, optional
        Multiplications of a thread between two barriers, 1 to 16; the document has 1, which ``"registers"`` keeps.

    Raises
    ------
    ArgumentError
        For a value out of range.

    Examples
    --------
    >>> BlockingOptions(warps=8, staging="registers").tuning()
    {'WARPS': 8, 'REGISTER_STAGING': 1}
    """

    warps: int = 4
    blocks: int | None = None
    channel_count: int | None = None
    registers: int | None = None
    shared_bytes: int | None = None
    filters_for_l1: int = 48
    halved_from_l1: int = 512
    halved_from_l2: int = 24
    staging: Staging = "async"
    rounds: int | None = None

    def __post_init__(self) -> None:
        for name, known in _VALUES.items():
            value = getattr(self, name)
            if value is None and vars(type(self))[name] is None:
                continue
            if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value not in known:
                listed = f"{known[0]} to {known[-1]}" if isinstance(known, range) else ", ".join(map(str, known))
                raise ArgumentError(f"{name} is {value!r}: kernel 'blocking' takes {listed}")
        if self.staging not in STAGINGS:
            raise ArgumentError(f"staging is {self.staging!r}: kernel 'blocking' takes {', '.join(STAGINGS)}")

    @property
    def arrangement(self) -> tuple[int, int]:
        """Warps of a block along the filters and along the pixels."""
        return _ARRANGEMENTS[self.warps]

    def tuning(self) -> dict[str, int]:
        """Tunables of the kernel whose value is not the default."""
        changed = {name: getattr(self, name) for name in MACROS if getattr(self, name) != getattr(AS_PUBLISHED, name)}
        macros = {MACROS[name]: int(value) for name, value in changed.items()}
        return macros | ({"REGISTER_STAGING": 1} if self.staging == "registers" else {})

    @classmethod
    def of(cls, tuning: Mapping[str, int]) -> BlockingOptions:
        """Return the options that tunables stand for."""
        given = {name: tuning[macro] for name, macro in MACROS.items() if macro in tuning}
        return cls(**given, staging="registers" if tuning.get("REGISTER_STAGING") else "async")


AS_PUBLISHED = BlockingOptions()
"""But for what the planner may choose, and asynchronous copies."""
