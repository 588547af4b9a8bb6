"""What one run of ``xcorr align`` is asked to do."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from xcorr_app.errors import ArgumentError
from xcorr_app.io import Limits
from xcorr_app.io.single_channel import Channel
from xcorr_app.registration.motion.models import PATCHES, is_more_than_a_shift
from xcorr_app.registration.motion.other_references import OTHERS
from xcorr_app.registration.patches.patch_fit import PatchOptions
from xcorr_app.registration.patches.patch_references import REFERENCES
from xcorr_app.registration.results.doubtful_frames import DEFAULT_POLICY, check_policy
from xcorr_app.registration.settings import Settings

INTERPOLATIONS: dict[str, Any] = {"nearest": 0, "linear": 1, "cubic": 3, "fourier": "fourier"}
MOTION_INTERPOLATIONS: dict[str, int] = {"nearest": 0, "linear": 1, "cubic": 3}
"""Those by which frames are turned; cubic is a spline here."""
REPORTS = ("none", "quick", "full")
FORMATS = ("same", "ome-tiff", "ome-zarr")
BORDERS = ("constant", "nearest", "crop")


@dataclass(frozen=True)
class AlignOptions:
    """Options of a run beyond the measurement's own `Settings`."""

    settings: Settings = field(default_factory=Settings)
    reference: str | int | Path = "first"
    """A name, a frame number, or the file of a reference image."""
    device: str = "auto"
    verify: Literal["auto", "all", "none"] | int = "auto"
    apply: bool = True
    doubtful: str = DEFAULT_POLICY
    """What becomes of frames whose shift is not trusted: see :mod:`xcorr_app.registration.results.doubtful_frames`."""
    interpolation: str = "linear"
    border: str = "constant"
    layout: Literal["auto", "frames", "stacks"] = "auto"
    axis: Literal["T", "Z"] | None = None
    align_channel: int = 0
    more_channels: tuple[int, ...] | None = ()
    """Others that are measured, too; None: all."""
    channel: Channel | None = None
    """The one that is read; all of them without."""
    format: str = "same"
    """Of the aligned stacks: ``same``, ``ome-tiff`` or ``ome-zarr``."""
    mask: str | Path | None = None
    """Name of what the settings' masks were made of: a rule, or a file."""
    motion: str = "translation"
    """What a frame may do: a name of :data:`xcorr_app.registration.motion.models.MODELS`, or ``patches``."""
    patches: PatchOptions = field(default_factory=PatchOptions)
    """How frames are cut; of the motion ``patches`` alone."""
    field_csv: bool = False
    """Whether the field of patches is written as a table, too."""
    field_ome_tiff: bool = False
    """Whether it is written as an image, too."""
    flat: Path | None = None
    dark: Path | None = None
    background: str | Path | None = None
    """Images that frames are corrected by before measuring: see :mod:`xcorr_app.registration.correction`."""
    correct: bool = False
    """Whether what is written is corrected, too."""
    report: str = "full"
    """``none``, ``quick`` (no pictures, one drawing a stack) or ``full``."""
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if self.interpolation not in INTERPOLATIONS:
            raise ArgumentError(f"unknown interpolation {self.interpolation!r}: use {', '.join(INTERPOLATIONS)}")
        if self.border not in BORDERS:
            raise ArgumentError(f"unknown border {self.border!r}: use {', '.join(BORDERS)}")
        if self.format not in FORMATS:
            raise ArgumentError(f"unknown format {self.format!r}: use {', '.join(FORMATS)}")
        if self.report not in REPORTS:
            raise ArgumentError(f"unknown report {self.report!r}: use {', '.join(REPORTS)}")
        check_policy(self.doubtful)
        if self.correct and not self.corrects:
            raise ArgumentError("correct needs an image to correct by: flat, dark or background")
        if is_more_than_a_shift(self.motion):
            self._check_motion()
        if self.motion != PATCHES and (self.patches != PatchOptions() or self.field_csv or self.field_ome_tiff):
            raise ArgumentError(
                "patch, patch_overlap, max_deviation, field_csv and field_ome_tiff go with --motion patches"
            )
        if not math.isfinite(self.settings.tolerance):
            raise ArgumentError("tolerance is infinite: give a number of pixels, or use --verify none")
        if self.align_channel < 0:
            raise ArgumentError(f"align channel {self.align_channel} does not exist: channels count from 0")

    @property
    def corrects(self) -> bool:
        """Whether frames are corrected before measuring."""
        return any(image is not None for image in (self.flat, self.dark, self.background))

    def _check_motion(self) -> None:
        """Refuse what only goes with shifts."""
        if self.more_channels != ():
            raise ArgumentError("several channels are measured for shifts: use one --align-channel with --motion")
        if self.interpolation not in MOTION_INTERPOLATIONS:
            known = ", ".join(MOTION_INTERPOLATIONS)
            raise ArgumentError(f"interpolation {self.interpolation!r} moves by shifts only: use {known} with --motion")
        if self.border == "crop":
            raise ArgumentError("border 'crop' is for shifts: use constant or nearest with --motion")
        references = REFERENCES if self.motion == PATCHES else ("first", "last", *OTHERS)
        if isinstance(self.reference, str) and self.reference not in references:
            raise ArgumentError(
                f"reference {self.reference!r} is for shifts: use {', '.join(references)}, a frame number or a file"
            )
        if self.mask is not None or self.settings.roi is not None or self.settings.prefilter.name:
            raise ArgumentError("mask, roi and prefilter are for shifts: leave them out with --motion")

    def parameters(self) -> dict[str, Any]:
        """Everything that decides the results, as plain values: part of ``run.json`` and of what a resume compares."""
        s = self.settings
        return {
            "reference": str(self.reference),
            "max_shift": s.max_shift,
            "normalization": s.normalization,
            "subpixel": s.subpixel,
            "upsample": s.upsample,
            "weighting": s.weighting,
            "prefilter": str(s.prefilter),
            "contrast": str(s.contrast),
            "roi": None if s.roi is None else [[part.start, part.stop] for part in s.roi],
            "engine": s.engine,
            "kernel_options": None if s.kernel_options is None else asdict(s.kernel_options),
            "device": self.device,
            "min_overlap": s.min_overlap,
            "min_score": s.min_score,
            "tolerance": s.tolerance,
            "max_sigma": s.max_sigma,
            "smooth_time": s.smooth_time,
            "verify": self.verify,
            "apply": self.apply,
            "doubtful": self.doubtful,
            "interpolation": self.interpolation,
            "border": self.border,
            "layout": self.layout,
            "axis": self.axis,
            "align_channel": self.align_channel,
            "more_channels": "all" if self.more_channels is None else list(self.more_channels),
            "channel": self.channel,
            "format": self.format,
            "report": self.report,
            "mask": None if self.mask is None else str(self.mask),
            "mask_moves": s.masks is not None and s.masks.moves,
            "motion": self.motion,
            "patches": asdict(self.patches) if self.motion == PATCHES else None,
            "field_csv": self.field_csv,
            "field_ome_tiff": self.field_ome_tiff,
            "flat": None if self.flat is None else str(self.flat),
            "dark": None if self.dark is None else str(self.dark),
            "background": None if self.background is None else str(self.background),
            "correct": self.correct,
        }
