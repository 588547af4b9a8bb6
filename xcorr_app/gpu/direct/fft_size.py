"""How long a transform must be so that a window of shifts is free of wrap-around."""

from __future__ import annotations

import functools


def smallest_size(left: int, right: int, lowest: int, highest: int) -> int:
    """Smallest transform length at which no shift in [lowest, highest] meets a wrapped-around one.

    The linear correlation lives on shifts [1 - right, left - 1]; a transform of length N adds shift d to d + N and
    d - N, so N must exceed both left - 1 - lowest and right - 1 + highest. Both matrices must fit as well, and no
    two shifts of the window may fall on the same element. Shifts without any overlap do not count: their sum is zero
    without a transform.
    """
    lowest, highest = max(lowest, 1 - right), min(highest, left - 1)
    return max(left - lowest, right + highest, left, right, highest - lowest + 1)


@functools.lru_cache(maxsize=1024)
def fast_length(least: int) -> int:
    """Return the smallest length from `least` on that cuFFT transforms fast: a product of 2, 3, 5 and 7."""
    length = least
    while not _is_smooth(length):
        length += 1
    return length


def _is_smooth(number: int) -> bool:
    for prime in (2, 3, 5, 7):
        while number % prime == 0:
            number //= prime
    return number == 1
