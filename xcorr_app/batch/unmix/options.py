"""What one run of ``xcorr unmix`` is asked to do."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from xcorr_app.errors import ArgumentError, DeviceError
from xcorr_app.filtering.kernel_names import MixingKernel, kernel_record, mixing_name
from xcorr_app.filtering.unmix import MixedType
from xcorr_app.gpu.pointwise.blocking_options import BlockingOptions
from xcorr_app.gpu.runtime.select import Device
from xcorr_app.io import Limits


@dataclass(frozen=True)
class UnmixOptions:
    """The matrix, the channels that it meets, and how they are mixed."""

    matrix: Path | None = None
    spectra: Path | None = None
    """File of the spectra of the dyes as they are measured, in place of a matrix."""
    stain: str | None = None
    """A name that `stain_matrix` knows; stains are always separated by optical density."""
    channel_axis: str = "C"
    from_log: bool = False
    white: float | None = None
    clip: bool = False
    dtype: MixedType | None = None
    kernel: MixingKernel | BlockingOptions = "auto"
    device: str = "auto"
    layout: Literal["auto", "frames", "stacks"] = "auto"
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if sum(each is not None for each in (self.matrix, self.spectra, self.stain)) != 1:
            raise ArgumentError("give one of --spectra FILE, --matrix FILE and --stain NAME")
        mixing_name(self.kernel)
        if self.white is not None:
            if not self.by_density:
                raise ArgumentError("--white is the intensity of an empty field for --from-log or --stain; add one")
            if not (math.isfinite(self.white) and self.white > 0):
                raise ArgumentError(f"--white {self.white:g}: give the intensity of an empty field, above 0")

    @property
    def by_density(self) -> bool:
        """Whether the optical density is taken first."""
        return self.from_log or self.stain is not None

    @property
    def file(self) -> Path | None:
        """File of the matrix or of the spectra."""
        return self.matrix or self.spectra

    def _files(self) -> dict[str, Path | None]:
        return {"matrix": self.matrix, "spectra": self.spectra}

    def parameters(self) -> dict[str, Any]:
        """Everything that decides the results, as plain values: part of ``run.json`` and of what a resume compares."""
        names = ("stain", "channel_axis", "from_log", "white", "clip", "dtype", "device", "layout")
        files = {name: None if path is None else str(path) for name, path in self._files().items()}
        return files | {name: getattr(self, name) for name in names} | kernel_record(self.kernel)

    def computes_on(self, device: Device) -> Device:
        """Return the device; raise DeviceError where a kernel was asked for and the CPU would compute."""
        named = mixing_name(self.kernel)
        if named != "auto" and device.xp is np:
            why = device.note or "--device cpu was given"
            raise DeviceError(f"kernel {named!r} runs on a GPU ({why}); --kernel auto gives the same on the CPU")
        return device
