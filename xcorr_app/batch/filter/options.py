"""What one run of ``xcorr filter`` is asked to do."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from xcorr_app.batch import choices, shared_options
from xcorr_app.batch.option import OneOf, Text, flag, option
from xcorr_app.batch.shared_options import NamedKernelOptions
from xcorr_app.errors import ArgumentError

if TYPE_CHECKING:
    import numpy as np

    from xcorr_app.batch.filter.choice import FilterChoice
    from xcorr_app.filtering.boundary import Mode
    from xcorr_app.filtering.rounding import ResultType

_filter = partial(option, None, group="Filters", brief=True)


@dataclass(frozen=True)
class FilterOptions(NamedKernelOptions):
    """Options of ``xcorr filter``: one of the filters, and how it is applied."""

    gaussian: str | None = _filter("Smooth with a Gaussian; give two numbers for rows,columns.", Text("SIGMA", str))
    box: str | None = _filter("Mean over SIZE x SIZE pixels; give two numbers for rows,columns.", Text("SIZE", str))
    sobel: str | None = _filter("Gradient down the rows (y) or along the columns (x).", Text("y|x", str))
    laplacian: bool = flag("Sum of the second differences along both axes.", group="Filters", brief=True)
    log: str | None = _filter("Laplacian of a Gaussian: blobs and edges of that size.", Text("SIGMA", str))
    dog: str | None = _filter("Difference of two Gaussians: the first minus the second.", Text("SIGMA,SIGMA", str))
    unsharp: str | None = _filter("Sharpen: add AMOUNT times what a Gaussian removes.", Text("SIGMA,AMOUNT", str))
    taps: str | None = _filter("Convolve with the numbers in a .npy, .csv or .txt file.", Text("FILE", str))
    bank: str | None = _filter(
        f"Correlate with many filters, one channel each, in floating point: {', '.join(choices.BANKS)} (lengths in "
        "pixels; gabor's waves are 4 px long at the first scale and longer by sqrt(2) at each further one), or a .npy "
        "file of (filters, rows, columns).",
        Text("NAME:ARGS", str),
    )
    border: Mode = option(
        "reflect",
        "What lies beyond the edge, as scipy.ndimage names it; valid leaves out the pixels that need it.",
        OneOf(choices.BOUNDARIES),
        group="Filters",
        brief=True,
    )
    cval: float = option(
        0.0,
        "Value beyond the edge of --border constant.",
        float,
        group="Filters",
        brief=True,
        needs={"border": ("constant",)},
    )
    dtype: ResultType | None = option(
        None,
        "Type of the result; same rounds integers and clips them to their range.",
        OneOf(choices.FILTER_TYPES),
        unit="same; float32 for sobel, laplacian, log and dog of integers",
        group="Results",
        brief=True,
    )
    kernel: Any = shared_options.kernel(
        text=f"A kernel by name; needs a GPU. {', '.join(choices.BANK_METHODS[1:])} are for --bank, others for single "
        "filters: reuse has ring buffers of rows, exchange is column and row reuse as published, separable takes "
        "filters of low rank, sliding wide Gaussians.",
        kind=OneOf((*choices.FILTER_KERNELS, *choices.BANK_METHODS[1:])),
    )
    kernel_options: tuple[str, ...] = shared_options.kernel_words(
        text="Option of a kernel, as often as needed. Of exchange: rows (of a sub-block, 56 as published), warps; "
        "column-reuse, row-reuse, shared-taps, share-last, edges-apart, yes or no. Of im2win: window-tensor, "
        "micro-kernel, vector-loads, double-buffer, prefetch, prefetch-registers, yes or no; tile-filters, "
        "tile-columns, tile-depth.",
    )
    channel: str | int | None = shared_options.channel()
    cluster: str | None = shared_options.cluster()

    def __post_init__(self) -> None:
        super().__post_init__()
        from xcorr_app.filtering.bank_request import BANK_METHODS
        from xcorr_app.filtering.kernel_names import kernel_name

        if not math.isfinite(self.cval):
            raise ArgumentError(f"cval is {self.cval}: give the value beyond the edge as a finite number")
        if self.choice.bank is None:
            kernel_name(self.asked_kernel)
        elif self.kernel not in BANK_METHODS or not self.asked_kernel:
            raise ArgumentError(f"kernel {self.kernel!r} is for single filters; banks have {', '.join(BANK_METHODS)}")

    @cached_property
    def choice(self) -> FilterChoice:
        """The one filter that was asked for."""
        from xcorr_app.batch.filter.choice import FilterChoice

        given = {name: getattr(self, name) for name in choices.FILTERS if getattr(self, name) not in (None, False)}
        listed = ", ".join(f"--{name}" for name in given or choices.FILTERS)
        if not given:
            raise ArgumentError(f"no filter was given: give one of {listed}")
        if len(given) > 1:
            raise ArgumentError(f"{listed}: give one filter; run the command again on its results for another")
        ((name, argument),) = given.items()
        return FilterChoice.parse(name, "" if argument is True else argument)

    def result_type(self, pixels: np.dtype[Any]) -> ResultType:
        """Type of the result for images of a type: half of what a derivative of integers gives is negative."""
        if self.dtype is not None:
            return self.dtype
        return "float32" if self.choice.is_derivative and pixels.kind in "iu" else "same"
