"""Where frames come from: an array in memory or files read as they are needed."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np

from xcorr_app.correlation.standardize import flat_images, working_dtype
from xcorr_app.errors import ArgumentError, DataTypeError, ShapeError
from xcorr_app.gpu.runtime.arrays import Array, array_namespace, to_host

MAX_HELD = 2**25
"""Bytes of frames that are kept on the host so that they are made once."""
SINGLE = ("first", "last")
"""References by name that are one frame."""


@dataclass(frozen=True)
class Chunk:
    """Consecutive frames, and those among them that could not be read."""

    start: int
    frames: Array
    """Shape (n, Y, X), as stored; an unreadable frame is zero."""
    unreadable: dict[int, str]
    """Reason by frame number, counted from the start of the stack."""


class Frames(Protocol):
    """A stack whose frames can be read in any order, from several threads."""

    @property
    def count(self) -> int:
        """Number of frames."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of a pixel as stored."""

    def read(self, start: int, stop: int) -> Chunk:
        """Read frames ``start`` to ``stop - 1``."""

    def on_host(self) -> Frames:
        """Return the same frames, handed out as NumPy arrays."""
        ...


class ArrayFrames:
    """Frames of an array (T, Y, X), NumPy or CuPy; with `on_host`, what is read is copied to the host.

    Raises ShapeError or DataTypeError where it has not three axes, no elements, or no real numbers.
    """

    def __init__(self, stack: Array, *, on_host: bool = False) -> None:
        array_namespace(stack)
        if stack.ndim != 3 or stack.size == 0:
            raise ShapeError(
                f"the stack has shape {stack.shape}: it must be (frames, rows, columns), none of them 0; "
                "two images are np.stack([first, second])"
            )
        if stack.dtype.kind not in "iuf":
            raise DataTypeError(f"frames of {stack.dtype} cannot be measured: convert them to integers or floats")
        self._stack, self._on_host = stack, on_host
        self.count = int(stack.shape[0])
        self.shape = (int(stack.shape[1]), int(stack.shape[2]))
        self.dtype = np.dtype(stack.dtype)
        self.vary: set[int] = set()
        """Frames that somebody has looked at and found not flat."""
        self.glances: dict[tuple[int, ...], Any] = {}
        """What was seen of lines of frames with these numbers."""

    def read(self, start: int, stop: int) -> Chunk:
        """Slice the array."""
        frames = self._stack[start:stop]
        return Chunk(start, to_host(frames) if self._on_host else frames, {})

    def on_host(self) -> ArrayFrames:
        """Return the same frames, copied to the host as they are read."""
        return ArrayFrames(self._stack, on_host=True)


@dataclass(frozen=True)
class FramesOver:
    """Frames made of others as they are read: as many, as large and of one type, unless a class says otherwise."""

    source: Frames

    @property
    def count(self) -> int:
        """Number of frames."""
        return self.source.count

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.source.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of a pixel as stored."""
        return self.source.dtype

    def on_host(self) -> Self:
        """Return the same frames, handed out as NumPy arrays."""
        return replace(self, source=self.source.on_host())


@dataclass(frozen=True)
class FloatFramesOver(FramesOver, ABC):
    """Frames made of others, as floats; those that are flat, or could not be read, stay so."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of a pixel, a float."""
        return working_dtype(np.empty(0, self.source.dtype))

    def read(self, start: int, stop: int) -> Chunk:
        """Read frames and change them, unless all pixels of one are the same."""
        chunk = self.source.read(start, stop)
        flat = (chunk.frames == chunk.frames[:, :1, :1]).all(axis=(1, 2), keepdims=True)
        changed = self.changed(replace(chunk, frames=chunk.frames.astype(self.dtype)))
        kept = array_namespace(chunk.frames).where(flat, chunk.frames, changed)
        # Means over depth are float64, whatever is stored.
        return replace(chunk, frames=kept.astype(self.dtype, copy=False))

    @abstractmethod
    def changed(self, chunk: Chunk) -> Array:
        """What becomes of frames, handed over as floats of their own, which may be written to."""


@dataclass(frozen=True)
class HeldFrames(FramesOver):
    """Few frames that are read again and again: all of them, read once."""

    chunk: Chunk

    @classmethod
    def of(cls, frames: Frames) -> HeldFrames:
        """Read frames, all of them."""
        return cls(frames, frames.read(0, frames.count))

    def read(self, start: int, stop: int) -> Chunk:
        """Slice what was read."""
        unreadable = {number: text for number, text in self.chunk.unreadable.items() if start <= number < stop}
        return Chunk(start, self.chunk.frames[start:stop], unreadable)

    def on_host(self) -> HeldFrames:
        """Return the same frames, handed out as NumPy arrays."""
        return HeldFrames(self.source.on_host(), replace(self.chunk, frames=to_host(self.chunk.frames)))


