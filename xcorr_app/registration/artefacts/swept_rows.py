"""Every other row lies beside its neighbours: of a scanner that sweeps to and fro, of interlaced video.

A frame of such rows, moved by an odd number of rows, does not resemble itself: the peak of the correlation is bent
towards even shifts, by up to half a pixel. A scanner's offset, a pixel or two, is the same in all frames, and is seen
where each odd row is correlated with the mean of the two beside it. A video's second half is taken a half frame later:
its offset is how far the camera moved meanwhile, another one in every frame, and is seen by the slopes of the rows
(Lucas and Kanade 1981) however small. Means of three rows, (1, 2, 1) / 4, hold as much of either kind whatever the
frame's shift, and are measured in place of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, array_namespace, fft_namespace, to_host
from xcorr_app.registration.artefacts.line_glance import OF_SWEPT, glance, middle_rows
from xcorr_app.registration.measuring.few_frames import near_each_other, spread, taken
from xcorr_app.registration.measuring.measured import Measured
from xcorr_app.registration.settings import Settings
from xcorr_app.registration.stack.frames import Chunk, FloatFramesOver, Frames

_SMALLEST = 32
_FARTHEST = 16
"""Pixels of offset that are looked for."""
_LEAST, _ALIKE = 0.5, 0.5
"""Pixels of offset that bend a shift, and by which those of the frames looked at may differ."""
_DEVIATIONS = 6.0
"""Of the correlation of noise, by which rows of all frames looked at resemble each other more at that offset."""
_MIN_BETWEEN, _ERRORS, _GROUPS = 0.1, 5.0, 16
"""Pixels and standard errors of an interlaced offset in most frames looked at, and groups of rows that tell these."""


@dataclass(frozen=True)
class JoinedRows(FloatFramesOver):
    """Frames with each row the mean of itself and, by half each, of the two beside it."""

    offset: float
    """Pixels by which odd rows lie to the right of the others; NaN where that is another in every frame."""

    def changed(self, chunk: Chunk) -> Array:
        """Join their rows."""
        rows = array_namespace(chunk.frames).pad(chunk.frames, ((0, 0), (1, 1), (0, 0)), mode="reflect")
        return (rows[:, :-2] + 2 * rows[:, 1:-1] + rows[:, 2:]) / 4

    @property
    def note(self) -> str:
        """What was done, in words."""
        if np.isnan(self.offset):
            return (
                "Every other row lies beside its neighbours, by another offset in every frame (interlaced video): each "
                "row was averaged with the two beside it for measuring. What is written keeps the offsets; "
                "deinterlace before aligning if they matter."
            )
        return (
            f"Every other row lies {abs(self.offset):.1f} px beside its neighbours, as a scanner that sweeps to and "
            "fro leaves them: each row was averaged with the two beside it for measuring. What is written keeps the "
            "offset; correct it (scan phase) before aligning if it matters."
        )


def joined_rows(frames: Frames, measured: Measured, settings: Settings) -> JoinedRows | None:
    """Frames whose rows are joined; None where odd rows lie where the others do."""
    if not settings.contrast.auto or settings.normalization != "zncc" or settings.kernel_options is not None:
        return None
    usable = near_each_other(measured, frames.shape)
    if usable.size < 2 or min(settings.measured_shape(frames.shape)) < _SMALLEST:
        return None
    some = spread(usable, OF_SWEPT)
    # Sums of values at the limits of their type are infinite: then nothing is known.
    with np.errstate(over="ignore", invalid="ignore"):
        # The middle rows of two frames tell as a rule.
        if (seen := glance(frames, usable, settings)) is not None:
            beside = _surely(*_offsets(seen.shared, seen.own))
        else:
            beside = _lie_beside(
                taken(frames, some[1:3], settings)[:, middle_rows(settings.measured_shape(frames.shape)[0])]
            )
        if not beside.any():
            return None
        images = taken(frames, some, settings)
        offset, deviations = odd_rows(images)
        moved = _lie_beside(images)
    is_sure = deviations.sum() >= _DEVIATIONS * np.sqrt(offset.size)
    is_one = np.abs(offset).min() >= _LEAST and np.abs(offset).max() < _FARTHEST - 1 and np.ptp(offset) <= _ALIKE
    if is_sure and is_one:
        return JoinedRows(frames, float(np.median(offset)))
    return JoinedRows(frames, np.nan) if 2 * moved.sum() > moved.size else None


def _lie_beside(images: Array) -> NDArray[np.bool_]:
    """Whether odd rows of images (n, h, w) surely lie beside the others."""
    return _surely(*offsets_between(images))


def _surely(offset: NDArray[np.float64], errors: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether offsets (n,) with such errors are none by chance."""
    surely: NDArray[np.bool_] = (np.abs(offset) >= _MIN_BETWEEN) & (np.abs(offset) > _ERRORS * errors)
    return surely


