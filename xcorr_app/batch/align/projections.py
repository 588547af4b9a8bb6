"""What is gathered of a stack while it is moved, chunk by chunk, on the host or on the device: pictures and sums."""

import copy
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, array_namespace, is_device_array, to_host
from xcorr_app.gpu.runtime.memory import attempt, bytes_within_limit, release_unused
from xcorr_app.registration.assessment_sums import AssessmentSums, SharedArea, Side, extents_of, shared_area
from xcorr_app.registration.masked.assessment import MaskedFrames, by_shifts
from xcorr_app.registration.masked.rules import Masks
from xcorr_app.registration.settings import Roi
from xcorr_app.registration.warping.warp import Warp
from xcorr_app.report.pictures import PREVIEW_SIDE, THUMBNAIL_SIDE, Pictures, block_mean, block_side, preview_of

_ACCUMULATED = (np.uint8, np.uint16, np.float32, np.float64)
"""Types of pixels that OpenCV adds up."""
_MAX_THUMBNAILS = 24
_ROOM = 24
"""Bytes of a device's memory that the sums of a byte of frames take on the way, at most."""
_FEW_PIXELS = 1 << 20
"""Pixels of a frame whose sums may wait until a thread draws them; 48 bytes each."""
_PREVIEWED = 24
"""Frames spread over the stack that the preview plays."""


class PixelSums:
    """Sums of values, pixel by pixel."""

    def __init__(self) -> None:
        self._sum: Any = None
        self._missing: Any = 0

    def add(self, frames: Array, extents: NDArray[np.int64] | None = None) -> None:
        """Take in frames; `extents` (n, 4) are first row, stop, first column, stop of what they cover."""
        xp = array_namespace(frames)
        shape = frames.shape[1:]
        if self._sum is None:
            self._sum = xp.zeros(shape)
        if frames.dtype.kind == "f":
            finite = xp.isfinite(frames)
            if xp is not np or not finite.all():
                missing = ~finite if extents is None else ~finite & _covered(shape, xp.asarray(extents))
                self._missing = self._missing + missing.sum(axis=0)
                frames = xp.where(finite, frames, 0)
        if xp is not np:
            values = frames if extents is None else frames * _covered(shape, xp.asarray(extents))
            self._sum += values.sum(axis=0, dtype=np.float64)
            return
        if frames.dtype not in _ACCUMULATED:
            frames = frames.astype(np.float64)
        for i, frame in enumerate(frames):
            top, bottom, left, right = (0, shape[0], 0, shape[1]) if extents is None else extents[i]
            if bottom > top and right > left:
                part = (slice(top, bottom), slice(left, right))
                cv2.accumulate(frame[part], self._sum[part])

    def to_host(self) -> None:
        """Go on with NumPy arrays."""
        if self._sum is not None:
            self._sum = to_host(self._sum)
        self._missing = self._missing if isinstance(self._missing, int) else to_host(self._missing)

    def mean(self, covered: Any) -> NDArray[np.float32]:
        """Mean over frames that cover every pixel, or each, so many times; NaN where none has a value."""
        number = covered - self._missing
        with np.errstate(over="ignore", invalid="ignore"):
            mean = (self._sum / np.maximum(number, 1)).astype(np.float32)
        return np.where(number > 0, mean, np.float32(np.nan))


