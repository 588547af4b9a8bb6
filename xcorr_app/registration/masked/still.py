"""What is drawn into frames: captions, clocks, frames around the picture, what lies outside a sector, empty borders.

It stands still whatever the scene does, and pins the shifts. Two kinds are known by their values alone. Pixels that
hold one and the same value in frames spread over the series were never seen by a sensor with noise; those next to
them must change from frame to frame, or they are a part of the scene that is empty or saturated. What is drawn now and
then beside them in the same colours, as the digits of a clock are, belongs to them. Rows and columns of one value at
the rim of a frame, next to others that are not, are what frames that were moved before have been filled with; each
frame has its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, array_namespace, to_host
from xcorr_app.registration.few_frames import spread
from xcorr_app.registration.frames import Frames
from xcorr_app.registration.masked.rules import Masks

_LOOKED_AT, _FEWEST = 16, 4
"""Frames that are looked at, spread over the stack; of fewer than the latter, what changes is not known."""
_MIN_SHARE, _LARGEST_SHARE = 0.002, 0.7
"""Of the pixels: less than the former is left to the search for defects, more leaves no scene."""
_NEIGHBOURS = 3
"""Of the eight around a pixel that are drawn as well; a pixel alone keeps its value by chance."""
_AS_BEFORE = 0.3
"""Share of the pixels next to those drawn that have the value they had in the first frame, beyond which none is."""
_COLOURS, _MIN_OF_COLOUR = 4, 0.05
"""Values that are drawn, at most, and the share of what is drawn that has each."""
_NOW_AND_THEN = 0.12
"""Share of the frames in which a pixel has one of them, from which it is drawn if it lies beside what always is."""
_GAP, _RIM = 4, 1
"""Pixels between what is drawn, twice the former, and around it that are left out with it: strokes have soft sides."""
_WIDEST_LINE = 2
"""Pixels across a line of the camera that is stuck."""
_SMALLEST = 32
"""Rows and columns below which nothing is looked for."""
_OF_BORDER = 0.5
"""Share of the row or column inside a border that may have the border's value."""


@dataclass(frozen=True, eq=False)
class Drawn(Masks):
    """All pixels count but those drawn into frames: a part (Y, X) of all of them, and borders of each."""

    rule: str = "drawn"
    part: NDArray[np.bool_] | None = None
    borders: bool = False
    looked_at: tuple[int, ...] = ()
    """Frames whose borders are known, and"""
    widths: NDArray[np.intp] | None = None
    """(n, 2, 2) pixels of each at either end of rows and columns."""

    def __post_init__(self) -> None:
        """Take what was found as it is."""

    def of_frames(self, frames: Array, start: int, *, reference: bool = False) -> Array:
        """Which pixels (n, h, w) of frames count."""
        xp = array_namespace(frames)
        counts = xp.isfinite(frames)
        if self.part is not None:
            counts &= ~xp.asarray(self.part)
        if self.borders:
            widths, shape = _border_widths(frames), frames.shape[1:]
            for axis, of_axis in enumerate(widths.transpose(1, 2, 0)):
                place = np.arange(shape[axis])
                # What interpolation made of the border and the scene is left out too.
                first, last = (np.where(width > 0, width + _RIM, 0)[:, None] for width in of_axis)
                inside = xp.asarray((place >= first) & (place < shape[axis] - last))
                counts &= inside[:, :, None] if axis == 0 else inside[:, None]
        return counts

    def matters(self, shifts: NDArray[np.float64]) -> bool:
        """Whether any of it is compared with the scene, by the shifts (T, 2) of the frames.

        A frame that was moved once, and not back, has borders where the reference shows nothing.
        """
        if self.part is not None or self.widths is None:
            return True
        hidden = np.stack([-shifts[list(self.looked_at)], shifts[list(self.looked_at)]], axis=-1)
        with np.errstate(invalid="ignore"):
            return bool((self.widths - np.maximum(hidden, 0) > _RIM + 0.5).any())

    def note(self, share: float) -> str:
        """Say what was left out."""
        found = []
        if self.part is not None:
            found.append(
                f"{100 * self.part.mean():.1f} % of the picture, which is drawn into every frame and not seen by the "
                "camera (it holds the same values throughout: captions, a frame around the picture)"
            )
        if self.borders:
            found.append("borders of a single value, which frames that were moved before are filled with")
        return f"Left out of the measurement: {'; '.join(found)}."


