"""What one run of ``xcorr apply`` is asked to do."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from xcorr_app.errors import ArgumentError
from xcorr_app.io import Limits
from xcorr_app.io.shift_table import Missing
from xcorr_app.io.single_channel import Channel

Match = Literal["auto", "number", "name"]
"""How a table's lines find their frames: by their numbers, or by the names of the files that the frames are."""


@dataclass(frozen=True)
class ApplyOptions:
    """Shifts, what is made of them, and how frames are moved."""

    shifts: Path
    """A table, a file of fields, or the folder of a run of ``xcorr align``, where each stack's is taken by its name."""
    match: Match = "auto"
    missing: Missing = "refuse"
    invert: bool = False
    scale: float = 1.0
    interpolation: str = "linear"
    border: str = "constant"
    device: str = "auto"
    layout: Literal["auto", "frames", "stacks"] = "auto"
    axis: Literal["T", "Z"] | None = None
    channel: Channel | None = None
    """The one that is read; all of them without."""
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if not (math.isfinite(self.scale) and self.scale > 0):
            raise ArgumentError(f"scale is {self.scale}: give a positive number, such as 0.5 for a copy binned 2 x 2")

    def parameters(self) -> dict[str, Any]:
        """Everything that decides the results, as plain values: part of ``run.json`` and of what a resume compares."""
        return {
            "shifts": str(self.shifts),
            "match": self.match,
            "missing": self.missing,
            "invert": self.invert,
            "scale": self.scale,
            "interpolation": self.interpolation,
            "border": self.border,
            "device": self.device,
            "layout": self.layout,
            "axis": self.axis,
            "channel": self.channel,
        }
