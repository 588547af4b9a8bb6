"""What one run of ``xcorr align`` is asked to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from xcorr_app.batch import choices, shared_options, values
from xcorr_app.batch.option import OneOf, Within, flag, option
from xcorr_app.batch.shared_options import MovingOptions
from xcorr_app.batch.values import MovingMask
from xcorr_app.errors import ArgumentError

if TYPE_CHECKING:
    from xcorr_app.gpu.direct.options import KernelOptions
    from xcorr_app.registration.patches.patch_fit import PatchOptions
    from xcorr_app.registration.settings import Roi, Settings
    from xcorr_app.registration.stack.prefilter import Contrast, Prefilter

INTERPOLATIONS: dict[str, Any] = {"nearest": 0, "linear": 1, "cubic": 3, "lanczos": "lanczos", "fourier": "fourier"}
MOTION_INTERPOLATIONS: dict[str, int] = {"nearest": 0, "linear": 1, "cubic": 3}
"""Those by which frames are turned; cubic is a spline here."""
_SHIFTS = {"motion": ("translation",)}
"""What only goes with shifts."""
_WHOLE_FRAMES = {"motion": tuple(name for name in choices.MOTIONS if name != "patches")}
"""What goes with motions of whole frames, too."""


@dataclass(frozen=True)
class AlignOptions(MovingOptions):
    """Options of ``xcorr align``."""

    max_shift: float | tuple[float, float] | None = shared_options.max_shift()
    reference: str | int | Path = option(
        "first",
        "What frames are compared with; the frame that is measured is left out of means. For series that change: "
        "previous; pairs:K, each of K frames before.",
        values.REFERENCE,
        flags=("-r",),
        group="Measuring",
        brief=True,
    )
    motion: str = option(
        "translation",
        "What a frame may do: shift, turn (rigid), scale (similarity), any linear motion, or bend (patches: of 128 px, "
        "up to 6 px off).",
        values.MOTION,
        group="Measuring",
        brief=True,
    )
    smooth_time: int = option(
        1,
        "Average so many frames for measuring, where photons are few.",
        Within(1, choices.MAX_SMOOTH_TIME),
        group="Measuring",
        brief=True,
        needs=_SHIFTS,
    )
    channel: int | str | Sequence[int] = option(
        0,
        "Channels that are measured (sum: all); all are moved. R, G, B or gray: that of colour images alone, which are "
        "refused without.",
        values.CHANNELS,
        group="Measuring",
        brief=True,
    )
    mask: str | Path | MovingMask | None = option(
        None,
        "Pixels that count; of a FILE those nonzero there; moving: with the scene, as the reference shows it.",
        values.MASK,
        group="Measuring",
        brief=True,
        needs=_WHOLE_FRAMES,
    )
    roi: Roi | None = option(
        None, "Part of the frame that is measured.", values.ROI, group="Measuring", brief=True, needs=_SHIFTS
    )
    subpixel: str = option(
        "gaussian",
        "How the peak is located between whole pixels; phase refines gaussian over the whole overlap, near the least "
        "possible error, as gaussian does by itself on fine textures (speckle); dft:N has N grid points per pixel, 100 "
        "without.",
        values.SUBPIXEL,
        needs=_SHIFTS,
    )
    normalization: Literal["zncc", "none", "phase"] = shared_options.normalization(needs=_SHIFTS)
    prefilter: Prefilter | str | None = option(
        None,
        "Filter for measuring only: gaussian:S, highpass:S, dog:S1,S2, log:S, median:N, box:N, unsharp:S,AMOUNT, sobel "
        "or laplacian.",
        values.PREFILTER,
        needs=_SHIFTS,
    )
    contrast: Contrast | str = option(
        "auto",
        "none, local:S (pixels minus the mean, over the standard deviation, of what is around them: sigma S pixels) or "
        "auto; for measuring only.",
        values.CONTRAST,
        needs=_SHIFTS,
    )
    min_overlap: float | None = shared_options.min_overlap(
        default=None,
        text="Smallest fraction of the frame that must overlap; with --mask, of the most pixels that count in both at "
        "any shift.",
        unit="0.25; with --mask 0.1",
        needs=_SHIFTS,
    )
    doubtful: str = option(
        "interpolate",
        "Frames whose shift cannot be trusted: moved by what is expected to be least wrong, of what was measured and "
        "the shift interpolated between the frames around; moved as measured all the same; left in place; or dropped "
        "from the written stack. Standard errors above PX (0.5, or 2 % of the range of the stack's shifts where that "
        "is more) count as doubtful.",
        values.DOUBTFUL,
    )
    flat: Path | None = option(
        None,
        "Image of an even field, by which frames are divided for measuring.",
        values.PATH,
        group="Correction of frames",
    )
    dark: Path | None = option(
        None,
        "Image without light, which is subtracted from frames for measuring.",
        values.PATH,
        group="Correction of frames",
    )
    background: str | Path | None = option(
        None,
        "What stands still and is subtracted for measuring: the median over time, or an image.",
        values.BACKGROUND,
        group="Correction of frames",
    )
    correct: bool = flag(
        "Write frames corrected by --flat, --dark and --background, too.",
        group="Correction of frames",
    )
    verify: str | int = option(
        "auto",
        "Frames to check against the float64 FFT and the definition, and pixels by which these may differ (0.01); "
        "auto: all on a GPU, 32 of a stack on a CPU, which measures by an FFT itself.",
        values.VERIFY,
        group="Checks",
        needs=_SHIFTS,
    )
    apply: bool = flag("Write the aligned stacks, or only measure.", on=True, group="Run")
    report: Literal["none", "quick", "full"] = option(
        "full",
        "The page that shows the run: full; quick, without pictures and figures of before and after; or none.",
        OneOf(("none", "quick", "full")),
        group="Run",
    )
    format: str = option(
        "same",
        "Format of the aligned stacks: same is OME-Zarr for OME-Zarr and TIFF for all else. OME-Zarr may have several "
        "levels of resolution, each half the size of the one before, for viewers.",
        values.FORMAT,
        group="Run",
        needs={"apply": (True,)},
    )
    cluster: str | None = shared_options.cluster()
    watch: bool = flag(
        "Wait in one folder for stacks, and align each as soon as its file is complete, until Ctrl-C; single frames "
        "are measured as they come, and aligned in the end.",
        group="Run",
        role="terminal",
        excludes=("explain", "cluster"),
    )
    engine: str = shared_options.engine(needs=_SHIFTS)
    kernel_options: KernelOptions | None = shared_options.kernel_options(needs=_SHIFTS)
    explain: bool = shared_options.explain()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.correct and not self.corrects:
            raise ArgumentError("--correct needs an image to correct by: --flat, --dark or --background")
        if self.motion != "translation":
            self._check_motion()
            _ = self.patches  # which checks its values, as settings do
        if self.first_channel < 0:
            raise ArgumentError(f"channel {self.first_channel} does not exist: channels count from 0")
        if self.settings.masks is not None and self.model == "translation":
            from xcorr_app.registration.estimate_masked import check_masks

            check_masks(self.reference, self.settings)

    @cached_property
    def settings(self) -> Settings:
        """Of the measurement."""
        from xcorr_app.registration.masked.rules import Masks
        from xcorr_app.registration.settings import Settings
        from xcorr_app.registration.stack.prefilter import Prefilter

        own: dict[str, Any] = {each.name: getattr(self, each.name, None) for each in fields(Settings)}
        method, _, points = self.subpixel.partition(":")
        own |= {"subpixel": method, "upsample": int(points or 100), "prefilter": self.prefilter or Prefilter()}
        if self.mask is not None:
            image: Any = getattr(self.mask, "file", self.mask)
            if isinstance(image, Path):
                from xcorr_app.io import read_stack

                image = read_stack(image, limits=self.limits).data
            own["masks"] = Masks.of(image, moves=isinstance(self.mask, MovingMask))
        own["min_overlap"] = Settings.overlap(self.min_overlap, own["masks"])
        return Settings(**{name: value for name, value in own.items() if hasattr(self, name) or value is not None})

    @cached_property
    def patches(self) -> PatchOptions:
        """How frames are cut; of the motion ``patches`` alone."""
        from xcorr_app.registration.patches.patch_fit import PatchOptions

        size, _, deviation = self.motion.partition(":")[2].partition(",")
        given: dict[str, Any] = {"patch": int(size)} if size else {}
        return PatchOptions(**given | ({"max_deviation": float(deviation)} if deviation else {}))

    @property
    def model(self) -> str:
        """What a frame may do, by its name alone."""
        return self.motion.partition(":")[0]

    @property
    def policy(self) -> str:
        """What becomes of frames whose shift cannot be trusted, by its name alone."""
        return self.doubtful.partition(":")[0]

    @property
    def max_sigma(self) -> float | None:
        """Standard error in pixels above which a shift is doubtful; None where that goes by the stack."""
        limit = self.doubtful.partition(":")[2]
        return float(limit) if limit else None

    @property
    def verified(self) -> Any:
        """Frames that are checked: a number, or in a word."""
        frames = str(self.verify).partition(":")[0]
        return int(frames) if frames.isdecimal() else frames

    @property
    def tolerance(self) -> float:
        """Largest accepted difference from the check, in pixels."""
        return float(str(self.verify).partition(":")[2] or choices.TOLERANCE)

    @property
    def pyramid(self) -> int:
        """Levels of resolution of what is written."""
        return int(self.format.partition(":")[2] or 1)

    @property
    def first_channel(self) -> int:
        """The channel that is measured, and shown."""
        if isinstance(self.channel, int):
            return self.channel
        return 0 if isinstance(self.channel, str) else int(self.channel[0])

    @property
    def more_channels(self) -> tuple[int, ...] | None:
        """Others that are measured, too; None: all."""
        if isinstance(self.channel, int) or self.single_channel:
            return ()
        return None if isinstance(self.channel, str) else tuple(map(int, self.channel[1:]))

    @property
    def single_channel(self) -> str | None:
        """The only one that is read, of colour images."""
        return self.channel if isinstance(self.channel, str) and self.channel != "sum" else None

    @property
    def corrects(self) -> bool:
        """Whether frames are corrected before measuring."""
        return any(image is not None for image in (self.flat, self.dark, self.background))

    def _check_motion(self) -> None:
        """Refuse values that only go with shifts."""
        from xcorr_app.registration.motion.whole_frames import OTHERS
        from xcorr_app.registration.patches.patches import REFERENCES

        if self.more_channels != ():
            raise ArgumentError("several channels are measured for shifts: use one --channel with --motion")
        if self.interpolation not in MOTION_INTERPOLATIONS:
            known = ", ".join(MOTION_INTERPOLATIONS)
            raise ArgumentError(f"interpolation {self.interpolation!r} moves by shifts only: use {known} with --motion")
        if self.border not in ("constant", "nearest"):
            raise ArgumentError(f"border {self.border!r} is for shifts: use constant or nearest with --motion")
        references = REFERENCES if self.model == "patches" else ("first", "last", *OTHERS)
        if isinstance(self.reference, str) and self.reference not in references:
            raise ArgumentError(
                f"reference {self.reference!r} is for shifts: use {', '.join(references)}, a frame number or a file"
            )
