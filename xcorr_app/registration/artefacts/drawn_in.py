"""What is drawn into frames: captions, clocks, frames around the picture, what lies outside a sector, empty borders.

It stands still whatever the scene does, and pins the shifts. Two kinds are known by their values. Pixels that hold one
and the same value in frames spread over the series were never seen by a sensor with noise; those next to them must
change from frame to frame, and be as far from that value as those farther away are: what is empty or saturated in a
scene ends in slopes. What is drawn now and then beside them in the same colours, as the digits of a clock are, belongs
to them. Rows and columns of one value at the rim of a frame, next to others that are not and end as sharply, are what
frames that were moved before have been filled with; each frame has its own. For measuring all of it is given the mean
of the rest of its frame, which shows nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, array_namespace, is_device_array, to_host
from xcorr_app.gpu.runtime.types import INPUT_TYPES, name_of
from xcorr_app.registration.artefacts.common_part import without_rims
from xcorr_app.registration.artefacts.defects import FirstLook
from xcorr_app.registration.measuring.few_frames import spread
from xcorr_app.registration.settings import Roi
from xcorr_app.registration.stack.frames import ArrayFrames, Chunk, Frames, FramesOver

_LOOKED_AT, _FEWEST, _FEWEST_CHANGE = 16, 2, 4
"""Frames that are looked at, spread over the stack; of fewer than the latter, what changes is not known, and borders
alone are told: a flat scene of 8 bits holds its values in two frames as well."""
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
_AT_ONCE = 3
"""Frames that tell as a rule."""
_AWAY, _SHARP = (4, 5), 0.6
"""Pixels from what is drawn, and the share of how far values lie from its own there that those next to it do."""
_THIN = 1
"""Rows or columns of one value that a lattice has by itself."""
_OF_BORDER = 0.5
"""Share of the row or column inside a border that may have the border's value."""


@dataclass(frozen=True, eq=False)
class FilledFrames(FramesOver):
    """Frames in which what is drawn has the mean of the rest: a part (Y, X) of all of them, and borders of each."""

    part: NDArray[np.bool_] | None = None
    borders: bool = False
    inner: Roi | None = None
    """What is left without the part and the borders along the rim, where it is not all: best measured by itself."""

    def read(self, start: int, stop: int) -> Chunk:
        """Read frames and fill copies of them."""
        chunk = self.source.read(start, stop)
        return replace(chunk, frames=self.filled(chunk.frames))

    def filled(self, frames: Array) -> Array:
        """Frames (n, h, w) with what is drawn filled; those of one value throughout stay so."""
        xp = array_namespace(frames)
        hidden = xp.zeros(frames.shape, dtype=bool)
        if self.part is not None:
            hidden |= xp.asarray(self.part)
        if self.borders:
            hidden |= _in_borders(frames)
        # NaN and infinite pixels are counted and replaced later.
        finite = xp.isfinite(frames)
        hidden &= finite & (frames != frames[:, :1, :1]).any(axis=(1, 2), keepdims=True)
        counts = finite & ~hidden
        number = xp.maximum(counts.sum(axis=(1, 2), keepdims=True), 1)
        # Divided before they are summed: the sum of large values must not overflow.
        mean = (xp.where(counts, frames, 0) / number).sum(axis=(1, 2), keepdims=True)
        mean = mean if frames.dtype.kind == "f" else xp.rint(mean)
        return xp.where(hidden, mean.astype(frames.dtype), frames)

    @property
    def note(self) -> str:
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


