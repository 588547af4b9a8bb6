"""What one run of ``xcorr filter`` is asked to do."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from xcorr_app.batch.filter.choice import FilterChoice
from xcorr_app.errors import ArgumentError
from xcorr_app.filtering.bank_request import BANK_METHODS, BankMethod
from xcorr_app.filtering.boundary import Mode
from xcorr_app.filtering.engines.choice import EngineName
from xcorr_app.filtering.kernel_names import FilterKernel, kernel_name, kernel_record
from xcorr_app.filtering.rounding import ResultType
from xcorr_app.gpu.stencil.exchange import ExchangeOptions
from xcorr_app.io import Limits
from xcorr_app.io.single_channel import Channel


@dataclass(frozen=True)
class FilterOptions:
    """Filter, boundary, type of the result, and how it is computed."""

    choice: FilterChoice
    mode: Mode = "reflect"
    cval: float = 0.0
    """Value beyond the edge; only where `mode` is constant."""
    dtype: ResultType | None = None
    """None: as `result_type` has it."""
    engine: EngineName = "auto"
    kernel: FilterKernel | BankMethod | ExchangeOptions = "auto"
    stride: int = 1
    """Pixels from one result of a bank to the next."""
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
        if self.choice.bank is None:
            kernel_name(self.kernel, self.engine)
            if self.stride != 1:
                raise ArgumentError(f"stride {self.stride} is for banks of filters: take --bank, or leave it out")
        elif self.kernel not in BANK_METHODS:
            raise ArgumentError(f"kernel {self.kernel!r} is for single filters; banks have {', '.join(BANK_METHODS)}")

    def result_type(self, pixels: np.dtype[Any]) -> ResultType:
        """Type of the result for images of a type: half of what a derivative of integers gives is negative."""
        if self.dtype is not None:
            return self.dtype
        return "float32" if self.choice.is_derivative and pixels.kind in "iu" else "same"

    def parameters(self) -> dict[str, Any]:
        """Everything that decides the results, as plain values: part of ``run.json`` and of what a resume compares."""
        return {
            "filter": self.choice.name,
            "argument": self.choice.argument,
            "mode": self.mode,
            "cval": self.cval,
            "dtype": self.dtype,
            "engine": self.engine,
            **kernel_record(self.kernel),
            "stride": self.stride,
            "device": self.device,
            "layout": self.layout,
            "channel": self.channel,
        }
