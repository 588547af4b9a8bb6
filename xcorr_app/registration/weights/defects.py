"""Outliers that are the camera's, hot, dead and flickering pixels, and hits of cosmic rays.

The camera's come back at the same place, and leave no trace beside it as points that drift do. Others are hits, unless
they are points of a scene that is not resolved: the pairs of two frames' points then have one displacement in common
(Hough's vote for a shift).
"""

from __future__ import annotations

from itertools import pairwise

import cv2
import numpy as np
import scipy  # whose parts are loaded when they are asked for
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, to_host
from xcorr_app.registration.standard_error.significance import MAX_FALSE_ALARM
from xcorr_app.registration.weights.filling import DEVIATIONS, NOISE_OF_STEPS, filled, outliers, relief

_AGAIN = 0.2
"""Share of the frames looked at in which a pixel of the camera stands out, twice at least."""
_MAX_SHARE, _STILL_SHARE, _MAX_HITS = 0.02, 0.002, 5e-4
"""Of the pixels, beyond which outliers are the scene; the same of those that optics may have drawn; and of the pixels
of a frame, beyond which hits are photons."""
_MIN_FRAMES = 3
"""Below which noise excuses nothing: a point of light may stand still in two."""
_MIN_POINTS = 8
"""Points beyond the first of each pair of frames, below which nothing is known of what they have in common."""
_PEAKS, _COMPARED, _IN_COMMON = 5, 200, 0.3
"""Times as many highest points of a frame, with which those of another are compared, as a point of light may lie on one
pixel here and on two there; points of which more say no more; and share of them that one displacement may put on
those."""


def defects(images: Array) -> tuple[NDArray[np.bool_], list[NDArray[np.intp]]]:
    """Pixels (h, w) of the camera that stand out of images (n, h, w), and points (k, 2) of each that do besides."""
    found = np.zeros(images.shape[1:], dtype=bool)
    while True:
        mended = filled(images, found[None])
        both = [outliers(image[None]) for image in mended]
        points = [np.argwhere(to_host(alone[0])) for _, alone in both]
        always, sharp = np.logical_and.reduce([to_host(beyond[0]) for beyond, _ in both]), points
        if len(images) < _MIN_FRAMES:
            sharp = [np.argwhere(to_host(outliers(image[None], 0.0)[1][0])) for image in mended]
            always = np.zeros_like(always)
        again = _come_back(sharp, always) & ~found
        # Of two next to each other, the fainter stands out once the brighter is mended.
        if not again.any() or (found | again).mean() > _MAX_SHARE:
            return found, points
        found |= again


def _come_back(points: list[NDArray[np.intp]], always: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Places (h, w) at which points (k, 2) of images lie in too many of them and nowhere beside, or `always`."""
    number = np.zeros(always.shape, dtype=np.int8)
    for of_image in points:
        number[tuple(of_image.T)] += 1
    seen, again = number > 0, number >= max(2.0, _AGAIN * len(points))
    around = cv2.boxFilter(seen.astype(np.uint8), -1, (3, 3), normalize=False, borderType=cv2.BORDER_CONSTANT)
    beside = seen & (around > 1)
    by_itself, again = seen & ~beside, again & ~beside
    # As few pairs of neighbours as the camera's are by chance (Poisson's law) are no traces of points that drift.
    if scipy.special.pdtrc(beside.sum() // 2 - 1, 4 * again.sum() ** 2 / seen.size) > MAX_FALSE_ALARM:
        by_itself |= beside & (number > 1)
    # Where most come back, the others have not been seen twice by chance.
    found: NDArray[np.bool_] = by_itself if 2 * again.sum() >= by_itself.sum() else again
    return found | always if always.mean() <= _STILL_SHARE else found


def hits(images: Array, points: list[NDArray[np.intp]]) -> float:
    """Pixels of a frame that are hit, as a rule, by points (k, 2) of images; 0 where these are points of the scene."""
    found = [len(each) for each in points]
    pairs = [(i, j) for i, j in pairwise(range(len(points))) if found[i] and found[j]]
    known = sum(min(found[i], found[j]) - 1 for i, j in pairs) >= _MIN_POINTS
    if not known or max(found) > _MAX_HITS * images[0].size:
        return 0.0
    some = [each[:: 1 + len(each) // _COMPARED] for each in points]
    common = sum(_in_common(some[i], _brightest(images[j], _PEAKS * found[j])) - 1 for i, j in pairs)
    return 0.0 if common > _IN_COMMON * sum(len(some[i]) - 1 for i, _ in pairs) else float(np.median(found))


def _brightest(image: Array, number: int) -> NDArray[np.intp]:
    """Places (n, 2) of the highest points of an image (h, w), none beside is higher."""
    above, _, between, steps = (to_host(each[0]) for each in relief(image[None]))
    height = np.where(above >= 0, above + between, 0)
    height[height <= DEVIATIONS * NOISE_OF_STEPS * np.median(steps)] = 0
    places = np.argwhere(height)
    return np.asarray(places[np.argsort(-height[tuple(places.T)], kind="stable")[:number]])


def _in_common(one: NDArray[np.intp], other: NDArray[np.intp]) -> int:
    """Points (n, 2) that the best displacement puts on others (m, 2), to a pixel."""
    moves = (other[None] - one[:, None]).reshape(-1, 2)
    moves -= moves.min(axis=0) - 1
    votes = np.zeros(moves.max(axis=0) + 2, dtype=np.intp)
    np.add.at(votes, tuple(moves.T), 1)
    rows = votes[:-2] + votes[1:-1] + votes[2:]
    return int((rows[:, :-2] + rows[:, 1:-1] + rows[:, 2:]).max())
