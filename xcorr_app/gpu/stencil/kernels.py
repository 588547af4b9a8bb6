"""Every filter kernel: what it takes, how it is launched, what it is expected to cost, and where it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from xcorr_app.gpu.runtime.kernel_table import KernelEntry
from xcorr_app.gpu.runtime.launch import Launch
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.gpu.stencil import banded, costs, reuse, separable, sliding
from xcorr_app.gpu.stencil.cosine_series import MIN_RADIUS, TOLERANCE, gaussian_radius, gaussian_series, start_table
from xcorr_app.gpu.stencil.problem import FilterProblem
from xcorr_app.gpu.stencil.separable import MAX_TERMS, SeparableProblem, Vector

__all__ = ["KERNELS", "FilterTask", "prefers_banded"]

_SURELY_LESS = 0.7
"""Expected time of tensor cores over that of ``separable`` below which they were faster by every measurement."""
_MEASURED = 90
"""Compute capability of the device whose times decide between `banded` and `separable`."""


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

    @property
    def same_taps(self) -> bool:
        """Whether the columns' taps are the rows'."""
        return bool(self.terms) and np.array_equal(*self.terms[0])


def prefers_banded(task: FilterTask, limits: DeviceLimits) -> bool:
    """Whether tensor cores are the faster ones, as far as measured: on devices of compute capability 9.0."""
    if limits.compute_capability != _MEASURED or _why_not_banded(task, limits) is not None:
        return False
    if banded.is_faster_banded(task.separable, same_taps=task.same_taps):
        return True
    if _why_not_separable(task, limits) is not None:
        return False
    return _banded_cost(task, limits) < _SURELY_LESS * _separable_cost(task, limits)


def _reuse(name: str, document: str, *, is_chosen: bool = True) -> KernelEntry[FilterTask]:
    def accepts(task: FilterTask, _: DeviceLimits) -> str | None:
        return reuse.why_not(name, task.problem, is_double=task.is_double)

    def launch(task: FilterTask, limits: DeviceLimits, tuning: Mapping[str, int] | None = None) -> Launch:
        types: Any = {"image_type": task.image_type, "result_type": task.result_type, "double_sums": task.double_sums}
        return reuse.filter_launch(task.problem, name, **types, device=limits, tuning=tuning)

    def cost(task: FilterTask, limits: DeviceLimits) -> float:
        types = task.image_type, task.result_type
        return costs.reuse_cost(task.problem, *types, is_double=task.is_double, limits=limits)

    sources = (f"stencil/{name}",)
    return KernelEntry(name, sources, accepts, launch, cost if is_chosen else None, reuse.TUNABLES[name], document)


def _why_not_separable(task: FilterTask, _: DeviceLimits) -> str | None:
    if not 0 < len(task.terms) <= MAX_TERMS:
        return "needs taps of rank 1 or 2"
    if not separable.fits_one_pass(task.problem.filter_shape, task.summed_type):
        return f"taps of shape {task.problem.filter_shape} are too long for one pass over {task.summed_type}"
    return None


def _separable_launch(task: FilterTask, limits: DeviceLimits, tuning: Mapping[str, int] | None = None) -> Launch:
    types: Any = {"image_type": task.summed_type, "result_type": task.result_type}
    return separable.separable_launch(task.separable, **types, device=limits, tuning=tuning)


def _separable_cost(task: FilterTask, limits: DeviceLimits) -> float:
    types = task.summed_type, task.result_type
    return costs.separable_cost(task.problem, *types, terms=len(task.terms), limits=limits)


def _why_not_banded(task: FilterTask, limits: DeviceLimits) -> str | None:
    fits = len(task.terms) == 1 and banded.fits_banded(
        task.separable, *task.terms[0], task.summed_type, task.result_type
    )
    if fits and limits.has_tensor_cores:
        return None
    return (
        f"kernel 'banded' takes one term of 2 to {banded.LONGEST} taps an axis, float32 to float32, "
        "from compute capability 8.0 on"
    )


def _banded_launch(task: FilterTask, limits: DeviceLimits, tuning: Mapping[str, int] | None = None) -> Launch:
    return banded.banded_launch(task.separable, same_taps=task.same_taps, device=limits, tuning=tuning)


def _banded_cost(task: FilterTask, limits: DeviceLimits) -> float:
    return costs.banded_cost(task.problem, limits)


def _why_not_sliding(task: FilterTask, _: DeviceLimits) -> str | None:
    if task.sigmas is None or any(task.problem.origin) or task.problem.boundary == "valid":
        return "sliding sums are for centred Gaussians of integers or float32, and for boundaries but 'valid'"
    if min(map(gaussian_radius, task.sigmas)) < MIN_RADIUS:
        return f"sliding sums are for windows that reach {MIN_RADIUS} pixels or more"
    return None


def _sliding_launch(task: FilterTask, limits: DeviceLimits, tuning: Mapping[str, int] | None = None) -> Launch:
    """Return the first of the two passes, over the columns."""
    series = gaussian_series((task.sigmas or (0.0, 0.0))[0], tolerance=TOLERANCE)
    problem = sliding.SlidingPass(task.problem.image_shape, task.problem.count, task.problem.boundary)
    rows = sliding.segment_rows(problem, series, sum_type="double", device=limits)
    table = start_table(series, problem.image_shape[0], rows, problem.boundary)
    return sliding.sliding_launch(problem, series, table, rows, image_type=task.image_type, tuning=tuning)


def _sliding_cost(task: FilterTask, limits: DeviceLimits) -> float:
    return costs.sliding_cost(task.problem, task.image_type, task.result_type, limits)


_EXCHANGE = "Column Reuse, Algorithms 1 and 2 (exchange of columns by shuffles), Row Reuse, Putting Together"

KERNELS: Mapping[str, KernelEntry[FilterTask]] = {
    entry.name: entry
    for entry in (
        _reuse("reuse", "Column Reuse, Row Reuse, Putting Together"),
        _reuse("reuse_wide", "Column Reuse, Row Reuse, Putting Together; for large filters"),
        _reuse("exchange", _EXCHANGE, is_chosen=False),
        KernelEntry(
            "separable",
            ("stencil/separable",),
            _why_not_separable,
            _separable_launch,
            _separable_cost,
            separable.TUNABLES,
            "Row Reuse, along both axes of taps of low rank",
        ),
        KernelEntry(
            "banded",
            ("stencil/banded", "stencil/separable"),
            _why_not_banded,
            _banded_launch,
            _banded_cost,
            banded.TUNABLES,
            "Row Reuse, as products with a band of taps on tensor cores",
        ),
        KernelEntry(
            "sliding",
            ("stencil/sliding",),
            _why_not_sliding,
            _sliding_launch,
            _sliding_cost,
            sliding.TUNABLES,
            "Sugimoto and Kamata (2013), doi 10.1109/ICIP.2013.6738106: second-order shift property",
        ),
    )
}
"""By the name under which a user asks for it."""