def odd_rows(images: Array) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Pixels (n,) by which odd rows of images (n, h, w) lie to the right, and by how many deviations that is sure."""
    xp, fft = array_namespace(images), fft_namespace(images)
    rows = images[:, : (images.shape[1] - 1) // 2 * 2 + 1]
    # Sums and squares of values near the limit of their type would not fit it.
    largest = abs(rows).max(axis=(1, 2), keepdims=True)
    rows = rows / xp.where(largest > 0, largest, 1)
    odd, beside = rows[:, 1::2], (rows[:, :-2:2] + rows[:, 2::2]) / 2
    odd, beside = (each - each.mean(axis=2, keepdims=True) for each in (odd, beside))
    products = (fft.rfft(odd, axis=2) * fft.rfft(beside, axis=2).conj()).sum(axis=1)
    power = xp.sqrt((odd * odd).sum(axis=(1, 2)) * (beside * beside).sum(axis=(1, 2)))
    score = to_host(fft.irfft(products, odd.shape[2], axis=1) / xp.maximum(power, 1e-30)[:, None]).astype(np.float64)
    lags = np.arange(-_FARTHEST, _FARTHEST + 1)
    near, n = score[:, lags], np.arange(len(score))
    peak = np.clip(near.argmax(axis=1), 1, lags.size - 2)
    before, at, after = (near[n, peak + step] for step in (-1, 0, 1))
    bend = 2 * at - before - after
    offset = lags[peak] + np.where(bend > 0, (after - before) / 2 / np.where(bend > 0, bend, 1.0), 0.0)
    deviations = (at - score[:, 0]) * np.sqrt(odd[0].size)
    return offset, deviations


def offsets_between(images: Array) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Pixels (n,) by which odd rows of images (n, h, w) lie to the right, if by fractions, and standard errors."""
    xp = array_namespace(images)
    rows = images[:, : (images.shape[1] - 1) // 2 * 2 + 1]
    largest = abs(rows).max(axis=(1, 2), keepdims=True)
    rows = rows / xp.where(largest > 0, largest, 1)
    beside = (rows[:, :-2:2] + rows[:, 2::2]) / 2
    slope = (beside[:, :, 2:] - beside[:, :, :-2]) / 2
    differs = (beside - rows[:, 1::2])[:, :, 1:-1]
    shared, own = (to_host(product.sum(axis=2)).astype(np.float64) for product in (slope * differs, slope * slope))
    return _offsets(shared, own)


def _offsets(shared: NDArray[np.float64], own: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The same by sums (n, pairs) over odd rows: of slope times difference, and of the slope squared."""
    count = min(_GROUPS, shared.shape[1])
    size = shared.shape[1] // count
    shared, own = (sums[:, : count * size].reshape(-1, count, size).sum(axis=2) for sums in (shared, own))
    whole = np.maximum(own.sum(axis=1), np.finfo(np.float64).tiny)
    offset = shared.sum(axis=1) / whole
    scatter = ((shared - offset[:, None] * own) ** 2).sum(axis=1) * count / max(count - 1, 1)
    return offset, np.sqrt(scatter) / whole
