"""Stuck rows and columns of a camera, whole or in part: one or two pixels wide, always at the same place.

The median of a part of a line, as the value of a pixel in ``artefacts/defects.py``, lies far beyond those
of both its neighbours in each of a few frames spread over the stack, and these do not rise towards it, as they do
beside a line that optics has drawn. Lines of a scene that moves do not stay.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, array_namespace, to_host
from xcorr_app.registration.measuring.few_frames import spread
from xcorr_app.registration.stack.frames import Chunk, Frames

_LOOKED_AT, _FEWEST, _FEWEST_PARTS = 5, 2, 3
"""Frames; of fewer than the last, parts of lines may be the scene's own, and whole lines alone are told."""
_PARTS = 8
"""Of a line, each looked at by itself."""
_OF_PART = 9
"""Pixels of a part whose median is taken."""
_SMALLEST = 64
"""Rows and columns below which the median of a part is too uncertain."""
_NOISE_OF_STEPS = 1.4826 / math.sqrt(2)
_AT_A_GLANCE, _DEVIATIONS = 6.0, 12.0
"""Of the steps between neighbours, by which a stuck line lies beyond them."""
STEPS_AT_A_GLANCE = _AT_A_GLANCE * _NOISE_OF_STEPS
"""The same in median steps."""
_SHARPEST, _CHANCE = 0.95, 4.0
"""Of the height of a stuck line, what does not show beside it, as of a flickering pixel; and deviations of its own."""
_LARGEST_SHARE = 0.05
"""Of the parts of lines; more than that are the scene."""


def stuck_lines(frames: Frames, first: Chunk, *, may_be: bool = True) -> NDArray[np.bool_] | None:
    """Pixels (Y, X) of stuck rows and columns; None where there are none, which the first frame tells as a rule.

    Where a device has looked at the first frame, `may_be` is what it saw.
    """
    if not may_be or frames.count < _FEWEST or min(frames.shape) < _SMALLEST:
        return None
    always: list[NDArray[np.bool_]] | None = None
    looked_at = 0
    for number in spread(np.arange(frames.count), _LOOKED_AT).tolist():
        chunk = frames.read(number, number + 1) if number else first
        if chunk.unreadable:
            continue
        values = _sampled(chunk.frames[0])
        if always is None and not any(_may_be_stuck(each.mean(axis=1)) for each in values):
            return None
        here = [_beyond_both(np.median(each, axis=1)) for each in values]
        always = here if always is None else [one & other for one, other in zip(always, here, strict=True)]
        looked_at += 1
        if not any(found.any() for found in always):
            return None
    if always is None or looked_at < _FEWEST:
        return None
    stuck = np.zeros(frames.shape, dtype=bool)
    for (alone, pairs), image in zip(always, (stuck.T, stuck), strict=True):
        found = alone | pairs
        found[:, 1:] |= pairs[:, :-1]
        if looked_at < _FEWEST_PARTS:
            found &= found.all(axis=0)
        if found.mean() <= _LARGEST_SHARE:
            image |= np.repeat(found, np.diff(_ends(image.shape[0])), axis=0)
    return stuck if stuck.any() else None


def lines_in_words(stuck: NDArray[np.bool_]) -> str:
    """Which rows and columns are stuck (Y, X), for the most part of one part of theirs."""
    found = []
    for name, image in (("row", stuck.T), ("column", stuck)):
        numbers = np.flatnonzero(image.mean(axis=0) > 1 / (_PARTS + 1))
        if numbers.size:
            found.append(
                f"{name}{'s' * (numbers.size > 1)} {', '.join(map(str, numbers[:5]))}{', ...' * (numbers.size > 5)}"
            )
    return " and ".join(found)


def _ends(size: int) -> NDArray[np.intp]:
    """Where the parts of a line of a size end, and the first begins."""
    return np.arange(_PARTS + 1) * size // _PARTS


def _sampled(image: Array) -> list[NDArray[np.float64]]:
    """Pixels (parts, pixels, lines) of the parts of the rows of an image (h, w), and of its columns."""
    # Both at once, since a device is waited for.
    xp = array_namespace(image)
    looked_at = [(image.T if axis == 0 else image)[xp.asarray(_places(image.shape[1 - axis]))] for axis in (0, 1)]
    values = to_host(xp.concatenate([lines.ravel() for lines in looked_at])).astype(np.float64)
    values = np.where(np.isfinite(values), values, 0.0)
    return [part.reshape(_PARTS, _OF_PART, -1) for part in np.split(values, [int(looked_at[0].size)])]


def _may_be_stuck(means: NDArray[np.float64]) -> bool:
    """Whether means (parts, lines) of any line, or of two, lie beyond those beside: most series are told by that.

    As ``kernels/peaks/stuck_lines.cu`` does, to the bit.
    """
    padded = np.pad(means, ((0, 0), (1, 2)), mode="reflect")
    left, here, right, second = padded[:, :-3], padded[:, 1:-2], padded[:, 2:-1], padded[:, 3:]
    alone = np.maximum(here - np.maximum(left, right), np.minimum(left, right) - here)
    pairs = np.minimum(here, right) - np.maximum(left, second), np.minimum(left, second) - np.maximum(here, right)
    steps = np.abs(np.diff(means, axis=1))
    smaller = STEPS_AT_A_GLANCE * steps < np.maximum(alone, np.maximum(*pairs)).max()
    return bool(2 * np.count_nonzero(smaller) > steps.size)


def _places(size: int) -> NDArray[np.intp]:
    """Pixels of a line of a size that are looked at, part by part."""
    ends = _ends(size)
    of_part = np.diff(ends)[:, None] * np.arange(1, _OF_PART + 1) // (_OF_PART + 1)
    return np.asarray((ends[:-1, None] + of_part).ravel())


def _beyond_both(medians: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which medians (parts, lines) lie far and sharply beyond both beside them: (2, parts, lines) alone, as pairs.

    Of pairs the first line.
    """
    step = _NOISE_OF_STEPS * float(np.median(np.abs(np.diff(medians, axis=1))))
    least = _DEVIATIONS * step
    beyond = np.zeros((2, *medians.shape), dtype=bool)
    if not least > 0:
        return beyond
    padded = np.pad(medians, ((0, 0), (2, 3)), mode="reflect")
    count = medians.shape[1]
    for sign in (1.0, -1.0):
        before, left, here, right, second, third = (sign * padded[:, i : i + count] for i in range(6))
        alone = here - np.maximum(left, right) > least
        beyond[0] |= alone & _sharply(alone, here, ((left, before), (right, second)), step)
        pair = np.minimum(here, right) - np.maximum(left, second) > least
        pair[:, -1] = False
        beyond[1] |= pair & _sharply(pair, (here + right) / 2, ((left, before), (second, third)), step)
    return beyond


def _sharply(
    parts: NDArray[np.bool_],
    here: NDArray[np.float64],
    sides: tuple[tuple[NDArray[np.float64], NDArray[np.float64]], ...],
    step: float,
) -> NDArray[np.bool_]:
    """Whether lines (k,), by these parts (n, k) of theirs, rise as no optics draws them: not beside them as well.

    Of either side what is next to the line, and what is next to that.
    """
    number = np.maximum(parts.sum(axis=0), 1)
    sharp = np.ones(parts.shape[1], dtype=bool)
    for beside, farther in sides:
        height, reach = ((np.where(parts, value - farther, 0)).sum(axis=0) / number for value in (here, beside))
        sharp &= np.abs(reach) < (1 - _SHARPEST) * height + _CHANCE * step / np.sqrt(number)
    return sharp
