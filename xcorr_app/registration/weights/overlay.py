"""What is drawn into frames: captions, clocks, frames around the picture, what lies outside a sector.

It stands still whatever the scene does. It is known by its values: pixels that hold one and the same value in frames
spread over the series were never seen by a sensor with noise; those next to them change from frame to frame, and are as
far from that value as those farther away are, where what is empty or saturated in a scene ends in slopes. What is drawn
now and then beside them in the same colours, as the digits of a clock are, belongs to them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

MIN_SHARE, _LARGEST_SHARE = 0.002, 0.95
"""Of the pixels: less than the former are left to the search for outliers, more leaves no scene."""
_FEWEST, _OF_COLOURS = 4, 0.95
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
    import cv2
    from scipy import ndimage

    around = np.ones((3, 3), dtype=bool)
    nothing = np.zeros(images.shape[1:], dtype=bool)
    held = (images[1:] == images[0]).all(axis=0)
    # Pixels alone keep their values by chance, and stuck lines are narrower.
    held = ndimage.binary_propagation(ndimage.binary_opening(held, around), around, held)
    beside = ndimage.binary_dilation(held, around) & ~held
    if not MIN_SHARE < held.mean() < _LARGEST_SHARE or not beside.any():
        return nothing
    if (images[1:] == images[0])[:, beside].mean() > _AS_BEFORE:
        return nothing
    held &= ends_sharply(images, held)
    if held.mean() < MIN_SHARE:
        return nothing
    values, number = np.unique(images[0][held], return_counts=True)
    is_colour = number > _MIN_OF_COLOUR * held.sum()
    if len(images) < _FEWEST and number[is_colour].sum() < _OF_COLOURS * held.sum():
        return nothing
    again = np.isin(images, values[is_colour]).mean(axis=0) > _NOW_AND_THEN
    # Words whose letters are near each other hang together, and with them what is drawn only now and then.
    padded, side = np.pad(held | again, _GAP, mode="edge").astype(np.uint8), np.ones((2 * _GAP + 1,) * 2)
    near = cv2.morphologyEx(padded, cv2.MORPH_CLOSE, side, borderType=cv2.BORDER_CONSTANT, borderValue=0) > 0
    part = ndimage.binary_propagation(held, around, near[_GAP:-_GAP, _GAP:-_GAP])
    found: NDArray[np.bool_] = ndimage.binary_dilation(part, around, iterations=_RIM)
    return found if found.mean() < _LARGEST_SHARE else nothing


def ends_sharply(images: NDArray[np.generic], held: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Pixels (h, w) of the areas held by images (n, h, w) at whose rim values do not come near theirs."""
    from scipy import ndimage

    area, number = ndimage.label(held, np.ones((3, 3)))
    distance, nearest = ndimage.distance_transform_cdt(~held, "chessboard", return_indices=True)
    near = (distance > 0) & (distance <= _AWAY[1])
    distance, (y, x) = distance[near], nearest[:, near]
    off = np.mean([np.abs(image[near].astype(np.float64) - image[y, x]) for image in images], axis=0)
    means = []
    for first, last in ((1, 1), _AWAY):
        chosen = (distance >= first) & (distance <= last)
        total, count = (np.bincount(area[y, x][chosen], each, number + 1) for each in (off[chosen], None))
        means.append(total / np.maximum(count, 1))
    beside, away = means
    # Where nothing lies farther away nothing is known.
    sharp: NDArray[np.bool_] = (beside >= _SHARP * away)[area]
    return sharp
