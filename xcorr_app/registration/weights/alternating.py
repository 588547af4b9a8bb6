"""Every other row or column is unlike its neighbours: no weight mends that, but a mean of three, (1, 2, 1) / 4, does.

Rows of a scanner that sweeps to and fro lie aside by an offset, the same in all frames. An interlaced video's second
half is taken a half frame later: its offset is how far the camera moved meanwhile, another one in every frame. Raw
frames of a colour camera are a mosaic, each pixel sees one colour. A frame of such rows, moved by an odd number of
them, does not resemble itself: the peak of the correlation is bent towards even shifts, by up to half a pixel. The mean
holds as much of either kind whatever the frame's shift. Offsets, however small, are seen by the slopes of the rows
(Lucas and Kanade 1981); a mosaic by pixels two apart that are more alike than neighbours, as in no picture that optics
draws.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, array_namespace, to_host
from xcorr_app.registration.measuring.measured import ShiftColumns, near_each_other, spread, taken
from xcorr_app.registration.settings import Settings
from xcorr_app.registration.stack.frames import Chunk, FloatFramesOver, Frames
from xcorr_app.registration.weights.line_offsets import glance, middle_rows

_MIN_SIDE = 32
"""Rows and columns below which nothing is looked for."""
_MORE_ALIKE = 0.03
"""Of the variance, by which pixels two apart covary more than neighbours, along rows and columns, in every frame."""
_MIN_BETWEEN, _ERRORS, _GROUPS = 0.1, 5.0, 16
"""Pixels and standard errors of an offset of odd rows in most frames looked at, and groups of rows that tell these."""
_MAX_DIFFERENCE = 0.5
"""Pixels, or share of the offset, by which those of frames differ at most where a scanner makes them."""


@dataclass(frozen=True)
class EvenedFrames(FloatFramesOver):
    """Frames with each row, or also column, the mean of itself and, by half each, of the two beside it."""

    note: str
    columns: bool = False

    def changed(self, chunk: Chunk) -> Array:
        """Average them."""
        rows = array_namespace(chunk.frames).pad(chunk.frames, ((0, 0), (1, 1), (1, 1)), mode="reflect")
        rows = (rows[:, :-2] + 2 * rows[:, 1:-1] + rows[:, 2:]) / 4
        return (rows[..., :-2] + 2 * rows[..., 1:-1] + rows[..., 2:]) / 4 if self.columns else rows[..., 1:-1]


def even_mosaic(frames: Frames, measured: ShiftColumns) -> EvenedFrames | None:
    """Frames without a mosaic; None where there is none."""
    usable = np.flatnonzero(measured.usable)
    if min(frames.shape) < _MIN_SIDE or usable.size < 2:
        return None
    for number in spread(usable).tolist():
        if not has_mosaic(to_host(frames.read(number, number + 1).frames[0]).astype(np.float64)):
            return None
    return EvenedFrames(
        frames,
        "Pixels differ by even and odd rows and columns (raw frames of a colour camera): each was averaged with those "
        "beside it for measuring. Moved by other than even pixels, colours mix: interpolate them first, and apply "
        "these shifts.",
        columns=True,
    )


def has_mosaic(image: NDArray[np.float64]) -> bool:
    """Whether pixels two apart are more alike than neighbours, both ways; of one with NaN nothing is known."""
    # Products of values at the limits of their type are infinite: then nothing is known.
    with np.errstate(over="ignore", invalid="ignore"):
        image = image - image.mean()
        apart = [(lines[2:] * lines[:-2]).mean() - (lines[1:] * lines[:-1]).mean() for lines in (image, image.T)]
        return bool(min(apart) > _MORE_ALIKE * (image**2).mean())


def evened_rows(frames: Frames, measured: ShiftColumns, settings: Settings) -> EvenedFrames | None:
    """Frames whose rows are joined; None where odd rows lie where the others do."""
    usable = near_each_other(measured, frames.shape)
    if usable.size < 2 or min(settings.measured_shape(frames.shape)) < _MIN_SIDE:
        return None
    some = spread(usable)
    # Sums of values at the limits of their type are infinite: then nothing is known.
    with np.errstate(over="ignore", invalid="ignore"):
        # The middle rows of two frames tell as a rule.
        if (seen := glance(frames, usable, settings)) is not None:
            _, beside = offsets(seen.shared, seen.own)
        else:
            middle = middle_rows(settings.measured_shape(frames.shape)[0])
            _, beside = odd_rows(taken(frames, some[1:3], settings)[:, middle])
        if not beside.any():
            return None
        images = taken(frames, some, settings)
        offset, beside = odd_rows(images)
    if 2 * beside.sum() <= beside.size:
        return None
    if np.ptp(offset) > _MAX_DIFFERENCE * max(1.0, np.abs(offset).min()):
        return EvenedFrames(
            frames,
            "Every other row lies beside its neighbours, by another offset in every frame (interlaced video): each row "
            "was averaged with the two beside it for measuring. What is written keeps the offsets; deinterlace before "
            "aligning if they matter.",
        )
    from skimage.registration import phase_cross_correlation

    # Of magnitude one, squares fit any type.
    image = to_host(images[0, : (images.shape[1] - 1) // 2 * 2 + 1] / abs(images[0]).max())
    odd, beside = image[1::2], image[:-2:2] + image[2::2]
    aside = phase_cross_correlation(odd, beside, upsample_factor=10, normalization=None)[0]  # type: ignore[no-untyped-call]
    return EvenedFrames(
        frames,
        f"Every other row lies {abs(aside[1]):.1f} px beside its neighbours, as a scanner that sweeps to and fro "
        "leaves them: each row was averaged with the two beside it for measuring. What is written keeps the offset; "
        "correct it (scan phase) before aligning if it matters.",
    )


def odd_rows(images: Array) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Pixels (n,) by which odd rows of images (n, h, w) lie to the right, if by fractions; which surely do."""
    xp = array_namespace(images)
    rows = images[:, : (images.shape[1] - 1) // 2 * 2 + 1]
    # Squares of values near the limit of their type would not fit it.
    largest = abs(rows).max(axis=(1, 2), keepdims=True)
    rows = rows / xp.where(largest > 0, largest, 1)
    beside = (rows[:, :-2:2] + rows[:, 2::2]) / 2
    slope = (beside[:, :, 2:] - beside[:, :, :-2]) / 2
    differs = (beside - rows[:, 1::2])[:, :, 1:-1]
    return offsets(*(to_host(product.sum(axis=2)).astype(np.float64) for product in (slope * differs, slope * slope)))


def offsets(shared: NDArray[np.float64], own: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The same by sums (n, pairs) over odd rows: of slope times difference, and of the slope squared."""
    count = min(_GROUPS, shared.shape[1])
    size = shared.shape[1] // count
    shared, own = (sums[:, : count * size].reshape(-1, count, size).sum(axis=2) for sums in (shared, own))
    whole = np.maximum(own.sum(axis=1), np.finfo(np.float64).tiny)
    offset = shared.sum(axis=1) / whole
    scatter = ((shared - offset[:, None] * own) ** 2).sum(axis=1) * count / max(count - 1, 1)
    surely: NDArray[np.bool_] = np.abs(offset) > np.maximum(_MIN_BETWEEN, _ERRORS * np.sqrt(scatter) / whole)
    return offset, surely
