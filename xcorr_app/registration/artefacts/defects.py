"""Hot and dead pixels of the camera: found from the series, replaced by their neighbours for measuring.

A pixel that stands out in every frame at the same place, whatever moves, pins all shifts to zero. It is taken for a
defect where it is far beyond all of its eight neighbours in each of a few frames spread over the stack: a detail of
the scene is seldom a single pixel, and moves. One that flickers does so in some of them only, and must be so sharp
that no optics could have drawn it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.correlation.standardize import standardize
from xcorr_app.gpu.peaks.outlier_pixels import look
from xcorr_app.gpu.runtime.arrays import Array, array_namespace, is_device_array, to_host
from xcorr_app.gpu.runtime.types import INPUT_TYPES, name_of
from xcorr_app.registration.artefacts.stuck_lines import STEPS_AT_A_GLANCE, lines_in_words, stuck_lines
from xcorr_app.registration.stack.frames import ArrayFrames, Chunk, Frames, FramesOver

_FRAMES = 5
"""Looked at, spread over the stack; a defect stands out in all of them."""
_FEWEST_FRAMES = 2
_FEW_FRAMES = 3
"""Below which only what no optics could have drawn is a defect: a point of light may stand still in two."""
_FLICKERING_FRAMES, _FLICKERING_SHARE = 16, 0.2
"""Looked at where single pixels stand out, and the share of them in which one that flickers does so at least."""
_FEWEST_FLICKERING = 10
"""Frames from which a place where that happens is enough; of fewer, moving points swap places too often."""
_ALONE = 1
"""Pixels around one that flickers in which nothing else stands out in any frame: a point that drifts leaves a trace."""
_LOOKED_AT = (_FRAMES, _FLICKERING_FRAMES)
_SHARPEST = 0.95
"""Of the height of a flickering pixel, what lies beyond its highest neighbour; of a point of light it is less."""
_DEVIATIONS = 12.0
"""Of the noise, by which a defect lies beyond its neighbours."""
_RANGE = 5.0
"""Deviations of the noise between the lowest and the highest of eight pixels; as a rule 2.8."""
_NOISE_OF_STEPS = 1.4826 / math.sqrt(2)
"""Standard deviation of white noise over the median step between neighbours."""
_ROUNDS = 3
"""In which pixels are repaired from the rim of what is defective inwards."""
_LARGEST_SHARE, _LARGEST_WARM = 0.002, 0.02
"""Of all pixels; more than the former are no defects but the scene, unless as good as all of them are sharper than any
optics draws: of a warm camera up to the latter are."""
_ALL_BUT = 0.1
"""Share of such pixels that two of them next to each other, or noise, may hide."""
_HALF = 0.5
_SMALLEST = 16
"""Rows and columns below which nothing is looked for."""
_EIGHT = tuple((i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j)
"""Places around a pixel."""


@dataclass(frozen=True)
class RepairedFrames(FramesOver):
    """Frames whose defective pixels are the mean of the four next to them."""

    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    lines: NDArray[np.bool_] | None = None
    """(Y, X) pixels of rows and columns that are stuck; not among the others."""

    def read(self, start: int, stop: int) -> Chunk:
        """Read frames and repair copies of them."""
        chunk = self.source.read(start, stop)
        frames, xp = chunk.frames.copy(), array_namespace(chunk.frames)
        sound = np.ones(self.shape, dtype=bool) if self.lines is None else ~self.lines
        sound[self.rows, self.columns] = False
        # Where lines cross, what is beside a pixel is repaired first.
        for _ in range(_ROUNDS):
            beside = np.pad(sound, 1, mode="reflect")
            near = beside[:-2, 1:-1] | beside[2:, 1:-1] | beside[1:-1, :-2] | beside[1:-1, 2:]
            here = ~sound & near
            y, x = (xp.asarray(places) for places in np.nonzero(here))
            frames[:, y, x] = mean_of_four(frames, (slice(None), y, x), xp.asarray(sound[None]))
            sound |= here
            if sound.all():
                break
        return replace(chunk, frames=frames)

    @property
    def note(self) -> str:
        """What was done, in words."""
        done = "always at the same places, were replaced by their neighbours for measuring"
        found = []
        if self.rows.size:
            places = ", ".join(f"({y}, {x})" for y, x in list(zip(self.rows, self.columns, strict=True))[:5])
            more = ", ..." if self.rows.size > 5 else ""
            found.append(f"{self.rows.size} hot or dead pixels, {done}: row and column {places}{more}.")
        if self.lines is not None:
            found.append(f"Stuck lines of the camera, {done}: {lines_in_words(self.lines)}.")
        return " ".join(found)


@dataclass(frozen=True)
class FirstLook:
    """What the first frame of a series tells at a glance."""

    stands_out: bool = True
    """Whether any of its pixels is far beyond those around it; or that is not known."""
    line_may_be_stuck: bool = True
    """The same of its rows and columns."""
    held: float | None = None
    """Share of the pixels that have one value in all frames compared; None where that is not known."""
    even_edge: bool = False
    """Whether the first or last row or column of one of them has one value."""


def first_look(frames: Frames, first: Chunk, compared: tuple[Array, ...] = ()) -> FirstLook:
    """Look at the first frame, which was read: where it shows no defect, no other one is looked at.

    A device looks at three frames (Y, X) meanwhile, where they are to be `compared`.
    """
    if min(first.frames.shape[1:]) < _SMALLEST:
        return FirstLook(stands_out=False)
    if first.unreadable:
        return FirstLook()
    if is_device_array(first.frames) and name_of(first.frames.dtype) in INPUT_TYPES:
        seen = look(first.frames[0], _DEVIATIONS * _NOISE_OF_STEPS, STEPS_AT_A_GLANCE, compared)
        if seen.varies and isinstance(frames, ArrayFrames):
            frames.vary.add(0)
        return FirstLook(seen.stands_out, seen.line_may_be_stuck, seen.held, seen.even_edge)
    return FirstLook(bool(_beyond_neighbours(first.frames)[0].any()))


def without_defects(
    frames: Frames, first: Chunk | None = None, seen: FirstLook | None = None
) -> Frames | RepairedFrames:
    """Frames as they are, or repaired where lines or pixels are defective; the first may be read and looked at."""
    first, seen = frames.read(0, 1) if first is None else first, seen or FirstLook()
    lines = stuck_lines(frames, first, may_be=seen.line_may_be_stuck)
    nowhere = np.zeros(0, dtype=np.intp)
    found = RepairedFrames(frames, nowhere, nowhere, lines)
    if seen.stands_out:
        y, x = _defective_pixels(frames if lines is None else found)
        found = RepairedFrames(frames, y, x, lines)
        # Of two next to each other, the fainter stands out once the brighter is repaired.
        beside = _defective_pixels(found) if y.size else (y, x)
        if 0 < beside[0].size <= max(1, _ALL_BUT * y.size):
            rows, columns = np.nonzero(_at(frames.shape, (y, x)) | _at(frames.shape, beside))
            found = RepairedFrames(frames, rows, columns, lines)
    return found if found.rows.size or lines is not None else frames


def _at(shape: tuple[int, int], places: tuple[NDArray[np.intp], NDArray[np.intp]]) -> NDArray[np.bool_]:
    """Pixels (Y, X) at these rows and columns."""
    found = np.zeros(shape, dtype=bool)
    found[places] = True
    return found


def _defective_pixels(frames: Frames) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows and columns (n,) of single pixels that are defective."""
    nowhere = np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp)
    if frames.count < _FEWEST_FRAMES or min(frames.shape) < _SMALLEST:
        return nowhere
    first = frames.read(0, 1)
    few, many = (np.unique(np.linspace(0, frames.count - 1, n).round().astype(int)).tolist() for n in _LOOKED_AT)
    more = [number for number in many if number not in few]
    # One by one, since the first tells as a rule; a device has done all before one could tell.
    groups = [few, more] if is_device_array(first.frames) else [[number] for number in (*few, *more)]
    always: Array | None = None
    looked_at = 0
    sharp: Array | None = None
    ever: Array | None = None
    for group in groups:
        chunks = [first if number == few[0] else frames.read(number, number + 1) for number in group]
        images = [chunk.frames for chunk in chunks if not chunk.unreadable]
        if not images:
            continue
        beyond, sharply = _beyond_neighbours(array_namespace(images[0]).concatenate(images))
        looked_at += len(images)
        if group[0] in few:
            always = beyond.all(axis=0) if always is None else always & beyond.all(axis=0)
        sharp = sharply.sum(axis=0) if sharp is None else sharp + sharply.sum(axis=0)
        ever = beyond.any(axis=0) if ever is None else ever | beyond.any(axis=0)
        # What moves stands out nowhere twice.
        if looked_at == len(few) and not (sharp > 1).any():
            break
    if always is None or sharp is None or ever is None:
        return nowhere
    defective = to_host(sharp) >= looked_at if looked_at < _FEW_FRAMES else to_host(always)
    defective |= _come_back(to_host(sharp), to_host(ever))
    if looked_at >= _FEWEST_FLICKERING:
        defective |= to_host(sharp) >= max(3.0, _FLICKERING_SHARE * looked_at)
    rows, columns = np.nonzero(defective)
    if rows.size == 0 or rows.size > _LARGEST_WARM * defective.size:
        return nowhere
    if rows.size > _LARGEST_SHARE * defective.size:
        by_itself = np.mean([to_host(alone(frames.read(number, number + 1).frames))[0] for number in few], axis=0)
        if float((by_itself[rows, columns] > _HALF).mean()) < 1 - _ALL_BUT:
            return nowhere
    return rows, columns


