"""What a correlation kernel is asked for; the Python side of ``kernels/include/problem.cuh``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from xcorr_app.errors import ArgumentError, ShapeError


@dataclass(frozen=True)
class Problem:
    """Sizes, window of shifts and pairing of a batch of correlations.

    Pair p takes left ``p // rights_per_left`` and right ``p % rights``: one-to-one, one-to-many,
    n-to-mn (``rights = lefts * rights_per_left``) and n-to-m (``rights = rights_per_left``).

    Attributes
    ----------
    left_shape, right_shape : tuple of int
        (height, width) of one matrix.
    first_shift : tuple of int
        (dy, dx) of the plane's first element.
    plane_shape : tuple of int
        Number of shifts along y and x.
    lefts, rights, rights_per_left : int
        Number of left matrices, of right matrices, and of rights that each left is correlated with.
    canonical_batch : Problem, optional
        The batch for which kernels and their launches are chosen in place of this one, so that sums are added in one
        order however many matrices are at hand.
    """

    left_shape: tuple[int, int]
    right_shape: tuple[int, int]
    first_shift: tuple[int, int]
    plane_shape: tuple[int, int]
    lefts: int = 1
    rights: int = 1
    rights_per_left: int = 1
    canonical_batch: Problem | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        counts = (*self.left_shape, *self.right_shape, *self.plane_shape, self.lefts, self.rights, self.rights_per_left)
        if min(counts) < 1:
            raise ShapeError(f"matrices, window and batch need at least one element each: {self}")
        if max(counts) >= 2**30 or max(map(abs, self.first_shift)) >= 2**30:
            raise ArgumentError(f"sizes and shifts must stay below 2^30: {self}")
        if self.rights not in (self.rights_per_left, self.lefts * self.rights_per_left):
            raise ShapeError(
                f"{self.rights} rights for {self.lefts} lefts of {self.rights_per_left} each: "
                "give as many rights as each left is correlated with (n-to-m), or that many for every left (n-to-mn)"
            )

    @classmethod
    def full_plane(cls, left_shape: tuple[int, int], right_shape: tuple[int, int], **batch: Any) -> Problem:
        """Return the problem whose window holds every shift with an overlap."""
        first = (1 - right_shape[0], 1 - right_shape[1])
        size = (left_shape[0] + right_shape[0] - 1, left_shape[1] + right_shape[1] - 1)
        return cls(left_shape, right_shape, first, size, **batch)

    @property
    def for_choice(self) -> Problem:
        """The batch for which kernels and their launches are chosen."""
        return self.canonical_batch or self

    @property
    def pairs(self) -> int:
        """Number of planes."""
        return self.lefts * self.rights_per_left

    @property
    def shared_rights(self) -> bool:
        """Whether every left is correlated with the same rights."""
        return self.rights == self.rights_per_left

    def within_full_plane(self) -> bool:
        """Whether every shift of the window has an overlap along both axes."""
        return all(
            first > -right and first + size <= left
            for first, size, left, right in zip(
                self.first_shift, self.plane_shape, self.left_shape, self.right_shape, strict=True
            )
        )

    def arguments(self) -> tuple[int, ...]:
        """Kernel arguments, in the order of ``PROBLEM_PARAMETERS``; all are 32-bit integers."""
        return (
            *self.left_shape,
            *self.right_shape,
            *self.first_shift,
            *self.plane_shape,
            self.rights_per_left,
            self.rights,
            self.pairs,
        )

    def parts(self, max_pairs: int) -> Iterator[Part]:
        """Cut the batch into launches of at most `max_pairs` pairs."""
        m = self.rights_per_left
        lefts_at_once, rights_at_once = max(1, max_pairs // m), min(m, max_pairs)
        for left in range(0, self.lefts, lefts_at_once):
            lefts = min(lefts_at_once, self.lefts - left)
            for right in range(0, m, rights_at_once):
                count = min(rights_at_once, m - right)
                start = right if self.shared_rights else left * m + right
                rights = count if self.shared_rights else lefts * count
                part = replace(self, lefts=lefts, rights=rights, rights_per_left=count)
                yield Part(part, left, start, left * m + right)


@dataclass(frozen=True)
class Part:
    """One launch of a batch: its own problem, and where its matrices and planes begin in the batch's.

    Attributes
    ----------
    problem : Problem
        What the launch computes.
    left, right, plane : int
        Index of its first left, first right and first plane.
    """

    problem: Problem
    left: int
    right: int
    plane: int
