"""Frames of several chunks whose tiles are looked at together."""

from __future__ import annotations

import numpy as np
import pytest

from tests.registration.scenes import drifting, noise
from xcorr_app.registration.parts.seen_tiles import Seen

DRIFT = np.array([(0, 0), (1.5, -2.25), (3.25, 1), (-4.5, 4), (2, 5.75), (-1, -3.5)])


@pytest.fixture(scope="module")
def stack():
    clean = drifting(DRIFT, (101, 113), width=0.06)
    return (clean + noise(clean, 0.1)).astype(np.float32)


def said(judged):
    """What each look says, by the frame's number."""
    of_frame = {}
    for look in judged:
        numbers, found = look()
        of_frame |= dict(zip(numbers.tolist(), found.tiles, strict=True))
    return of_frame


@pytest.mark.parametrize("own", [(False, False), (True, True), (False, True)])
def test_together_as_alone(stack, own):
    """Whether a chunk's frames share the image that they are compared with, or each has its own."""
    seen = [
        Seen(
            np.array(numbers),
            stack[[0] * len(numbers) if has_own else [0]],
            stack[numbers],
            np.round(DRIFT[numbers]) + 0.25,
        )
        for numbers, has_own in zip(([1, 2], [3, 4, 5]), own, strict=True)
    ]
    alone = said(one.started() for one in seen)
    assert sorted(alone) == [1, 2, 3, 4, 5]
    shared = not any(own)
    together = said(Seen.together(seen, shared=shared))
    assert sorted(together) == sorted(alone)
    for number, tiles in alone.items():
        np.testing.assert_array_equal(together[number], tiles)
    if shared:
        apart = said(Seen.together(seen, shared=False))
        for number, tiles in alone.items():
            np.testing.assert_array_equal(apart[number], tiles)