def without_drawn(frames: Frames, roi: tuple[slice, slice] | None = None) -> Frames | FilledFrames:
    """Frames as they are, or filled where something is drawn into the part that is measured.

    Three frames tell as a rule.
    """
    if frames.count < _FEWEST or min(frames.shape) < _SMALLEST:
        return frames
    order = _order(frames.count)
    images, later = _usable(frames, order[:_AT_ONCE]), order[_AT_ONCE:]
    while len(images) < _AT_ONCE and later:
        images, later = [*images, *_usable(frames, later[:1])], later[1:]
    if len(images) < min(_AT_ONCE, frames.count) or not _may_hold(array_namespace(images[0]).stack(images)):
        return frames
    images += _usable(frames, later)
    seen = to_host(array_namespace(images[0]).stack(images))
    part = None if len(seen) < _FEWEST_CHANGE else _part([image if roi is None else image[roi] for image in seen])
    borders = _filled_at_the_rim(seen)
    if roi is not None and part is not None:
        inside, part = part, np.zeros(frames.shape, dtype=bool)
        part[roi] = inside
    if borders and part is not None:
        from scipy import ndimage

        # Borders that stand still are a part like others.
        borders = bool((_in_borders(seen) & ~ndimage.binary_dilation(part, np.ones((3, 3)))).any())
    if not borders and part is None:
        return frames
    hidden = np.zeros(frames.shape, dtype=bool) if part is None else part.copy()
    if borders:
        hidden |= _in_borders(seen).any(axis=0)
    return FilledFrames(frames, part, borders, without_rims(hidden) if roi is None else None)


def compared_on_device(frames: Frames) -> tuple[Array, ...]:
    """Frames (Y, X) that tell as a rule, where a device holds all of them and its kernels compare them; else none."""
    if not isinstance(frames, ArrayFrames) or frames.count < _AT_ONCE or min(frames.shape) < _SMALLEST:
        return ()
    images = tuple(frames.read(number, number + 1).frames[0] for number in _order(frames.count)[:_AT_ONCE])
    return images if is_device_array(images[0]) and name_of(images[0].dtype) in INPUT_TYPES else ()


def may_be_drawn(seen: FirstLook) -> bool:
    """Whether something may be drawn, by what a device has seen of the frames that tell as a rule."""
    return seen.held is None or seen.held > _MIN_SHARE or seen.even_edge