class Projections:
    """Running sums over frames before and after they are moved, and small pictures of some of them.

    Parameters
    ----------
    shape : (int, int)
        Rows and columns.
    shifts : (T, 2) array
        By which the frames are moved: what they cover afterwards.
    flagged : list of int
        Frames of which the first few are kept as thumbnails.
    roi : (slice, slice), optional
        Part of the frame that is measured.
    defects : (n, 2) array, optional
        Hot and dead pixels, which say nothing of how good the result is.
    masks : Masks, optional
        Pixels that count: others are in no figure and in no picture.
    warps : (Warp, Warp), optional
        What moves frames that are not only shifted, and moves back what counts after: what a frame does not show then
        is in no figure and in no picture.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        shifts: NDArray[np.float64],
        flagged: list[int],
        roi: Roi | None = None,
        defects: NDArray[np.intp] | None = None,
        masks: Masks | None = None,
        warps: tuple[Warp, Warp] | None = None,
    ) -> None:
        self._extents = extents_of(shape, shifts)
        kept = np.isfinite(shifts).all(axis=1)
        shared = shared_area(shape, self._extents[kept])
        self._masked: MaskedFrames | None = None
        if masks is not None or warps is not None:
            whole = slice(0, shape[0]), slice(0, shape[1])
            shared = SharedArea(whole, np.ones(int(kept.sum()), dtype=bool)) if kept.sum() > 1 else None
            self._masked = MaskedFrames(masks or Masks("finite"), warps or (by_shifts(shifts), by_shifts(-shifts)))
        self._shape = shape
        self._wanted = frozenset(flagged[:_MAX_THUMBNAILS])
        count = len(shifts)
        self._previewed = frozenset(np.linspace(0, count - 1, min(count, _PREVIEWED)).round().astype(int).tolist())
        self.sums: AssessmentSums | None = None
        """For :func:`xcorr_app.registration.assessment.assessment_of`."""
        if shared is not None:
            self.sums = AssessmentSums(shared, roi, defects, shifts[kept], masked=self._masked is not None)
        self._before, self._after = PixelSums(), PixelSums()
        self._numbers: list[int] = []
        self._thumbnails: dict[int, NDArray[np.float32]] = {}
        self._preview: list[tuple[NDArray[Any], NDArray[Any]]] = []
        self._pictures: Pictures | None = None
        self._on_host = False
        """From where the device's memory does not suffice, the sums stay on the host."""

    def add(self, numbers: Sequence[int], before: Array, after: Array) -> None:
        """Take in frames (n, Y, X) of these numbers, in the order of the stack, as they were and as they are moved."""
        if is_device_array(before):
            if not self._on_host and bytes_within_limit() >= _ROOM * before.nbytes:
                # Where memory runs out for all that, some sums have these frames and some have not.
                so_far = attempt(_copied, (self._before, self._after, self.sums))
                if so_far and attempt(self._add, numbers, before, after):
                    return
                if so_far:
                    self._before, self._after, self.sums = so_far[0]
                release_unused()
            before, after = to_host(before), to_host(after)
        self._add(numbers, before, after)

    def _add(self, numbers: Sequence[int], before: Array, after: Array) -> None:
        xp = array_namespace(before)
        if xp is np and not self._on_host:
            self.to_host()
        if self._masked is not None:
            before, after = self._masked.of(list(numbers), before, after)
        extents = self._extents[list(numbers)]
        # Values near the limit of float64 may overflow: a picture is for looking at only.
        with np.errstate(over="ignore", invalid="ignore"), _beside(self.sums, before, after):
            self._before.add(before)
            self._after.add(after, extents)
        for i, number in enumerate(numbers):
            if number in self._wanted:
                image = to_host(before[i])
                step = block_side(max(image.shape), THUMBNAIL_SIDE)
                self._thumbnails[number] = block_mean(image, step)
        shown = [i for i, number in enumerate(numbers) if number in self._previewed]
        if shown:
            of_shown = (_small(before[shown], None), _small(after[shown], extents[shown]))
            self._preview += zip(*of_shown, strict=True)
        self._numbers += numbers

    def to_host(self) -> None:
        """Bring all to the host, by the thread that owns the device."""
        for sums in (self._before, self._after, self.sums):
            if sums is not None:
                sums.to_host()
        self._on_host = True

    def finish(self) -> None:
        """End the sums: the pictures are made by the thread that draws.

        Of large frames they are made at once: the sums of several stacks that wait would take too much memory.
        """
        self.sums = None
        self.to_host()
        if self._shape[0] * self._shape[1] > _FEW_PIXELS:
            self._pictures = self.pictures()

    def pictures(self) -> Pictures:
        """What a report shows, reduced to the size it is shown at; nothing can be added any more, for memory's sake."""
        if self._pictures is not None:
            return self._pictures
        self.to_host()
        extents, preview = self._extents[self._numbers], self._preview
        return Pictures(
            mean_before=self._before.mean(np.float32(len(self._numbers))),
            mean_after=self._after.mean(_coverage(self._shape, extents)),
            thumbnails=self._thumbnails,
            preview=preview_of([pair[0] for pair in preview], [pair[1] for pair in preview]),
        ).shrunk()


