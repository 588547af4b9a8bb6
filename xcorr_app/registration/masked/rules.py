"""Which pixels count: a rule in words, or masks that are given."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from xcorr_app.arrays.kinds import as_array
from xcorr_app.errors import ArgumentError, ShapeError
from xcorr_app.gpu.runtime.arrays import Array, array_namespace, to_host
from xcorr_app.registration.stack.frames import Frames

_GAPS = 1e-3
"""Share of the pixels that are missing in every frame, above which they are gaps and not single pixels."""
RULES = ("nonzero", "finite", "saturated", "threshold:V")


@dataclass(frozen=True, eq=False)
class Masks:
    """Pixels of a stack that count.

    Attributes
    ----------
    rule : str
        ``nonzero``; ``finite``; ``saturated`` (pixels below the largest value of their integer type count, of floats
        those below the largest of the frame); ``threshold:V`` (pixels above V); or ``given``.
    given : ndarray of bool or None
        True where pixels count: (Y, X) of every frame, or (T, Y, X).
    moves : bool
        A mask (Y, X) belongs to the scene as the reference shows it, and moves with it: all of the frames counts.

    NaN and infinite pixels never count.
    """

    rule: str = "given"
    given: Array | None = None
    moves: bool = False

    def __post_init__(self) -> None:
        if self.rule == "given":
            if self.given is None or self.given.ndim not in (2, 3):
                raise ArgumentError("mask: give an array of (Y, X) or (T, Y, X), or a rule")
            if not bool(self.given.any()):
                raise ArgumentError("mask: no pixel counts; it must be nonzero where the image is to be compared")
        else:
            _threshold(self.rule)
        if self.moves and (self.given is None or self.given.ndim != 2):
            raise ArgumentError("a mask that moves with the scene is one image (Y, X)")

    @classmethod
    def of(cls, mask: str | Array, *, moves: bool = False) -> Masks:
        """Read a rule, or take an array, nonzero where pixels count."""
        if isinstance(mask, str):
            return cls(mask, None, moves)
        mask = as_array(mask, "mask")
        return cls("given", array_namespace(mask).isfinite(mask) & (mask != 0), moves)

    def check(self, count: int, shape: tuple[int, int]) -> None:
        """Raise ShapeError where masks that are given do not fit a stack."""
        if self.given is None:
            return
        wanted = (shape, (count, *shape))
        if self.given.shape not in wanted:
            sizes = " x ".join(map(str, self.given.shape))
            raise ShapeError(f"mask is {sizes}: the frames are {shape[0]} x {shape[1]}, {count} of them")

    def rectangle(self, part: tuple[slice, slice], shape: tuple[int, int]) -> tuple[slice, slice]:
        """Rows and columns of a part of the frames, within which all lies that one mask lets count."""
        if self.given is None or self.given.ndim > len(shape) or self.moves:
            return part
        counts = np.zeros(shape, dtype=bool)
        counts[part] = to_host(self.given[part])
        rows, columns = (np.flatnonzero(counts.any(axis=across)) for across in (1, 0))
        return (slice(rows[0], rows[-1] + 1), slice(columns[0], columns[-1] + 1)) if rows.size else part

    def note(self, share: float) -> str:
        """Say what was measured, and which share of the reference that is."""
        return f"Measured by the pixels that count (mask: {self.rule}); {share:.0%} of the reference."

    def of_frames(self, frames: Array, start: int, *, reference: bool = False) -> Array:
        """Which pixels (n, h, w) of frames count, the first being number `start`; of an image that is compared with."""
        xp = array_namespace(frames)
        counts = xp.isfinite(frames)
        if self.given is None:
            return counts & self._by_rule(xp, frames)
        given = xp.asarray(self.given)
        if given.ndim == 3:
            return counts & given[start : start + frames.shape[0]]
        return counts & given if reference or not self.moves else counts

    def of_reference(self, image: Array, number: int | None) -> Array:
        """Which pixels of an image (h, w) count that frames are compared with: the frame of a number, or none."""
        if number is None and self.given is not None and self.given.ndim == 3:  # each of its own frame
            return array_namespace(image).isfinite(image)
        return self.of_frames(image[None], number or 0, reference=True)[0]

    def _by_rule(self, xp: Any, frames: Array) -> Array:
        if self.rule == "finite":
            return xp.ones(frames.shape, dtype=bool)
        if self.rule == "nonzero":
            return frames != 0
        if self.rule == "saturated":
            if frames.dtype.kind != "f":
                return frames < np.iinfo(frames.dtype).max
            return frames < xp.nanmax(frames, axis=(1, 2), keepdims=True)
        return frames > _threshold(self.rule)


def _threshold(rule: str) -> float:
    """Value of ``threshold:V``; raises ArgumentError where there is no such rule."""
    name, _, value = rule.partition(":")
    if name == "threshold":
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if math.isfinite(number):
            return number
    elif rule in RULES:
        return 0.0
    raise ArgumentError(f"mask {rule!r} is no rule: use {', '.join(RULES)} with a number V, or an existing image")


def has_static_gaps(frames: Frames) -> bool:
    """Whether a float stack lacks the same pixels throughout, such as the rim of frames that were moved before.

    The first, the middle and the last frame are looked at. What is missing in all of them would count as part of the
    scene if it were filled, and hold every shift to zero.
    """
    if frames.dtype.kind != "f" or frames.count < 2:
        return False
    missing: Array | None = None
    for number in sorted({0, frames.count // 2, frames.count - 1}):
        chunk = frames.read(number, number + 1)
        if chunk.unreadable:
            continue
        here = ~array_namespace(chunk.frames).isfinite(chunk.frames[0])
        missing = here if missing is None else missing & here
    if missing is None or bool(missing.all()):
        return False
    return float(missing.mean()) > _GAPS
