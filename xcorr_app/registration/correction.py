"""Frames freed of what the camera and the light add: a dark image, uneven sensitivity, a background that stands still.

``(frame - dark) / (flat - dark)``, times the mean of the denominator so that values keep their size, less what stands
still. A pixel that the flat image gives no light is left as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.arguments import check_image
from xcorr_app.arrays.kinds import as_array, keeps_labels
from xcorr_app.errors import ArgumentError, ShapeError
from xcorr_app.gpu.runtime.arrays import Array, array_namespace, to_host
from xcorr_app.gpu.runtime.placement import on_device_of
from xcorr_app.registration.stack.frames import ArrayFrames, Chunk, Frames, FramesOver

MEDIAN = "median"
_SAMPLED = 64
"""Frames spread over the stack that the median is taken of."""


@dataclass(frozen=True, eq=False)
class Correction:
    """What is taken off frames, and what they are multiplied by; images (Y, X) of float32, on the host."""

    offset: NDArray[np.float32]
    gain: NDArray[np.float32]

    @classmethod
    def of(
        cls,
        shape: tuple[int, int],
        flat: NDArray[Any] | None = None,
        dark: NDArray[Any] | None = None,
        background: NDArray[Any] | None = None,
    ) -> Correction:
        """Make a correction of images (Y, X); `background` is in units of corrected frames."""
        for name, image in (("flat", flat), ("dark", dark), ("background", background)):
            if image is None:
                continue
            check_image(image, name)
            if image.shape != shape:
                raise ShapeError(f"{name} has shape {image.shape}: the frames are {shape[0]} x {shape[1]}")
            if not np.isfinite(image).all():
                raise ArgumentError(f"{name} holds NaN or infinite pixels: give an image of finite values")
        offset = np.zeros(shape) if dark is None else dark.astype(np.float64)
        gain = np.ones(shape)
        if flat is not None:
            light = flat - offset
            lit = light > 0
            if not lit.any():
                raise ArgumentError("flat is nowhere brighter than dark: are the two images exchanged?")
            gain[lit] = light[lit].mean() / light[lit]
        if background is not None:
            offset = offset + background / gain
        return cls(offset.astype(np.float32), gain.astype(np.float32))

    def corrected(self, frames: Array) -> Array:
        """Frames (n, Y, X) corrected, as floating point."""
        xp = array_namespace(frames)
        dtype = np.float64 if frames.dtype.itemsize > 4 or frames.dtype.name in ("int32", "uint32") else np.float32
        return (frames.astype(dtype) - xp.asarray(self.offset)) * xp.asarray(self.gain)

    def as_stored(self, frames: Array) -> Array:
        """Frames corrected and of their own type; integers are rounded half to even and clipped."""
        values, dtype = self.corrected(frames), frames.dtype
        if dtype.kind == "f":
            return values.astype(dtype)
        limits, xp = np.iinfo(dtype), array_namespace(frames)
        return xp.clip(xp.rint(values), limits.min, limits.max).astype(dtype)


@dataclass(frozen=True)
class CorrectedFrames(FramesOver):
    """Frames of a stack, corrected as they are read."""

    correction: Correction

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of a pixel once corrected."""
        return np.dtype(np.float32)

    def read(self, start: int, stop: int) -> Chunk:
        """Read and correct frames; one that cannot be read stays zero."""
        chunk = self.source.read(start, stop)
        frames = self.correction.corrected(chunk.frames)
        for number in chunk.unreadable:
            frames[number - start] = 0
        return replace(chunk, frames=frames)


def correction_for(
    frames: Frames,
    flat: NDArray[Any] | None,
    dark: NDArray[Any] | None,
    background: str | NDArray[Any] | None,
) -> Correction:
    """Correction of a stack; the background ``median`` is that of up to 64 frames of it, over time."""
    first = Correction.of(frames.shape, flat, dark)
    if background is None:
        return first
    if isinstance(background, str):
        if background != MEDIAN:
            raise ArgumentError(f"background {background!r}: use {MEDIAN!r} or an image")
        numbers = np.unique(np.linspace(0, frames.count - 1, min(frames.count, _SAMPLED)).round().astype(int))
        chunks = [frames.read(number, number + 1) for number in numbers.tolist()]
        sample = [to_host(first.corrected(chunk.frames))[0] for chunk in chunks if not chunk.unreadable]
        if not sample:
            return first
        background = np.nan_to_num(np.nanmedian(sample, axis=0))
    # What is bright stays positive: the mean level of the background is kept.
    level = np.asarray(background)
    check_image(level, "background")
    level = level.astype(np.float64)
    return Correction.of(frames.shape, flat, dark, level - level.mean())


@keeps_labels
def correct_frames(
    stack: Array,
    *,
    flat: NDArray[Any] | None = None,
    dark: NDArray[Any] | None = None,
    background: str | NDArray[Any] | None = None,
) -> Array:
    """Correct frames for a dark image, uneven sensitivity or illumination, and a background that stands still.

    Parameters
    ----------
    stack : array_like, shape (T, Y, X)
    flat, dark : array_like, shape (Y, X), optional
        Images of an even field, and without light, as the camera stores them; in host memory.
    background : 'median' or array_like, optional
        Subtracted but for its mean: the median over time of up to 64 frames, or an image of corrected values.

    Returns
    -------
    ndarray of float32, or float64 for wider types, shape (T, Y, X)
        ``(stack - dark) / (flat - dark)``, times the mean of ``flat - dark``, less the background.

    Raises
    ------
    ShapeError, ArgumentError
        For images of another size, with values that are not finite, or a flat image not brighter than the dark one.

    Examples
    --------
    >>> import numpy as np
    >>> flat = np.array([[1.0, 3.0]])
    >>> correct_frames(np.array([[[10, 30]], [[20, 60]]], np.uint16), flat=flat).tolist()
    [[[20.0, 20.0]], [[40.0, 40.0]]]
    """
    stack = as_array(stack, "stack")
    flat, dark = (None if each is None else as_array(each, "image") for each in (flat, dark))
    background = background if background is None or isinstance(background, str) else as_array(background, "background")
    with on_device_of(stack):
        return correction_for(ArrayFrames(stack), flat, dark, background).corrected(stack)
