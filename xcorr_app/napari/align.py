"""What the buttons do, on arrays: the first axis is time, the last two are rows and columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.errors import ShapeError
from xcorr_app.registration.estimate import estimate_shifts
from xcorr_app.registration.moving.apply import apply_shifts
from xcorr_app.registration.results.results import ShiftResult

HEADINGS = ("frame", "dy", "dx", "sigma y", "sigma x", "flags")


def measure(data: Any, *, max_shift: float, reference: str = "first") -> ShiftResult:
    """Measure the shift of every frame; axes between time and rows (depth, channels) are averaged for it.

    Raises
    ------
    ShapeError
        If there are fewer than three axes, or fewer than two frames.
    """
    frames = np.asarray(data)
    if frames.ndim < 3 or len(frames) < 2:
        raise ShapeError(
            f"a layer of shape {frames.shape} is no movie: choose one with axes (time, ..., rows, columns)"
        )
    if frames.ndim > 3:
        frames = frames.mean(axis=tuple(range(1, frames.ndim - 2)), dtype=np.float64)
    return estimate_shifts(frames, max_shift=max_shift, reference=reference)


def move(data: Any, result: ShiftResult) -> NDArray[Any]:
    """Move every frame by the measured shifts, linearly interpolated; all that lies between time and rows moves alike.

    Raises
    ------
    ShapeError
        If the number of frames is not that of the measured movie.
    """
    frames = np.asarray(data)
    if frames.ndim < 3 or len(frames) != len(result.shifts):
        raise ShapeError(
            f"a layer of shape {frames.shape} does not fit {len(result.shifts)} measured frames: choose another"
        )
    moved = np.empty_like(frames)
    for place in np.ndindex(*frames.shape[1:-2]):
        at = (slice(None), *place)
        moved[at] = apply_shifts(np.ascontiguousarray(frames[at]), result.applied())
    return moved


def rows(result: ShiftResult) -> list[tuple[str, ...]]:
    """A line of text for each frame, under `HEADINGS`."""
    numbers = np.hstack([result.shifts, result.sigma])
    lines = zip(numbers, result.flags, strict=True)
    return [
        (str(frame), *(f"{each:.3f}" for each in row), ", ".join(flags)) for frame, (row, flags) in enumerate(lines)
    ]


def summary(result: ShiftResult) -> str:
    """Say in a line how many frames can be trusted, how far they moved, and how certain that is."""
    trusted = result.trusted
    if not trusted.any():
        return f"none of {len(trusted)} frames can be trusted; try another reference or a larger shift"
    largest = np.hypot(*result.shifts[trusted].T).max()
    known = result.sigma[trusted]
    known = known[np.isfinite(known)]
    certain = f", median standard error {np.median(known):.3f} px" if known.size else ""
    return f"{int(trusted.sum())} of {len(trusted)} frames trusted, largest shift {largest:.2f} px{certain}"
