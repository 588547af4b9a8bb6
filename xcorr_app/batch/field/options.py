"""What one run of ``xcorr field`` is asked to do."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from xcorr_app.batch import choices, shared_options, values
from xcorr_app.batch.option import OneOf, Within, option
from xcorr_app.batch.shared_options import Axis, StackOptions
from xcorr_app.errors import ArgumentError

_measuring = partial(option, group="Measuring", brief=True)


@dataclass(frozen=True)
class FieldOptions(StackOptions):
    """Options of ``xcorr field``."""

    formats: tuple[str, ...] = option(
        ("csv",),
        "Files of each field: table, NumPy archive, OME-TIFF. May be given several times.",
        OneOf(choices.FIELD_FORMATS),
        flags=("--format",),
        gather=values.names_of(choices.FIELD_FORMATS),
        group="Results",
        brief=True,
    )
    pictures: Literal["png", "svg", "none"] = option(
        "png",
        "Draw arrows, magnitude, strains and vorticity.",
        OneOf(("png", "svg", "none")),
        group="Results",
        brief=True,
    )
    window: int = _measuring(32, "Rows and columns of a window, in pixels.", Within(8))
    step: int = _measuring(16, "Pixels, at most, from one window to the next.", Within(1))
    max_displacement: float | None = _measuring(
        None,
        "Largest displacement in pixels along each axis.",
        Within(0, above=True, whole=False),
        unit="half a window",
    )
    refine: Literal["none", "icgn"] = _measuring(
        "none",
        "Last step: icgn is inverse-compositional Gauss-Newton with first-order shape functions, for strain on clean "
        "speckle.",
        OneOf(("none", "icgn")),
    )
    reference: Literal["first", "previous"] = _measuring(
        "first", "What each frame of a stack is compared with.", OneOf(("first", "previous")), flags=("-r",)
    )
    mask: Path | None = _measuring(None, "Image that is nonzero where pixels count.", values.PATH, unit="all count")
    passes: int = option(
        3,
        "The first compares windows of twice the size; those that follow deform the windows by what was found.",
        Within(1, 20),
    )
    median_threshold: float = option(
        3.0,
        "Residual of the normalised median test above which a vector is interpolated from its neighbours.",
        Within(0, above=True, whole=False),
    )
    axis: Axis | None = shared_options.axis()
    channel: str | int | None = shared_options.channel(unit="the first")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.formats:
            raise ArgumentError(f"no format was named: give {', '.join(choices.FIELD_FORMATS)}")
