"""What one run of ``xcorr unmix`` is asked to do."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from xcorr_app.errors import ArgumentError
from xcorr_app.filtering.unmix import MixedType
from xcorr_app.io import Limits


@dataclass(frozen=True)
class UnmixOptions:
    """The matrix, the channels that it meets, and how they are mixed."""

    matrix: Path | None = None
    stain: str | None = None
    """A name that `stain_matrix` knows; stains are always separated by optical density."""
    channel_axis: str = "C"
    from_log: bool = False
    white: float | None = None
    clip: bool = False
    dtype: MixedType | None = None
    device: str = "auto"
    layout: Literal["auto", "frames", "stacks"] = "auto"
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if (self.matrix is None) == (self.stain is None):
            raise ArgumentError("give either --matrix FILE or --stain NAME")
        if self.white is not None:
            if not self.by_density:
                raise ArgumentError("--white is the intensity of an empty field for --from-log or --stain; add one")
            if not (math.isfinite(self.white) and self.white > 0):
                raise ArgumentError(f"--white {self.white:g}: give the intensity of an empty field, above 0")

    @property
    def by_density(self) -> bool:
        """Whether the optical density is taken first."""
        return self.from_log or self.stain is not None

    def parameters(self) -> dict[str, Any]:
        """Everything that decides the results, as plain values: part of ``run.json`` and of what a resume compares."""
        names = ("stain", "channel_axis", "from_log", "white", "clip", "dtype", "device", "layout")
        matrix = None if self.matrix is None else str(self.matrix)
        return {"matrix": matrix} | {name: getattr(self, name) for name in names}
