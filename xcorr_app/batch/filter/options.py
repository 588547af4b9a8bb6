"""What one run of ``xcorr filter`` is asked to do."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal

from xcorr_app.batch.filter.choice import FilterChoice
from xcorr_app.errors import ArgumentError
from xcorr_app.filtering.boundary import Mode
from xcorr_app.filtering.engines.choice import EngineName
from xcorr_app.filtering.rounding import ResultType
from xcorr_app.io import Limits
from xcorr_app.io.picked import Channel


@dataclass(frozen=True)
class FilterOptions:
    """Filter, boundary, type of the result, and how it is computed."""

    choice: FilterChoice
    mode: Mode = "reflect"
    cval: float = 0.0
    """Value beyond the edge; only where `mode` is constant."""
    dtype: ResultType = "same"
    engine: EngineName = "auto"
    device: str = "auto"
    layout: Literal["auto", "frames", "stacks"] = "auto"
    channel: Channel | None = None
    """The one that is read; all of them without."""
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if not math.isfinite(self.cval):
            raise ArgumentError(f"cval is {self.cval}: give the value beyond the edge as a finite number")
        if self.cval != 0 and self.mode != "constant":
            raise ArgumentError(f"cval {self.cval:g} is only used by mode constant, not by mode {self.mode}")

    def parameters(self) -> dict[str, Any]:
        """Everything that decides the results, as plain values: part of ``run.json`` and of what a resume compares."""
        return {
            "filter": self.choice.name,
            "argument": self.choice.argument,
            "mode": self.mode,
            "cval": self.cval,
            "dtype": self.dtype,
            "engine": self.engine,
            "device": self.device,
            "layout": self.layout,
            "channel": self.channel,
        }
