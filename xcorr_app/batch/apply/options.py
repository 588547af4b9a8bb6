"""What one run of ``xcorr apply`` is asked to do."""

from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import Literal

from xcorr_app.batch import shared_options, values
from xcorr_app.batch.option import OneOf, Within, flag, option
from xcorr_app.batch.shared_options import MovingOptions


@dataclass(frozen=True)
class ApplyOptions(MovingOptions):
    """Options of ``xcorr apply``."""

    shifts: Path = option(
        MISSING,
        "A table, a file of fields, or the output folder of xcorr align, where each stack's is taken by its name.",
        values.PATH,
        group="Measuring",
        required=True,
        argument=True,
    )
    invert: bool = flag("Undo the shifts: move by minus what the table says.", group="Measuring", brief=True)
    scale: float = option(
        1.0,
        "Multiply the shifts: 0.5 for a copy binned 2 x 2.",
        Within(0, above=True, whole=False),
        group="Measuring",
        brief=True,
    )
    missing: Literal["refuse", "interpolate"] = option(
        "refuse",
        "What becomes of frames that the table lacks: the stack fails and names them, or their shifts are interpolated "
        "between their neighbours.",
        OneOf(("refuse", "interpolate")),
        group="Measuring",
        brief=True,
    )
    match: Literal["auto", "number", "name"] = option(
        "auto",
        "How lines of the table find their frames: by number, or by file name where each frame is a file; auto goes by "
        "name where the names agree.",
        OneOf(("auto", "number", "name")),
    )
    channel: str | int | None = shared_options.channel(unit="all")
