"""The two sides of a correlation: what the files hold, and how a form lays it out."""

from __future__ import annotations

import math
from collections.abc import Iterator

from xcorr_app.errors import ShapeError
from xcorr_app.io.matrices import MatrixFile


def operand_shapes(left: MatrixFile, right: MatrixFile, form: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shapes in which two files are correlated: (N, H, W), and (M, H', W'), or (N, M, H', W') for ``n-to-mn``.

    N is 1 for the forms with one left matrix. Raises ShapeError where the numbers of images belong to another form, and
    says to which.
    """
    lefts = _count(left, "LEFT")
    if form == "n-to-mn":
        return (lefts, *left.shape[-2:]), (lefts, _rights_per_left(right, lefts), *right.shape[-2:])
    rights = _count(right, "RIGHT")
    if (form == "one-to-one" and (lefts, rights) != (1, 1)) or (form == "one-to-many" and lefts != 1):
        raise ShapeError(
            f"form {form} takes one image from LEFT{' and one from RIGHT' if form == 'one-to-one' else ''}; "
            f"{left.path} holds {lefts}, {right.path} {rights}: {_fitting(lefts, rights)}"
        )
    return (lefts, *left.shape[-2:]), (rights, *right.shape[-2:])


def blocks(
    left_shape: tuple[int, ...], right_shape: tuple[int, ...], pairs_at_once: int
) -> Iterator[tuple[slice, tuple[slice, ...]]]:
    """Cut the pairs of two operands into blocks, in the order of the planes: slices of their leading axes."""
    own = len(right_shape) == 4
    lefts, rights = left_shape[0], right_shape[-3]
    across = max(1, min(rights, pairs_at_once))
    # Several lefts only where each takes all its rights: the planes of a block then follow each other in the file.
    down = max(1, pairs_at_once // rights)
    for i in range(0, lefts, down):
        some_lefts = slice(i, min(i + down, lefts))
        for j in range(0, rights, across):
            some_rights = slice(j, min(j + across, rights))
            yield some_lefts, (some_lefts, some_rights) if own else (some_rights,)


def _count(file: MatrixFile, side: str) -> int:
    if len(file.shape) > 3:
        first, second = file.shape[:2]
        raise ShapeError(
            f"{file.path}: holds {first} x {second} images along two axes; {side} takes a stack along one "
            "(only RIGHT of --form n-to-mn takes two): save a part of it"
        )
    return math.prod(file.shape[:-2])


def _rights_per_left(right: MatrixFile, lefts: int) -> int:
    if len(right.shape) > 3:
        sets, per_left = right.shape[:2]
        if sets != lefts:
            raise ShapeError(f"{right.path}: holds {sets} sets of {per_left} images for {lefts} left ones (n-to-mn)")
        return per_left
    rights = math.prod(right.shape[:-2])
    if rights % lefts:
        raise ShapeError(
            f"{right.path}: its {rights} images cannot be shared out evenly among {lefts} left ones; form n-to-mn "
            "takes N left and N x M right images, form n-to-m every left with every right"
        )
    return rights // lefts


def _fitting(lefts: int, rights: int) -> str:
    if lefts == 1:
        return "use --form one-to-many"
    every = "use --form n-to-m for every left with every right"
    if rights % lefts:
        return every
    return f"{every}, or --form n-to-mn for each left with {rights // lefts} of its own"
