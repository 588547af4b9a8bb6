"""From a frame as stored to what is compared: region of interest, finite values, prefilter, contrast."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from xcorr_app.correlation.standardize import flat_images
from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.runtime.arrays import Array, array_namespace, to_host
from xcorr_app.registration.settings import Settings
from xcorr_app.registration.stack.frames import MAX_HELD, ArrayFrames, Chunk, Frames, PickedFrames
from xcorr_app.registration.stack.passes import Pass


class NoUsableFrameError(ArgumentError):
    """No frame can be a reference."""

    def __init__(self) -> None:
        super().__init__("No frame can serve as a reference: each is unreadable or has the same value everywhere.")


@dataclass
class PreparedChunk:
    """Frames cropped, finite and filtered, with what is known of each from reading it.

    Which are flat is found out when it is asked for, unless a measurement has told it before.
    """

    frames: Array
    """Shape (n, h, w)."""
    unreadable: NDArray[np.bool_]
    """Frames that could not be read, or hold no finite value."""
    non_finite: NDArray[np.int64]
    """Number of NaN or infinite pixels in the measured part; they were replaced by the mean of the others."""
    vary: frozenset[int] = frozenset()
    """Numbers of frames that are known not to be flat, whether or not the others are judged."""

    @cached_property
    def flat(self) -> NDArray[np.bool_]:
        """(n,) frames that could be read and have one value."""
        return np.asarray(to_host(flat_images(self.frames)) & ~self.unreadable)

    @cached_property
    def usable(self) -> NDArray[np.bool_]:
        """(n,) frames that could be read and are not flat."""
        return ~(self.flat | self.unreadable)

    @property
    def is_judged(self) -> bool:
        """Whether it is known which frames are flat."""
        return "flat" in self.__dict__

    def is_usable(self, number: int) -> bool:
        """Whether one frame is usable; where the others are not judged, no more is read than that frame."""
        if self.is_judged:
            return bool(self.usable[number])
        if self.unreadable[number] or number in self.vary:
            return not self.unreadable[number]
        return not to_host(flat_images(self.frames[number : number + 1]))[0]


class Reference(ABC):
    """Reference images for consecutive measured frames."""

    is_stored: ClassVar[bool] = True
    """Whether they are images as stored, whose noise is white as that of the frames is."""

    @property
    def part(self) -> tuple[slice, slice] | None:
        """Rows and columns in which every image is known; None where that is everywhere."""
        return None

    @abstractmethod
    def images(self, start: int, prepared: PreparedChunk) -> Array:
        """Images (1 or n, h, w) for prepared frames (n, h, w), the first of which is number `start`."""


def prepare(chunk: Chunk, settings: Settings) -> PreparedChunk:
    """Make a chunk of frames ready for measuring."""
    frames = chunk.frames if settings.roi is None else chunk.frames[:, *settings.roi]
    xp = array_namespace(frames)
    pixels = frames.shape[1] * frames.shape[2]
    non_finite = np.zeros(frames.shape[0], dtype=np.int64)
    if frames.dtype.kind == "f":
        finite = xp.isfinite(frames)
        # In two steps: for a sum over both axes a device's library compiles a second of templates.
        count = to_host(finite.sum(axis=1)).sum(axis=1)
        non_finite = pixels - count
        if non_finite.any():
            # Divided before it is summed: the sum of large values must not overflow.
            shares = (
                xp.where(finite, frames, 0).astype(np.float64) / xp.maximum(finite.sum(axis=(1, 2)), 1)[:, None, None]
            )
            frames = xp.where(finite, frames, shares.sum(axis=(1, 2))[:, None, None].astype(frames.dtype))
    unreadable = np.zeros(frames.shape[0], dtype=bool)
    if chunk.unreadable:
        unreadable[:] = [chunk.start + i in chunk.unreadable for i in range(frames.shape[0])]
    unreadable |= non_finite == pixels
    frames = settings.contrast(settings.prefilter(frames))
    return PreparedChunk(frames, unreadable, non_finite)


AT_ONCE = 8
"""Frames that are looked at together."""


class PreparedFrames:
    """Reads frames and prepares them; `xp` is the kind of array that they are."""

    def __init__(self, frames: Frames, walk: Pass, settings: Settings, xp: Any) -> None:
        self._frames, self._walk, self._settings, self._xp = frames, walk, settings, xp
        self._kept: tuple[Chunk, PreparedChunk] | None = None
        self._ranges: dict[tuple[int, int], tuple[Chunk, PreparedChunk]] = {}
        self._is_filtered = settings.prefilter.name is not None or settings.contrast.sigma is not None

    def at_hand(self) -> PreparedChunk | None:
        """Return all frames, prepared once, where a device measures them at once and this takes no memory; else None.

        Few of any kind, or as many as there are of integers that are measured as they are stored.
        """
        if self._xp is np or not (self._frames.count <= AT_ONCE or self._as_stored):
            return None
        if self._kept is None:
            chunk = self._frames.read(0, self._frames.count)
            self._kept = chunk, prepare(chunk, self._settings)
            if self._as_stored and self._settings.roi is None and isinstance(self._frames, ArrayFrames):
                self._kept[1].vary = frozenset(self._frames.vary)
        return self._kept[1]

    def read(self, start: int, stop: int) -> tuple[Chunk, PreparedChunk]:
        """Frames as read and as prepared."""
        if stop - start == self._frames.count and self.at_hand() is not None and self._kept is not None:
            return self._kept
        if (known := self._ranges.get((start, stop))) is not None:
            return known
        chunk = self._frames.read(start, stop)
        found = chunk, prepare(chunk, self._settings)
        if self._xp is np and self._is_filtered:
            held = sum(prepared.frames.nbytes for _, prepared in list(self._ranges.values()))
            if held + found[1].frames.nbytes <= MAX_HELD:
                self._ranges[start, stop] = replace(chunk, frames=chunk.frames[:0]), found[1]
        return found

    def usable(self, numbers: tuple[int, ...]) -> list[Array]:
        """Those of these frames that are usable, prepared.

        On a device at once, where every step costs the host as much time as many frames take.
        """
        if self._xp is np:
            return [image for number in numbers if (image := self._usable(number)) is not None]
        everything = self.at_hand()
        if everything is not None and everything.is_judged:
            return [everything.frames[i : i + 1] for i in numbers if everything.usable[i]]
        some = prepare(PickedFrames(self._frames, numbers).read(0, len(numbers)), self._settings)
        rows = np.flatnonzero(some.usable)
        return [take(some.frames, rows)] if rows.size else []

    def first_usable(self, candidates: range) -> tuple[int, Array]:
        """First of the candidates that is usable, and its prepared image (h, w)."""
        everything = self.at_hand()
        for number in candidates:
            if everything is None:
                image = self._usable(number)
            else:
                image = everything.frames[number : number + 1] if everything.is_usable(number) else None
            if image is not None:
                return number, image[0]
        raise NoUsableFrameError

    def _usable(self, number: int) -> Array | None:
        """A frame (1, h, w), prepared; None if it is not usable."""
        for (start, stop), (_, held) in list(self._ranges.items()):
            if start <= number < stop:
                return held.frames[number - start : number - start + 1] if held.is_usable(number - start) else None
        # Where all are filtered sooner or later, and kept: in the ranges that passes ask for.
        few = self._xp is np and self._is_filtered and self._frames.count * self._walk.pixels * 8 <= MAX_HELD
        start = number // (size := self._walk.images_at_once if few else 1) * size
        _, found = self.read(start, min(start + size, self._frames.count))
        return found.frames[number - start : number - start + 1] if found.is_usable(number - start) else None

    @property
    def _as_stored(self) -> bool:
        frames, settings = self._frames, self._settings
        is_plain = settings.prefilter.name is None and settings.contrast.sigma is None
        is_held = isinstance(frames, ArrayFrames) and self._walk.images_at_once == frames.count
        return is_plain and is_held and frames.dtype.kind in "iu"


def cropped(images: Array, part: tuple[slice, slice] | None) -> Array:
    """Part (n, h, w) of images in which all of them are known; the images themselves where that is everywhere."""
    return images if part is None else images[:, *part]


def take(frames: Array, rows: NDArray[np.intp]) -> Array:
    """Rows of a stack; the stack itself, not a copy, where all are taken."""
    return frames if rows.size == frames.shape[0] else frames[rows]
