"""What the buttons do, on arrays: the first axis is time, the last two are rows and columns."""

import queue
import threading
from collections.abc import Callable, Generator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from xcorr_app.errors import ShapeError
from xcorr_app.gpu.runtime.select import select_device
from xcorr_app.registration.estimate import estimate_shifts
from xcorr_app.registration.estimate_motion import estimate_motion
from xcorr_app.registration.motion.result import MotionResult
from xcorr_app.registration.moving.apply import apply_shifts
from xcorr_app.registration.results.results import ShiftResult
from xcorr_app.registration.stack.passes import Progress

Result: TypeAlias = ShiftResult | MotionResult
MOTIONS = ("translation", "rigid", "similarity", "affine", "patches")


class CancelledError(Exception):
    """The button was pressed."""


def measure(
    data: Any,
    *,
    max_shift: float,
    reference: str = "first",
    motion: str = "translation",
    channel: int | None = None,
    mask: Any = None,
    device: str = "auto",
    progress: Progress | None = None,
) -> Result:
    """Measure the motion of every frame; axes between time and rows (depth, channels) are averaged for it.

    A `channel` is one along the axis after time; pixels count where a `mask` is nonzero.

    Raises
    ------
    ShapeError
        If there are fewer than three axes, or fewer than two frames, or there is no such channel.
    """
    frames = np.asarray(data)
    if frames.ndim < 3 or len(frames) < 2:
        raise ShapeError(
            f"a layer of shape {frames.shape} is no movie: choose one with axes (time, ..., rows, columns)"
        )
    if channel is not None:
        if frames.ndim < 4 or not 0 <= channel < frames.shape[1]:
            raise ShapeError(f"a layer of shape {frames.shape} has no channel {channel} on its second axis")
        frames = frames[:, channel]
    if frames.ndim > 3:
        frames = frames.mean(axis=tuple(range(1, frames.ndim - 2)), dtype=np.float64)
    frames, mask = select_device(device).xp.asarray(frames), None if mask is None else np.asarray(mask)
    if motion == "translation":
        return estimate_shifts(frames, max_shift=max_shift, reference=reference, mask=mask, progress=progress)
    return estimate_motion(frames, motion, reference, mask=mask, progress=progress)


def move(data: Any, result: Result, interpolation: Any = "linear", border: Any = "constant") -> NDArray[Any]:
    """Move every frame as measured; all that lies between time and rows moves alike.

    Raises
    ------
    ShapeError
        If the number of frames is not that of the measured movie.
    """
    frames = np.asarray(data)
    if frames.ndim < 3 or len(frames) != len(result):
        raise ShapeError(f"a layer of shape {frames.shape} does not fit {len(result)} measured frames: choose another")
    moved = np.empty_like(frames)
    for place in np.ndindex(*frames.shape[1:-2]):
        at = (slice(None), *place)
        plane = np.ascontiguousarray(frames[at])
        if isinstance(result, MotionResult):
            moved[at] = result.apply(plane, interpolation, border)
        else:
            moved[at] = apply_shifts(plane, result, interpolation, border)
    return moved


def track(result: Result, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Where the middle of a frame (Y, X) of the reference lies in each: rows (0, frame, row, column) of a track."""
    middle = (np.array(shape[-2:]) - 1) / 2
    shifts = np.nan_to_num(result.shifts)
    return np.column_stack([np.zeros(len(shifts)), np.arange(len(shifts)), middle - shifts])


def steps(call: Callable[[Progress], Any], stop: threading.Event) -> Generator[tuple[str, int, int], None, Any]:
    """Run a call in a thread and yield the progress that it tells; return what it returns, or raise what it raises.

    When `stop` is set it ends where it next tells of progress, by `CancelledError`.
    """
    messages: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def progress(stage: str, done: int, total: int) -> None:
        if stop.is_set():
            raise CancelledError
        messages.put((stage, done, total))

    def work() -> None:
        try:
            messages.put([call(progress)])
        except BaseException as error:  # noqa: BLE001 - it is raised where it was asked for
            messages.put(error)

    threading.Thread(target=work, name="xcorr", daemon=True).start()
    while isinstance(each := messages.get(), tuple):
        yield each
    if isinstance(each, BaseException):
        raise each
    return each[0]
