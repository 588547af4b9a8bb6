"""Every filter kernel by name, and what it takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from xcorr_app.gpu.stencil import reuse
from xcorr_app.gpu.stencil.cosine_series import MIN_RADIUS, gaussian_radius
from xcorr_app.gpu.stencil.problem import FilterProblem
from xcorr_app.gpu.stencil.separable import MAX_TERMS, Vector, fits_one_pass


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


def _of_reuse(name: str) -> Callable[[FilterTask], str | None]:
    return lambda task: reuse.why_not(name, task.problem, is_double=task.is_double)


def _why_not_separable(task: FilterTask) -> str | None:
    if not 0 < len(task.terms) <= MAX_TERMS:
        return "needs taps of rank 1 or 2"
    if not fits_one_pass(task.problem.filter_shape, task.summed_type):
        return f"taps of shape {task.problem.filter_shape} are too long for one pass over {task.summed_type}"
    return None


def _why_not_sliding(task: FilterTask) -> str | None:
    if task.sigmas is None or any(task.problem.origin) or task.problem.boundary == "valid":
        return "sliding sums are for centred Gaussians of integers or float32, and for boundaries but 'valid'"
    if min(map(gaussian_radius, task.sigmas)) < MIN_RADIUS:
        return f"sliding sums are for windows that reach {MIN_RADIUS} pixels or more"
    return None


WHY_NOT: Mapping[str, Callable[[FilterTask], str | None]] = {
    **{name: _of_reuse(name) for name in reuse.FILTER_KERNELS},
    "separable": _why_not_separable,
    "sliding": _why_not_sliding,
}
"""Every kernel by the name under which a user asks for it, and why it does not take a task; None where it does."""
