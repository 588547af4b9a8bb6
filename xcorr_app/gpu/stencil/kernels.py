"""Every filter kernel: what it takes, how it is launched, and where it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from xcorr_app.gpu.runtime.kernel_table import KernelEntry
from xcorr_app.gpu.runtime.launch import Launch
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.gpu.stencil import reuse, separable, sliding
from xcorr_app.gpu.stencil.cosine_series import (
    EXACT_TOLERANCE,
    MIN_RADIUS,
    TOLERANCE,
    gaussian_radius,
    gaussian_series,
    start_table,
)
from xcorr_app.gpu.stencil.problem import FilterProblem
from xcorr_app.gpu.stencil.separable import MAX_TERMS, SeparableProblem, Vector


@dataclass(frozen=True, eq=False)
class FilterTask:
    """What the table is asked: sizes, types, and what is known of the taps.

    Attributes
    ----------
    problem : FilterProblem
        Sizes, boundary and origin.
    image_type, result_type : str
        NumPy names.
    double_sums : bool
        Sums must be float64, whatever the images are.
    terms : tuple of (column, row)
        The taps as a sum of separable terms; empty where there are too many.
    sigmas : tuple of float or None
        Of a Gaussian, rows and columns.
    """

    problem: FilterProblem
    image_type: str = "float32"
    result_type: str = "float32"
    double_sums: bool = False
    terms: tuple[tuple[Vector, Vector], ...] = ()
    sigmas: tuple[float, float] | None = None

    @property
    def is_double(self) -> bool:
        """Whether sums are float64."""
        return self.double_sums or self.image_type == "float64"

    @property
    def summed_type(self) -> str:
        """Type of the images as kernels that sum in the images' type take them."""
        return "float64" if self.double_sums else self.image_type

    @property
    def separable(self) -> SeparableProblem:
        """The same sizes with the number of terms."""
        p = self.problem
        return SeparableProblem(
            p.image_shape, p.filter_shape, p.count, p.boundary, p.origin, min(max(1, len(self.terms)), MAX_TERMS)
        )


def _reuse(name: str) -> KernelEntry[FilterTask]:
    def accepts(task: FilterTask, _: DeviceLimits) -> str | None:
        return reuse.why_not(name, task.problem, is_double=task.is_double)

    def launch(task: FilterTask, limits: DeviceLimits, tuning: Mapping[str, int] | None = None) -> Launch:
        types: Any = {"image_type": task.image_type, "result_type": task.result_type, "double_sums": task.double_sums}
        return reuse.filter_launch(task.problem, name, **types, device=limits, tuning=tuning)

    return KernelEntry(name, (f"stencil/{name}",), accepts, launch, tunables=reuse.TUNABLES[name])


def _why_not_separable(task: FilterTask, _: DeviceLimits) -> str | None:
    if not 0 < len(task.terms) <= MAX_TERMS:
        return "needs taps of rank 1 or 2"
    if not separable.fits_one_pass(task.problem.filter_shape, task.summed_type):
        return f"taps of shape {task.problem.filter_shape} are too long for one pass over {task.summed_type}"
    return None


def _separable_launch(task: FilterTask, limits: DeviceLimits, tuning: Mapping[str, int] | None = None) -> Launch:
    types: Any = {"image_type": task.summed_type, "result_type": task.result_type}
    return separable.separable_launch(task.separable, **types, device=limits, tuning=tuning)


def _why_not_sliding(task: FilterTask, _: DeviceLimits) -> str | None:
    if task.sigmas is None or any(task.problem.origin) or task.problem.boundary == "valid":
        return "sliding sums are for centred Gaussians of integers or float32, and for boundaries but 'valid'"
    if min(map(gaussian_radius, task.sigmas)) < MIN_RADIUS:
        return f"sliding sums are for windows that reach {MIN_RADIUS} pixels or more"
    return None


def _sliding_launch(task: FilterTask, limits: DeviceLimits, tuning: Mapping[str, int] | None = None) -> Launch:
    """Return the first of the two passes, over the columns."""
    sum_type = sliding.sum_type_for(task.result_type)
    series = gaussian_series((task.sigmas or (0.0, 0.0))[0], EXACT_TOLERANCE if sum_type == "double" else TOLERANCE)
    problem = sliding.SlidingPass(task.problem.image_shape, task.problem.count, task.problem.boundary)
    rows = sliding.segment_rows(problem, series, sum_type=sum_type, device=limits)
    table = start_table(series, problem.image_shape[0], rows, problem.boundary)
    types: Any = {"image_type": task.image_type, "sum_type": sum_type}
    return sliding.sliding_launch(problem, series, table, rows, **types, tuning=tuning)


KERNELS: Mapping[str, KernelEntry[FilterTask]] = {
    entry.name: entry
    for entry in (
        _reuse("reuse"),
        _reuse("reuse_wide"),
        _reuse("exchange"),
        KernelEntry(
            "separable",
            ("stencil/separable",),
            _why_not_separable,
            _separable_launch,
            tunables=separable.TUNABLES,
        ),
        KernelEntry(
            "sliding",
            ("stencil/sliding",),
            _why_not_sliding,
            _sliding_launch,
            tunables=sliding.TUNABLES,
        ),
    )
}
"""By the name under which a user asks for it."""
