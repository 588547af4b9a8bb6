"""The four forms of a correlation: which left matrix is correlated with which right matrix.

Every form is one broadcast of the leading axes ``(N, M)``: a left operand becomes ``(N, 1, H, W)`` (or
``(1, 1, H, W)``), a right one ``(1 or N, M, H', W')``. Engines work on these, results get the form's shape back.
"""

from __future__ import annotations

from typing import Literal, get_args

from xcorr_app.errors import ArgumentError, ShapeError
from xcorr_app.gpu.runtime.arrays import Array

Form = Literal["one-to-one", "one-to-many", "n-to-mn", "n-to-m"]
FORMS: tuple[str, ...] = get_args(Form)

# form -> (axes of left, axes of right)
_DIMENSIONS = {"one-to-one": (2, 2), "one-to-many": (2, 3), "n-to-mn": (3, 4), "n-to-m": (3, 3)}


def check_form(left: Array, right: Array, form: str) -> None:
    """Raise unless the operands' shapes belong to the form and hold at least one element.

    Raises
    ------
    ArgumentError
        If `form` is unknown.
    ShapeError
        If an operand has the wrong number of axes, no elements, or the numbers of matrices do not match.
    """
    if form not in _DIMENSIONS:
        raise ArgumentError(f"unknown form {form!r}: use one of {', '.join(FORMS)}")
    for name, array, axes in zip(("left", "right"), (left, right), _DIMENSIONS[form], strict=True):
        if array.ndim != axes:
            raise ShapeError(f"{name} has shape {array.shape}; form {form!r} needs {axes} axes")
        if array.size == 0:
            raise ShapeError(f"{name} has shape {array.shape} and so no elements to correlate")
    if form == "n-to-mn" and left.shape[0] != right.shape[0]:
        raise ShapeError(
            f"form 'n-to-mn' pairs each of {left.shape[0]} left matrices with its own right ones, "
            f"but right holds {right.shape[0]} sets"
        )


def broadcast_left(left: Array) -> Array:
    """View of `left` as ``(N, 1, H, W)``."""
    return left[None, None] if left.ndim == 2 else left[:, None]


def broadcast_right(right: Array) -> Array:
    """View of `right` as ``(1 or N, M, H', W')``."""
    if right.ndim == 2:
        return right[None, None]
    return right[None] if right.ndim == 3 else right


def result_shape(left_batch: tuple[int, ...], right_batch: tuple[int, ...], form: str) -> tuple[int, ...]:
    """Leading axes of the result: ``()``, ``(M,)`` or ``(N, M)``."""
    if form == "one-to-one":
        return ()
    if form == "one-to-many":
        return (right_batch[1],)
    return (left_batch[0], right_batch[1])