def _order(count: int) -> list[int]:
    """Numbers of the frames that are looked at: the first ones tell as a rule."""
    numbers = spread(np.arange(count), _LOOKED_AT).tolist()
    return list(dict.fromkeys([numbers[0], numbers[-1], numbers[len(numbers) // 2], *numbers]))


def _usable(frames: Frames, numbers: list[int]) -> list[Array]:
    """Those of the frames with these numbers that can be read, and are not of one value throughout."""
    chunks = [frames.read(number, number + 1) for number in numbers]
    images = [chunk.frames[0] for chunk in chunks if not chunk.unreadable]
    if not images:
        return []
    stack = array_namespace(images[0]).stack(images)
    varies = to_host((stack != stack[:, :1, :1]).any(axis=(1, 2)))
    return [image for image, each in zip(images, varies, strict=True) if each]


def _may_hold(images: Array) -> bool:
    """Whether images (n, h, w) hold enough of their pixels, or have an edge of one value."""
    xp, (height, width) = array_namespace(images), images.shape[1:]
    held = (images[1:] == images[:1]).all(axis=0).mean() > _MIN_SHARE
    edges = images[:, :: height - 1], images[:, :, :: width - 1].transpose(0, 2, 1)
    # Few steps, and one download: each costs a device's host as much as the frames take.
    return bool(to_host(xp.stack([held, *((each == each[:, :, :1]).all(axis=2).any() for each in edges)])).any())


def _part(images: list[NDArray[np.generic]]) -> NDArray[np.bool_] | None:
    """Pixels (h, w) that are drawn into all images (h, w)."""
    from scipy import ndimage

    around = np.ones((3, 3), np.int8)
    always = np.logical_and.reduce([image == images[0] for image in images[1:]])
    always &= ndimage.convolve(always.astype(np.int8), around, mode="constant") > _NEIGHBOURS
    height, width = always.shape
    for axis, length in ((0, height // 4), (1, width // 4)):
        # Stuck lines of a camera are repaired.
        always &= ~_in_runs(always, length, axis) | _in_runs(always, _WIDEST_LINE + 1, 1 - axis)
    if not _MIN_SHARE < always.mean() < _LARGEST_SHARE:
        return None
    beside = ndimage.binary_dilation(always, around) & ~always
    if not beside.any() or np.mean([(image == images[0])[beside] for image in images[1:]]) > _AS_BEFORE:
        return None
    always &= ~_ends_in_slopes(images, always)
    if always.mean() < _MIN_SHARE:
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


def _in_runs(held: NDArray[np.bool_], length: int, axis: int) -> NDArray[np.bool_]:
    """Pixels (h, w) of runs of at least so many along an axis."""
    lines = np.pad(held if axis == 1 else held.T, ((0, 0), (1, 1))).astype(np.int8)
    steps = np.diff(lines, axis=1)
    begins, ends = np.argwhere(steps == 1), np.argwhere(steps == -1)
    long = ends[:, 1] - begins[:, 1] >= length
    marks = np.zeros_like(steps)
    marks[tuple(begins[long].T)], marks[tuple(ends[long].T)] = 1, -1
    found = np.cumsum(marks, axis=1, dtype=np.int8)[:, :-1] > 0
    return found if axis == 1 else found.T


def _ends_in_slopes(images: list[NDArray[np.generic]], held: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Pixels (h, w) of the areas that images hold at whose rim values come near theirs: the scene's own."""
    from scipy import ndimage

    area, number = ndimage.label(held, np.ones((3, 3)))
    distance, (y, x) = ndimage.distance_transform_cdt(~held, "chessboard", return_indices=True)
    off = np.mean([np.abs(image.astype(np.float64) - images[0][y, x]) for image in images], axis=0)
    labels = area[y, x]

    def off_at(first: int, last: int) -> NDArray[np.float64]:
        within = (distance >= first) & (distance <= last)
        total, count = (np.bincount(labels[within], weights, number + 1) for weights in (off[within], None))
        return total / np.maximum(count, 1)

    # Where nothing lies farther away nothing is known.
    slopes = off_at(1, 1) < _SHARP * off_at(*_AWAY)
    slopes[0] = False
    found: NDArray[np.bool_] = slopes[area]
    return found


def _filled_at_the_rim(images: NDArray[np.generic]) -> bool:
    """Whether images (n, h, w) have borders of one value that end sharply."""
    widths = _border_widths(images)
    beside, away = list[float](), list[float]()
    for image, of_image in zip(images.astype(np.float64), widths, strict=True):
        for lines, of_axis in zip((image, image.T), of_image, strict=True):
            for ordered, width in zip((lines, lines[::-1]), of_axis, strict=True):
                if _THIN < width < len(ordered) - _AWAY[1]:
                    off = np.abs(ordered[width : width + _AWAY[1]] - ordered[0, 0]).mean(axis=1)
                    # Between the border and the scene interpolation draws a line of both.
                    beside.append(float(off[:2].mean()))
                    away.append(float(off[_AWAY[0] - 1 :].mean()))
    return bool(beside) and sum(beside) > _SHARP * sum(away)


def _in_borders(frames: Array) -> Array:
    """Pixels of frames (n, h, w) in borders of one value, and what interpolation made of them and the scene."""
    xp = array_namespace(frames)
    widths, shape = _border_widths(frames), frames.shape[1:]
    inside = xp.ones(frames.shape, dtype=bool)
    for axis, of_axis in enumerate(widths.transpose(1, 2, 0)):
        place = np.arange(shape[axis])
        first, last = (np.where(width > 0, width + _RIM, 0)[:, None] for width in of_axis)
        within = xp.asarray((place >= first) & (place < shape[axis] - last))
        inside &= within[:, :, None] if axis == 0 else within[:, None]
    return ~inside


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