def drawn(frames: Frames) -> Drawn | None:
    """What is drawn into a stack; None where nothing is, which three frames tell as a rule."""
    if frames.count < _FEWEST or min(frames.shape) < _SMALLEST:
        return None
    numbers = spread(np.arange(frames.count), _LOOKED_AT).tolist()
    at_once = [numbers[0], numbers[-1], numbers[len(numbers) // 2]]
    images = _images(frames, at_once)
    borders = any(_has_border(image) for image in images.values())
    if len(images) < len(at_once) or not (borders or _share_held(list(images.values())) > _MIN_SHARE):
        return None
    images |= _images(frames, [number for number in numbers if number not in at_once])
    widths = np.concatenate([_border_widths(image[None]) for image in images.values()])
    part = _part([to_host(image) for image in images.values()])
    borders = borders and bool(widths.any())
    return (
        Drawn(part=part, borders=borders, looked_at=tuple(images), widths=widths)
        if borders or part is not None
        else None
    )


def _images(frames: Frames, numbers: list[int]) -> dict[int, Array]:
    """Those of the frames with these numbers that can be read, and are not of one value throughout."""
    chunks = {number: frames.read(number, number + 1) for number in numbers}
    images = {number: chunk.frames[0] for number, chunk in chunks.items() if not chunk.unreadable}
    return {number: image for number, image in images.items() if not bool((image == image[:1, :1]).all())}


def _share_held(images: list[Array]) -> float:
    """Share of the pixels that have one value in all images (h, w)."""
    held = images[0] == images[1]
    for image in images[2:]:
        held &= image == images[0]
    return float(held.mean())


def _part(images: list[NDArray[np.generic]]) -> NDArray[np.bool_] | None:
    """Pixels (h, w) that are drawn into all images (h, w)."""
    from scipy import ndimage

    around = np.ones((3, 3), np.int8)
    always = np.logical_and.reduce([image == images[0] for image in images[1:]])
    always &= ndimage.convolve(always.astype(np.int8), around, mode="constant") > _NEIGHBOURS
    height, width = always.shape
    for line, across in (((height // 4, 1), (1, _WIDEST_LINE + 1)), ((1, width // 4), (_WIDEST_LINE + 1, 1))):
        # Stuck lines of a camera are repaired.
        long = ndimage.binary_opening(always, np.ones(line))
        always &= ~long | ndimage.binary_opening(long, np.ones(across))
    if not _MIN_SHARE < always.mean() < _LARGEST_SHARE:
        return None
    beside = ndimage.binary_dilation(always, around) & ~always
    if not beside.any() or np.mean([(image == images[0])[beside] for image in images[1:]]) > _AS_BEFORE:
        return None
    values, number = np.unique(images[0][always], return_counts=True)
    common = np.argsort(number)[-_COLOURS:]
    colours = values[common[number[common] > _MIN_OF_COLOUR * always.sum()]]
    again = np.mean([np.isin(image, colours) for image in images], axis=0) > _NOW_AND_THEN
    # Words whose letters are near each other hang together, and with them what is drawn only now and then.
    near = ndimage.binary_closing(np.pad(always | again, _GAP, mode="edge"), around, iterations=_GAP)
    part = ndimage.binary_propagation(always, around, near[_GAP:-_GAP, _GAP:-_GAP])
    found: NDArray[np.bool_] = ndimage.binary_dilation(part, around, iterations=_RIM)
    return found if found.mean() < _LARGEST_SHARE else None


def _has_border(image: Array) -> bool:
    """Whether rows or columns at the rim of an image (h, w) have one value, and those next to them do not."""
    edges = image[0], image[-1], image[:, 0], image[:, -1]
    if not any(bool((edge == edge[0]).all()) for edge in edges):
        return False
    return bool(_border_widths(image[None]).any())


def _border_widths(frames: Array) -> NDArray[np.intp]:
    """Pixels (n, 2, 2) of frames (n, h, w) at either end of rows and columns that are filled with one value."""
    xp = array_namespace(frames)
    widths = np.zeros((len(frames), 2, 2), dtype=np.intp)
    for axis, lines in enumerate((frames, frames.transpose(0, 2, 1))):
        uniform = (lines == lines[:, :, :1]).all(axis=2)
        for side, order in enumerate((slice(None), slice(None, None, -1))):
            ordered = lines[:, order]
            same = to_host(uniform[:, order] & (ordered[:, :, 0] == ordered[:, :1, 0]))
            width = np.cumprod(same, axis=1).sum(axis=1)
            # Beside what interpolation made of the border and the scene.
            inner = np.minimum(width + _RIM, same.shape[1] - 1)
            beside = ordered[xp.arange(len(lines)), xp.asarray(inner)]
            alike = to_host((beside == ordered[:, 0, :1]).mean(axis=1))
            widths[:, axis, side] = np.where(alike < _OF_BORDER, width, 0)
    return widths
