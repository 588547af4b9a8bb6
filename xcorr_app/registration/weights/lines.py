"""Rows and columns of the camera that are stuck, or parts of them: they stand still, and pin the shifts.

A line, or two next to each other, differs from what is beside it in all frames, sharply so: no optics draws a line that
does not show beside it as well. Lines of a scene that moves do not stay.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, array_namespace, to_host
from xcorr_app.registration.weights.filling import NOISE_OF_STEPS

MIN_SIDE = 64
"""Rows and columns below which a part of a line is too short to tell."""
_PARTS, _OF_PART = 8, 9
"""Parts of a line, each looked at by itself, and pixels of each whose mean, or median, is taken."""
_SAMPLED_FRAMES, _MIN_FRAMES = 5, 3
"""Frames; of fewer than the latter, parts of lines may be the scene's own, and those alone are told that are whole, or
of one value."""
_GLANCE, _DEVIATIONS = 6.0, 12.0
"""Of the noise of such means, by which a line lies beyond those beside it: at a glance, and surely."""
SAMPLE_STEPS = _GLANCE * NOISE_OF_STEPS
_REACH, _CHANCE = 0.05, 4.0
"""Share of its height, and deviations, by which what is beside a line may differ from what is next to that."""
_MAX_SHARE = 0.05
"""Of the parts of lines; more than that are the scene."""


def may_be_stuck(image: Array) -> bool:
    """Whether any line of an image (h, w), or two, lies beyond those beside: most series are told by that.

    As ``kernels/peaks/stuck_lines.cu`` does, to the bit.
    """
    for pixels in sampled(image):
        means = pixels.mean(axis=1)
        lines = _beside(means)
        most = max(height.max() for sign in (1, -1) for height in _heights([sign * line for line in lines]))
        smaller = SAMPLE_STEPS * np.abs(np.diff(means, axis=1)) < most
        if 2 * np.count_nonzero(smaller) > smaller.size:
            return True
    return False


def stuck_lines(images: Array) -> NDArray[np.bool_]:
    """Pixels (h, w) of lines that are stuck in images (n, h, w), of which the first are looked at."""
    stuck = np.zeros(images.shape[1:], dtype=bool)
    for lines, of_images in zip(
        (stuck.T, stuck), zip(*map(sampled, images[:_SAMPLED_FRAMES]), strict=True), strict=True
    ):
        pixels = np.stack(of_images)
        found = _stuck(np.sort(pixels, axis=2)[:, :, _OF_PART // 2])  # the median of few
        if len(images) < _MIN_FRAMES:
            found &= found.all(axis=0) | (pixels == pixels[:1, :, :1]).all(axis=(0, 2))
        if found.mean() <= _MAX_SHARE:
            # What is stuck may end within the next part, of which less than half then is.
            padded = np.pad(found, ((1, 1), (0, 0)))
            lines |= np.repeat(padded[:-2] | found | padded[2:], np.diff(_ends(len(lines))), axis=0)
    return stuck


def in_words(stuck: NDArray[np.bool_]) -> str:
    """Which rows and columns are stuck (Y, X), for the most part of one part of theirs."""
    lines = {
        name: np.flatnonzero(image.mean(axis=0) > 1 / (_PARTS + 1))
        for name, image in (("row", stuck.T), ("column", stuck))
    }
    return " and ".join(
        f"{name}{'s' * (found.size > 1)} {', '.join(map(str, found[:5]))}{', ...' * (found.size > 5)}"
        for name, found in lines.items()
        if found.size
    )


def sampled(image: Array) -> list[NDArray[np.float64]]:
    """A few pixels (parts, pixels, lines) of the parts of the rows of an image (h, w), and of its columns."""
    xp = array_namespace(image)
    # Both at once, since a device is waited for.
    some = [lines[xp.asarray(_places(len(lines)))] for lines in (image.T, image)]
    values = to_host(xp.concatenate([lines.ravel() for lines in some])).astype(np.float64)
    values = np.where(np.isfinite(values), values, 0.0)
    halves = np.split(values, [some[0].size])
    return [half.reshape(_PARTS, _OF_PART, -1) for half in halves]


def _beside(values: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """Values of lines (..., lines), from two lines before each to three after it; those of the rim are mirrored."""
    last = values.shape[-1] - 1
    padded = values[..., last - np.abs(last - np.abs(np.arange(-2, last + 4)))]
    return [padded[..., i : i + last + 1] for i in range(6)]


def _heights(lines: list[NDArray[np.float64]]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """By how much each line, and each with the next, lies beyond those on both sides."""
    _, left, here, right, second, _ = lines
    return here - np.maximum(left, right), np.minimum(here, right) - np.maximum(left, second)


def _stuck(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which parts of lines are stuck, by values (n, parts, lines) of all images."""
    noise = NOISE_OF_STEPS * np.median(np.abs(np.diff(values, axis=2)), axis=(1, 2), keepdims=True)
    found = np.zeros(values.shape[1:], dtype=bool)
    for lines in (_beside(values), _beside(-values)):
        before, left, here, right, second, third = lines
        sides = (here, (right, _inside(second, right, -2))), ((here + right) / 2, (second, _inside(third, second, -3)))
        for height, (value, after) in zip(_heights(lines), sides, strict=True):
            always = np.all((height > _DEVIATIONS * noise) & (noise > 0), axis=0)
            if not always.any():
                continue
            number = np.maximum(always.sum(axis=0), 1)
            for beside, farther in ((left, _inside(before, left, 1)), after):
                rise, reach = (
                    np.where(always, (each - farther).mean(axis=0), 0).sum(axis=0) / number for each in (value, beside)
                )
                always &= np.abs(reach) < _REACH * rise + _CHANCE * noise.mean() / np.sqrt(number * len(values))
            found |= always
            if value is not here:
                found[:, 1:] |= always[:, :-1]
    return found


def _inside(farther: NDArray[np.float64], beside: NDArray[np.float64], line: int) -> NDArray[np.float64]:
    """Values next to those beside lines; of this `line`, whose next is mirrored onto itself, those beside."""
    size = farther.shape[-1]
    return np.where(np.arange(size) == line % size, beside, farther)


def _ends(size: int) -> NDArray[np.intp]:
    """Where the parts of a line of a size end, and the first begins."""
    return np.arange(_PARTS + 1) * size // _PARTS


def _places(size: int) -> NDArray[np.intp]:
    """Pixels of a line of a size that are looked at, part by part."""
    ends = _ends(size)
    return np.asarray((ends[:-1, None] + np.diff(ends)[:, None] * np.arange(1, _OF_PART + 1) // (_OF_PART + 1)).ravel())