@dataclass(frozen=True)
class PickedFrames(FramesOver):
    """Some frames of a stack, renumbered from 0."""

    numbers: tuple[int, ...]

    @property
    def count(self) -> int:
        """Number of frames picked."""
        return len(self.numbers)

    def read(self, start: int, stop: int) -> Chunk:
        """Read each of them by itself."""
        chunks = [self.source.read(number, number + 1) for number in self.numbers[start:stop]]
        frames = array_namespace(chunks[0].frames).concatenate([chunk.frames for chunk in chunks])
        unreadable = {start + i: text for i, chunk in enumerate(chunks) for text in chunk.unreadable.values()}
        return Chunk(start, frames, unreadable)


def held_if_few(frames: Frames, some: Array) -> Frames:
    """Hold frames of a host, as `some` of them are, if they are few: several passes and looks would make them again."""
    few = frames.count * math.prod(frames.shape) * frames.dtype.itemsize <= MAX_HELD
    return HeldFrames.of(frames) if few and isinstance(some, np.ndarray) else frames


@dataclass(frozen=True)
class SmoothedFrames(FramesOver):
    """Each frame as the mean of `length` frames around it, at the ends of those there are.

    Of an even number the outermost two on either side count half, so that the mean lies where the frame does. Frames
    that cannot be read or are flat, and pixels that are not finite, stay so and do not enter others.
    """

    length: int

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of a pixel of the means: float32, or float64 where that is needed."""
        stored = self.source.dtype
        single = stored.itemsize <= 2 or (stored.kind == "f" and stored.itemsize == 4)
        return np.dtype(np.float32 if single else np.float64)

    def read(self, start: int, stop: int) -> Chunk:
        """Average frames; those around a chunk are read with it."""
        reach = self.length // 2
        begin, end = max(start - reach, 0), min(stop + reach, self.count)
        chunk = self.source.read(begin, end)
        frames, xp = chunk.frames, array_namespace(chunk.frames)
        lost = xp.asarray(np.array([begin + i in chunk.unreadable for i in range(end - begin)]))
        finite = xp.isfinite(frames)
        values = xp.where(finite, frames, 0)
        known = finite & ~(lost | xp.asarray(flat_images(values)))[:, None, None]
        total: Array = xp.zeros((stop - start, *self.shape))
        covered: Array = xp.zeros_like(total)
        for step in range(-reach, reach + 1):
            share = 0.5 if self.length % 2 == 0 and abs(step) == reach else 1.0
            first, last = max(start, begin - step), min(stop, end - step)
            if first < last:
                here, there = slice(first - start, last - start), slice(first + step - begin, last + step - begin)
                total[here] += share * xp.where(known[there], values[there], 0)
                covered[here] += share * known[there]
        own = slice(start - begin, stop - begin)
        means = xp.where(known[own] & (covered > 0), total / xp.where(covered > 0, covered, 1.0), frames[own])
        means = means.astype(self.dtype)
        return Chunk(start, means, {n: why for n, why in chunk.unreadable.items() if start <= n < stop})


def shows_something(chunk: Chunk) -> bool:
    """Whether a single frame could be read and is not flat."""
    shown = chunk.frames[array_namespace(chunk.frames).isfinite(chunk.frames)]
    return not chunk.unreadable and shown.size > 0 and bool(shown.max() > shown.min())


def read_reference(frames: Frames, reference: str | int | Array, refusal: str) -> tuple[Array, int | None, str]:
    """Image (Y, X), its number among the frames, None of an image that is none of them, and what it is in words.

    A first or last frame that shows nothing gives way to the next that does.
    `refusal` is what is said of the name of another one.
    """
    if isinstance(reference, str):
        if reference not in SINGLE:
            raise ArgumentError(refusal)
        order = range(frames.count)[:: 1 if reference == "first" else -1]
        number = next((t for t in order if shows_something(frames.read(t, t + 1))), order[0])
    elif isinstance(reference, (int, np.integer)):
        number = int(reference)
        if not -frames.count <= number < frames.count:
            raise ArgumentError(f"reference frame {number} does not exist: there are {frames.count}")
        number %= frames.count
    else:
        if reference.shape != frames.shape:
            raise ShapeError(f"reference has shape {reference.shape}: the frames are {frames.shape}")
        return reference, None, "an image"
    chunk = frames.read(number, number + 1)
    if chunk.unreadable:
        raise ArgumentError(f"the reference, frame {number}, cannot be read: {chunk.unreadable[number]}")
    return chunk.frames[0], number, f"{reference if isinstance(reference, str) else 'frame'} ({number})"