@contextmanager
def _beside(sums: AssessmentSums | None, before: Array, after: Array) -> Iterator[None]:
    """Add frames to sums, on a host by another thread: all that is gathered in turn takes longer than moving frames.

    A thread for a few small frames would take longer than they do.
    """
    if sums is None or is_device_array(before) or before.size <= _FEW_PIXELS:
        yield
        if sums is not None:
            sums.add(before, after)
        return
    with ThreadPoolExecutor(1, thread_name_prefix="xcorr-assess") as pool:
        added = pool.submit(sums.add, before, after)
        yield
        added.result()


def _copied(sums: Any) -> Any:
    """Sums as they are now, though more is added; what is gathered in lists does not change."""
    if isinstance(sums, (PixelSums, AssessmentSums, Side)):
        one = copy.copy(sums)
        vars(one).update((name, _copied(value)) for name, value in vars(sums).items())
        return one
    if isinstance(sums, tuple):
        return tuple(map(_copied, sums))
    return sums.copy() if isinstance(sums, (np.ndarray, list)) or is_device_array(sums) else sums


def _covered(shape: tuple[int, ...], extents: Array) -> Array:
    """(n, Y, X) which pixels frames cover."""
    rows, columns = (array_namespace(extents).arange(length) for length in shape)
    down = (rows >= extents[:, :1]) & (rows < extents[:, 1:2])
    across = (columns >= extents[:, 2:3]) & (columns < extents[:, 3:])
    return down[:, :, None] & across[:, None, :]


def _coverage(shape: tuple[int, int], extents: NDArray[np.int64]) -> NDArray[np.float32]:
    """How many frames cover each pixel: sums of +-1 at the corners of what each covers."""
    corners = np.zeros((shape[0] + 1, shape[1] + 1), dtype=np.float32)
    top, bottom, left, right = extents.T
    for rows, columns, sign in ((top, left, 1), (bottom, right, 1), (top, right, -1), (bottom, left, -1)):
        np.add.at(corners, (rows, columns), sign)
    return corners.cumsum(axis=0).cumsum(axis=1)[:-1, :-1]


def _small(images: Array, extents: NDArray[np.int64] | None) -> NDArray[np.float32]:
    """Images (n, Y, X) as a preview shows them, within what they cover (n, 4)."""
    shape = images.shape[1:]
    step = block_side(max(shape), PREVIEW_SIDE)
    if is_device_array(images):
        return _small_on_device(images, extents, step)
    if extents is None:
        return np.stack([block_mean(image, step) for image in images])
    parts = [(slice(top, bottom), slice(left, right)) for top, bottom, left, right in extents.tolist()]
    return np.stack([block_mean(image, step, part) for image, part in zip(images, parts, strict=True)])


def _small_on_device(images: Array, extents: NDArray[np.int64] | None, step: int) -> NDArray[np.float32]:
    """As `block_mean` of each: a few steps for all of them, and little that is brought to the host."""
    xp, (rows, columns) = array_namespace(images), images.shape[1:]
    whole = xp.asarray(np.tile([0, rows, 0, columns], (len(images), 1)) if extents is None else extents)
    counted = _covered((rows, columns), whole)
    limit = float(np.finfo(np.float32).max)
    values = images.astype(np.float64)
    if images.dtype.kind == "f":
        counted &= xp.isfinite(values)
    blocks = (len(images), -(-rows // step), step, -(-columns // step), step)
    rim = ((0, 0), (0, blocks[1] * step - rows), (0, blocks[3] * step - columns))
    values = xp.where(counted, xp.clip(values, -limit, limit), 0.0)
    sums, counts = (xp.pad(part, rim).reshape(blocks).sum(axis=(2, 4)) for part in (values, counted))
    small: NDArray[np.float32] = to_host(xp.where(counts > 0, sums / xp.maximum(counts, 1), np.nan).astype(np.float32))
    return small