def _come_back(sharp: NDArray[np.integer], ever: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Pixels that stood `sharp` (h, w) times out of all around them, alone among those that `ever` stood out.

    None where most did so only once: those are points that move.
    """
    found = np.zeros_like(ever)
    if not 0 < ever.sum() <= _LARGEST_SHARE * ever.size:
        return found
    y, x = np.nonzero(ever)
    near = (abs(y[:, None] - y) <= _ALONE) & (abs(x[:, None] - x) <= _ALONE)
    alone = (near.sum(axis=1) == 1) & (sharp[y, x] > 0)
    again = alone & (sharp[y, x] > 1)
    if again.any() and 2 * again.sum() >= alone.sum():
        found[y[alone], x[alone]] = True
    return found


def mean_of_four(frames: Array, places: tuple[Any, Array, Array], sound: Array) -> Array:
    """Mean of the pixels of frames (n, h, w) beside these, up, down, left and right, mirrored at the rim.

    Of those alone that are `sound` (1 or n, h, w) where any is.
    """
    xp = array_namespace(frames)
    t, y, x = places
    height, width = frames.shape[1:]
    beside = [(abs(y - 1), x), (_mirrored(y + 1, height), x), (y, abs(x - 1)), (y, _mirrored(x + 1, width))]
    weights = [sound[t, *place].astype(np.float64) for place in beside]
    total = sum(weights)
    weights = [xp.where(total > 0, weight / xp.maximum(total, 1), 0.25) for weight in weights]
    mean = sum(frames[t, *place].astype(np.float64) * weight for place, weight in zip(beside, weights, strict=True))
    return mean if frames.dtype.kind == "f" else xp.rint(mean)


def _mirrored(index: Array, size: int) -> Array:
    """Indices, those one beyond the last mirrored there."""
    return size - 1 - abs(size - 1 - index)


def _beyond_neighbours(frames: Array) -> tuple[Array, Array]:
    """Pixels of frames (n, h, w) far beyond all eight around them, mirrored at the rim, and which sharply so."""
    middle, around, noise, finite = _with_neighbours(frames)
    xp = array_namespace(frames)
    highest, lowest = around[0], around[0]
    for other in around[1:]:
        highest, lowest = xp.maximum(highest, other), xp.minimum(lowest, other)
    least = _DEVIATIONS * noise
    beyond = ((middle - highest > least) | (lowest - middle > least)) & (noise > 0) & finite
    # How far the neighbours reach towards the pixel, from the lowest of them.
    sharp = beyond & (middle - highest > _SHARPEST * (middle - lowest))
    return beyond, sharp


def alone(frames: Array) -> Array:
    """Pixels of frames (n, h, w) far above all eight around them, of which none reaches up to them beyond its noise."""
    middle, around, noise, finite = _with_neighbours(frames)
    xp = array_namespace(frames)
    highest, lowest = around[0], around[0]
    for other in around[1:]:
        highest, lowest = xp.maximum(highest, other), xp.minimum(lowest, other)
    dark = highest - lowest < (1 - _SHARPEST) * (middle - lowest) + _RANGE * noise
    return dark & (middle - highest > _DEVIATIONS * noise) & (noise > 0) & finite


def brightest(frame: Array, number: int) -> NDArray[np.intp]:
    """Places (n, 2) of the highest points of a frame (h, w), a number of them at most: none beside is higher."""
    middle, around, noise, finite = _with_neighbours(frame[None])
    xp = array_namespace(frame)
    highest, lowest = around[0], around[0]
    for other in around[1:]:
        highest, lowest = xp.maximum(highest, other), xp.minimum(lowest, other)
    height = xp.where((middle >= highest) & finite, middle - lowest, 0)[0]
    height = to_host(xp.where(height > _DEVIATIONS * noise[0], height, 0))
    places = np.argwhere(height)
    found: NDArray[np.intp] = places[np.argsort(-height[tuple(places.T)], kind="stable")[:number]]
    return found


def _with_neighbours(frames: Array) -> tuple[Array, list[Array], Array, Array | bool]:
    """Pixels of frames (n, h, w), the eight around each, mirrored at the rim; their noise; which are finite."""
    xp = array_namespace(frames)
    finite: Array | bool = True
    if frames.dtype.kind == "f":
        # What is no number is counted and replaced later.
        finite = xp.isfinite(frames)
        frames = xp.where(finite, frames, 0)
    values = standardize(frames, np.float32).values
    # Differences of neighbours on every fourth row are noise and slopes; most of them are small.
    steps = xp.sort(abs(xp.diff(values[:, ::4], axis=2)).reshape(values.shape[0], -1), axis=1)
    noise = _NOISE_OF_STEPS * steps[:, steps.shape[1] // 2, None, None]
    values = xp.pad(values, ((0, 0), (1, 1), (1, 1)), mode="reflect")
    height, width = values.shape[1:]
    around = [values[:, 1 + i : height - 1 + i, 1 + j : width - 1 + j] for i, j in _EIGHT]
    return values[:, 1:-1, 1:-1], around, noise, finite
