"""What one run of ``xcorr field`` is asked to do."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from xcorr_app.errors import ArgumentError
from xcorr_app.io import Limits
from xcorr_app.io.single_channel import Channel


@dataclass(frozen=True)
class FieldOptions:
    """Windows, passes, and what is written."""

    window: int = 32
    step: int = 16
    passes: int = 3
    max_displacement: float | None = None
    median_threshold: float = 3.0
    refine: Literal["none", "icgn"] = "none"
    mask: Path | None = None
    reference: Literal["first", "previous"] = "first"
    formats: tuple[str, ...] = ("csv",)
    pictures: Literal["png", "svg", "none"] = "png"
    device: str = "auto"
    layout: Literal["auto", "frames", "stacks"] = "auto"
    axis: Literal["T", "Z"] | None = None
    channel: Channel | None = None
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if not self.formats:
            raise ArgumentError("no format was named: give csv, vtk, nc, npz or ome-tiff")

    def parameters(self) -> dict[str, Any]:
        """Everything that decides the results, as plain values: part of ``run.json`` and of what a resume compares."""
        names = ("window", "step", "passes", "max_displacement", "median_threshold", "refine", "reference", "pictures")
        more = ("device", "layout", "axis", "channel")
        return {name: getattr(self, name) for name in (*names, *more)} | {"formats": list(self.formats)}
