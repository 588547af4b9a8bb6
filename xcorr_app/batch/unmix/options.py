"""What one run of ``xcorr unmix`` is asked to do."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xcorr_app.batch import choices, shared_options, values
from xcorr_app.batch.option import OneOf, flag, option
from xcorr_app.batch.shared_options import NamedKernelOptions
from xcorr_app.errors import ArgumentError

if TYPE_CHECKING:
    from xcorr_app.filtering.unmix import MixedType

_mixing = partial(option, group="Mixing", brief=True)


@dataclass(frozen=True)
class UnmixOptions(NamedKernelOptions):
    """Options of ``xcorr unmix``: the matrix, the channels that it meets, and how they are mixed."""

    stain: str | None = _mixing(
        None,
        "Separate stains of a colour image: he is hematoxylin and eosin, hdab hematoxylin and DAB, hed all three.",
        OneOf(choices.STAINS),
    )
    spectra: Path | None = _mixing(
        None,
        "Spectra of the dyes as they are measured (.csv, .txt, .npy): one row per channel of INPUT, one column per "
        "dye; a first line may name the dyes. They are inverted by least squares.",
        values.PATH,
    )
    matrix: Path | None = _mixing(
        None,
        "Matrix that is already inverted (.csv, .txt, .npy): one row per channel of the result, one column per channel "
        "of INPUT. In text files, a row may begin with its name.",
        values.PATH,
    )
    channel_axis: str = _mixing("C", "Axis of the file that holds the channels.", OneOf(("C", "T", "Z")))
    from_log: bool = flag("Convert to optical density first; --stain always does.", group="Mixing", brief=True)
    white: float | None = _mixing(
        None,
        "Intensity of an empty field, for the optical density.",
        float,
        unit="the largest value of an integer type, 1 for floats",
    )
    clip: bool = flag("Replace negative results with zero.", group="Results", brief=True)
    dtype: MixedType | None = option(
        None,
        "Type of the result; same rounds integers and clips them.",
        OneOf(("same", "float32")),
        unit="same; float32 for densities of integers",
        group="Results",
        brief=True,
    )
    kernel: Any = shared_options.kernel(
        text="A kernel by name; needs a GPU. blocking is dynamic blocking as published but for asynchronous copies "
        "(--kernel-option staging=registers), mix keeps results in registers.",
        kind=OneOf(choices.MIXING_KERNELS),
    )
    kernel_options: tuple[str, ...] = shared_options.kernel_words(
        text="Constant of the planner of --kernel blocking, as often as needed: warps, blocks, channel-count, "
        "registers, shared-bytes, filters-for-l1, halved-from-l1, halved-from-l2, rounds, numbers; staging, async or "
        "registers.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        from xcorr_app.filtering.kernel_names import mixing_name

        if sum(each is not None for each in (self.matrix, self.spectra, self.stain)) != 1:
            raise ArgumentError("give one of --spectra FILE, --matrix FILE and --stain NAME")
        mixing_name(self.asked_kernel)
        if self.white is not None:
            if not self.by_density:
                raise ArgumentError("--white is the intensity of an empty field for --from-log or --stain; add one")
            if not (math.isfinite(self.white) and self.white > 0):
                raise ArgumentError(f"--white {self.white:g}: give the intensity of an empty field, above 0")

    @property
    def by_density(self) -> bool:
        """Whether the optical density is taken first."""
        return self.from_log or self.stain is not None
