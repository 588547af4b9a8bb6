"""What is drawn into frames: captions, clocks, frames around the picture, what lies outside a sector.

It stands still whatever the scene does. It is known by its values: pixels that hold one and the same value in frames
spread over the series were never seen by a sensor with noise; those next to them change from frame to frame, and are as
far from that value as those farther away are, where what is empty or saturated in a scene ends in slopes. What is drawn
now and then beside them in the same colours, as the digits of a clock are, belongs to them.
"""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

MIN_SHARE, _MAX_SHARE = 0.002, 0.95
"""Of the pixels: less than the former are left to the search for outliers, more leaves no scene."""
_MIN_FRAMES, _OF_COLOURS = 4, 0.95
"""Frames, in fewer of which a flat scene of 8 bits holds its values, too; and share of what is drawn there that has one
of its colours."""
_AS_BEFORE = 0.3
"""Share of the pixels next to those drawn that have the value they had in the first frame, beyond which none is."""
_MIN_OF_COLOUR, _NOW_AND_THEN = 0.05, 0.12
"""Share of what is drawn that has a colour of it; and of the frames in which a pixel beside it has one if it is drawn.
"""
_GAP, _RIM = 4, 1
"""Pixels between what is drawn, twice the former, and around it that are left out with it: strokes have soft sides."""
_AWAY, _SHARP = (4, 5), 0.6
"""Pixels from what is drawn, and the share of how far values lie from its own there that those next to it do."""


def overlay(images: NDArray[np.generic]) -> NDArray[np.bool_]:
    """Pixels (h, w) that are drawn into all images (n, h, w)."""
    nothing = np.zeros(images.shape[1:], dtype=bool)
    same = images[1:] == images[0]
    held = same.all(axis=0)
    if not held.mean() > MIN_SHARE:  # of these some are left at most
        return nothing
    # Pixels alone keep their values by chance, and stuck lines are narrower.
    held = _with(_morphed(held, cv2.MORPH_OPEN), held)
    beside = _morphed(held, cv2.MORPH_DILATE) & ~held
    if not MIN_SHARE < held.mean() < _MAX_SHARE or not beside.any():
        return nothing
    if same[:, beside].mean() > _AS_BEFORE:
        return nothing
    held &= ends_sharply(images, held)
    if held.mean() < MIN_SHARE:
        return nothing
    values, number = np.unique(images[0][held], return_counts=True)
    is_colour = number > _MIN_OF_COLOUR * held.sum()
    if len(images) < _MIN_FRAMES and number[is_colour].sum() < _OF_COLOURS * held.sum():
        return nothing
    coloured = np.logical_or.reduce([np.zeros(images.shape, bool), *(images == value for value in values[is_colour])])
    again = coloured.sum(axis=0) / len(images) > _NOW_AND_THEN
    # Words whose letters are near each other hang together, and with them what is drawn only now and then.
    near = _morphed(np.pad(held | again, _GAP, mode="edge"), cv2.MORPH_CLOSE, _GAP)
    found = _morphed(_with(held, near[_GAP:-_GAP, _GAP:-_GAP]), cv2.MORPH_DILATE)
    return found if found.mean() < _MAX_SHARE else nothing


def _morphed(pixels: NDArray[np.bool_], how: int, reach: int = _RIM) -> NDArray[np.bool_]:
    """Pixels (h, w) opened, closed or dilated by a square that reaches so far; none lie beyond the rim."""
    square = np.ones((2 * reach + 1,) * 2, dtype=np.uint8)
    found = cv2.morphologyEx(pixels.view(np.uint8), how, square, borderType=cv2.BORDER_CONSTANT, borderValue=0)
    return np.asarray(found, bool)


def _with(seeds: NDArray[np.bool_], areas: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Pixels (h, w) of the areas, also joined at corners, that hold one of the seeds, all of which lie in one."""
    number, area = cv2.connectedComponents(areas.astype(np.uint8), connectivity=8)
    return np.asarray((np.bincount(area[seeds], minlength=number) > 0)[area])


def ends_sharply(images: NDArray[np.generic], held: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Pixels (h, w) of the areas held by images (n, h, w) at whose rim values do not come near theirs."""
    number, area = cv2.connectedComponents(held.view(np.uint8), connectivity=8)
    far, label = cv2.distanceTransformWithLabels((~held).view(np.uint8), cv2.DIST_C, 5, labelType=cv2.DIST_LABEL_PIXEL)
    distance, label, places = np.asarray(far).ravel(), np.asarray(label).ravel(), np.flatnonzero(held)
    near = np.flatnonzero((distance > 0) & (distance <= _AWAY[1]))
    # The nearest of those held, by labels in an order of their own: as a rule that of the pixels.
    nearest, distance = places[np.argsort(label[places], kind="stable")][label[near] - 1], distance[near]
    off = np.mean([np.abs(image[near].astype(np.float64) - image[nearest]) for image in map(np.ravel, images)], axis=0)
    means = []
    for first, last in ((1, 1), _AWAY):
        chosen = (distance >= first) & (distance <= last)
        total, count = (np.bincount(area.ravel()[nearest[chosen]], each, number) for each in (off[chosen], None))
        means.append(total / np.maximum(count, 1))
    beside, away = means
    # Where nothing lies farther away nothing is known.
    return np.asarray((beside >= _SHARP * away)[area])
