"""What one run of ``xcorr correlate`` is asked to do."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from xcorr_app.batch import choices, shared_options
from xcorr_app.batch.option import OneOf, flag, option
from xcorr_app.batch.shared_options import ComputingOptions

if TYPE_CHECKING:
    from xcorr_app.correlation.forms import Form
    from xcorr_app.gpu.direct.options import KernelOptions
    from xcorr_app.registration.settings import Settings

_measuring = partial(option, group="Measuring", brief=True)


@dataclass(frozen=True)
class CorrelateOptions(ComputingOptions):
    """Options of ``xcorr correlate``."""

    output: Path | None = shared_options.output(text="File for the planes: .tif (float32) or .npy; for --peaks .csv.")
    form: Form = _measuring(
        "one-to-one",
        "Which left image is correlated with which right one; n-to-mn gives each left its own group of rights.",
        OneOf(choices.FORMS),
    )
    peaks: bool = flag(
        "Find the shift, score and ratio of every pair alone, without planes.",
        group="Results",
        brief=True,
    )
    max_shift: float | tuple[float, float] | None = shared_options.max_shift(unit="the full plane")
    normalization: Literal["zncc", "none", "phase"] = shared_options.normalization(group="Measuring", brief=True)
    min_overlap: float = shared_options.min_overlap(
        text="Smallest fraction of the smaller image that must overlap (zncc only); less is NaN."
    )
    subpixel: str = _measuring(
        "gaussian", "How the printed peak is located between whole pixels.", OneOf(choices.SUBPIXEL_METHODS)
    )
    channel: str | int | None = shared_options.channel(
        text="Channel to use, by its colour or its number.",
        unit="0; colour images are refused",
        group="Measuring",
        brief=True,
    )
    engine: str = shared_options.engine()
    kernel_options: KernelOptions | None = shared_options.kernel_options()
    overwrite: bool = shared_options.overwrite(text="Replace the output file if it exists.")
    explain: bool = shared_options.explain()

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.settings  # which checks its values

    @cached_property
    def settings(self) -> Settings:
        """What concerns a plane and its peak."""
        from xcorr_app.registration.settings import Settings

        own: dict[str, Any] = {
            each.name: getattr(self, each.name) for each in fields(Settings) if hasattr(self, each.name)
        }
        return Settings(**own)
