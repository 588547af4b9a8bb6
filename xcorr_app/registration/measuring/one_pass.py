"""All frames of a stack against one kind of reference: one pass, and passes over some of the frames again."""

import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from xcorr_app.correlation.engines import choose_engine, limits_of
from xcorr_app.correlation.standardize import standardize
from xcorr_app.correlation.weighting import LAGS, QUIET, WEIGHED_FRAMES, autocorrelations, weighting_kernel
from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.decision import Decision
from xcorr_app.gpu.runtime.arrays import Array
from xcorr_app.gpu.runtime.memory import attempt
from xcorr_app.gpu.runtime.types import name_of
from xcorr_app.registration.choice import decide_registration
from xcorr_app.registration.light.even_light import LitImage
from xcorr_app.registration.measuring.device_matcher import PendingFrames
from xcorr_app.registration.measuring.match import ChunkResult
from xcorr_app.registration.measuring.matcher import Matcher
from xcorr_app.registration.measuring.measured import ShiftColumns, spread
from xcorr_app.registration.measuring.phase_ramp import with_phase_ramps
from xcorr_app.registration.measuring.references import FixedImage
from xcorr_app.registration.measuring.verification import verify
from xcorr_app.registration.parts import masks
from xcorr_app.registration.parts.tiles import Grid, Judged, started_look
from xcorr_app.registration.quality import signal_fraction
from xcorr_app.registration.settings import PHASE, Settings
from xcorr_app.registration.stack.frames import Chunk, Frames
from xcorr_app.registration.stack.passes import Pass
from xcorr_app.registration.stack.preparation import (
    AT_ONCE,
    PreparedChunk,
    PreparedFrames,
    Reference,
    cropped,
    prepare,
    take,
)
from xcorr_app.registration.standard_error.peak_shapes import PeakShapes

T = TypeVar("T")


class OnePass:
    """A way to compare every frame of a stack once: window, engine and precision are fixed here."""

    def __init__(self, frames: Frames, walk: Pass, settings: Settings, xp: Any) -> None:
        self.frames, self.walk, self.settings, self.xp = frames, walk, settings, xp
        self.shape = settings.measured_shape(frames.shape)
        """Rows and columns that are measured."""
        self.prepared = PreparedFrames(frames, walk, settings, xp)
        self._autocorrelation: dict[tuple[int, ...], NDArray[np.float64] | None] = {}
        self._last: tuple[Array, NDArray[np.float64]] | None = None
        """The last image that was no frame, and its autocorrelation."""
        self.window: ShiftWindow = settings.window(frames.shape)
        # What was asked for is refused here where it cannot run.
        wanted = "fft" if settings.normalization == "phase" else settings.engine
        choose_engine(wanted, xp, kernel_options=settings.kernel_options)
        self.decision = self._plain = self._decided(weighted=False, shared_reference=True)

    @property
    def engine(self) -> str:
        """Name of the engine of the last run, or of the next where none was."""
        return self.decision.engine

    def compare(
        self,
        reference: Reference,
        verified: NDArray[np.bool_],
        sampled: NDArray[np.bool_],
        parts: masks.Parts | None = None,
    ) -> ShiftColumns:
        """Measure all frames in one pass, with the tiles of some; `parts` are left out."""
        image = reference.image[None] if isinstance(reference, FixedImage) and parts is None else None
        part = reference.part
        shape = self.shape if part is None else tuple(side.stop - side.start for side in part)
        pending = self._pending(shape) if image is not None and self.xp is not np else None
        kernel = self.kernel(reference)
        plain = kernel is None and image is not None
        weighted, shared = kernel is not None, image is not None
        self.decision = self._plain if plain else self._decided(weighted=weighted, shared_reference=shared)
        matcher = self._matcher(shape, np.float32, self.engine, kernel, shared_reference=shared)
        verifier = self._matcher(shape, np.float64, "fft", kernel) if verified.any() else None
        fixed = None if image is None else matcher.prepare_reference(image)
        fixed_exactly = None if image is None or verifier is None else verifier.prepare_reference(image)
        tiles = Grid(self.shape).count

        def job(start: int, stop: int) -> ChunkResult:
            chunk, prepared = self._read(reference, start, stop)
            compared = None
            if fixed is not None and pending is not None and plain and prepared is pending[0]:
                compared = matcher.compare(fixed, prepared.frames, pending[1])
                if compared.flat is not None:
                    prepared.flat = compared.flat & ~prepared.unreadable
            result = ChunkResult.of(start, prepared, chunk.unreadable, tiles)
            rows = np.flatnonzero(prepared.usable)
            if rows.size == 0:
                return result
            frames = take(cropped(prepared.frames, part), rows)
            images = _some(cropped(reference.images(start, prepared), part), rows)
            whole = images, frames
            if parts is not None:
                images, frames = parts.leave_out(images, frames, start + rows, noisy=kernel is not None)
            prepared_reference = fixed or matcher.prepare_reference(images)
            compared = matcher.compare(prepared_reference, frames) if compared is None else compared.of(rows)
            if self.settings.subpixel == PHASE and parts is None:
                compared = with_phase_ramps(compared, prepared_reference.values)
            result.fill(rows, compared, prepared_reference.signal_fractions, shape, self.window, self.settings)
            asked = np.flatnonzero(sampled[start:stop][rows])
            if asked.size:
                seen = _some(whole[0], asked), take(whole[1], asked)
                result.look = start + rows[asked], started_look(*seen, compared.match.shift[asked])
            checked = np.flatnonzero(verified[start:stop][rows])
            if verifier is not None and checked.size:
                exact = fixed_exactly or verifier.prepare_reference(_some(images, checked))
                found = compared.of(checked)
                shifts, disagrees = verify(verifier, found, exact, take(frames, checked), self.settings)
                result.columns.check_offset[rows[checked]] = shifts - found.match.shift
                result.columns.definition_disagrees[rows[checked]] = disagrees
            return result

        columns, shapes = ShiftColumns.empty(self.frames.count, tiles), PeakShapes.empty(self.frames.count)
        looks = list[tuple[NDArray[np.intp], Judged]]()
        for result in self.walk.over("measure", job):
            frames = slice(result.start, result.start + result.columns.usable.size)
            columns.put(frames, result.columns)
            shapes.put(frames, result.shapes)
            columns.reasons.update(result.columns.reasons)
            looks += [] if result.look is None else [result.look]
        columns.sigma = shapes.standard_errors(columns.significance)
        if min(shape) == 1:
            # Of a single line nothing is known of errors, nor of how far peaks stand out.
            columns.false_alarm = np.where(columns.usable, 1.0, columns.false_alarm)
        for numbers, look in looks:
            columns.take_tiles(numbers, look())
        return columns

    def kernel(self, reference: Reference, quiet: float = QUIET) -> NDArray[np.float64] | None:
        """Weighting of frequencies for the whole stack, from a few of its frames and what they are compared with.

        None where less than the share `quiet` of their variance is noise.
        """
        if self.settings.weighting == "none" or self.settings.normalization != "zncc" or min(self.shape) <= 2 * LAGS:
            return None
        numbers = spread(np.arange(self.frames.count), WEIGHED_FRAMES[reference.is_stored]).tolist()
        image = reference.image[None] if isinstance(reference, FixedImage) else None
        if image is not None and self.xp is np and tuple(numbers) not in self._autocorrelation:
            others = [each for each in self.prepared.usable(tuple(numbers)) if not np.array_equal(each, image)]
            images = [standardize(each, np.float32).values for each in [image, *others]]
            # Half of the rows tell whether all are quiet, but for three deviations of chance.
            if max(1 - signal_fraction(each)[0] for each in images) < quiet - 3 / math.sqrt(image.size / 2):
                return None
        # Of two frames or more.
        (own, right), pixels = self._autocorrelations(image, tuple(numbers)), 2 * math.prod(self.shape)
        if right is None:
            return None
        if own is not None:
            return weighting_kernel(own, right, pixels, quiet=quiet)
        left = []
        # Means without one of the frames are all alike.
        for number in numbers if reference.is_stored else numbers[:1]:
            prepared = prepare(self.frames.read(number, number + 1), self.settings)
            if prepared.usable[0]:
                left.append(autocorrelations(reference.images(number, prepared)[:1])[0])
        if not left:
            return None
        return weighting_kernel(np.median(left, axis=0), right, pixels, left_is_white=reference.is_stored, quiet=quiet)

    def _autocorrelations(
        self, image: Array | None, numbers: tuple[int, ...]
    ) -> tuple[NDArray[np.float64] | None, NDArray[np.float64] | None]:
        """Of an image (1, h, w), and the median of these frames, kept for the next run; None where none is usable."""
        own = None
        if numbers not in self._autocorrelation:
            found: list[NDArray[np.float64]] = []
            many = len(numbers) > AT_ONCE
            for i in range(0, len(numbers), AT_ONCE):
                usable = self.prepared.usable(numbers[i : i + AT_ONCE])
                # Every step costs as much time as a small image, so that this one takes its place among the frames.
                beside = image is not None and bool(usable) and usable[0].dtype == image.dtype and not many
                # A frame that all are compared with is often one of them; a device would be waited for to tell.
                is_known = beside and image is not None and self.xp is np and np.array_equal(usable[0], image)
                own_too = [image] if beside and not is_known else []
                if usable:
                    found.extend(autocorrelations(self.xp.concatenate([*usable, *own_too]), many=many))
                if beside:
                    own = found[0] if is_known else found.pop()
            self._autocorrelation[numbers] = np.median(found, axis=0) if found else None
        right = self._autocorrelation[numbers]
        if own is None and image is not None and right is not None:
            # Of the same image it is asked again by what is fitted; a device would be waited for.
            known = self.xp is np and self._last is not None and np.array_equal(self._last[0], image)
            own = self._last[1] if known and self._last is not None else autocorrelations(image)[0]
        self._last = None if image is None or own is None else (image, own)
        return own, right

    def over_chosen(
        self,
        stage: str,
        reference: Reference,
        chosen: NDArray[np.bool_],
        ask: Callable[[Array, Array, NDArray[np.intp]], T],
    ) -> Iterator[tuple[NDArray[np.intp], T]]:
        """Ask something of the chosen frames (T,) that are usable: their numbers (n,), and what was found of them.

        `ask` is given images (1 or n, h, w), frames (n, h, w) and numbers of some of them at a time.
        """
        if not chosen.any():
            return

        def job(start: int, stop: int) -> tuple[NDArray[np.intp], T] | None:
            if not chosen[start:stop].any():
                return None
            _, prepared = self._read(reference, start, stop)
            rows = np.flatnonzero(prepared.usable & chosen[start:stop])
            if rows.size == 0:
                return None
            images = _some(reference.images(start, prepared), rows)
            return start + rows, ask(images, take(prepared.frames, rows), start + rows)

        for found in self.walk.over(stage, job):
            if found is not None:
                yield found

    def _read(self, reference: Reference, start: int, stop: int) -> tuple[Chunk, PreparedChunk]:
        """Frames as read, and as they are compared with a reference."""
        chunk, prepared = self.prepared.read(start, stop)
        return chunk, reference.weighted(start, prepared) if isinstance(reference, LitImage) else prepared

    def _decided(self, *, weighted: bool, shared_reference: bool) -> Decision:
        limits = limits_of(self.xp)
        frames = self.walk.images_at_once if limits is None else self.walk.canonical_batch
        problem = self.frames.shape, name_of(self.frames.dtype), frames, self.settings, limits
        decide = decide_registration if limits is None else _decided
        try:
            return decide(*problem, weighted=weighted, shared_reference=shared_reference)
        except TypeError:  # of settings that cannot be kept: a list, or slices before Python 3.12
            return decide_registration(*problem, weighted=weighted, shared_reference=shared_reference)

    def _pending(self, shape: tuple[int, ...]) -> tuple[PreparedChunk, PendingFrames] | None:
        """Let a device begin with all frames: it is not to wait for what the host prepares, or asks of a few frames.

        Only where comparing frames tells which of them are flat, so that it need not be asked before. Where memory does
        not suffice for all at once, there will be ranges.
        """
        everything = self.prepared.at_hand()
        if everything is None or everything.is_judged:
            return None
        self.decision = self._plain
        matcher = self._matcher(shape, np.float32, self.engine, None)
        pending = attempt(matcher.begin, everything.frames) if matcher.tells_flat(everything.frames) else []
        return (everything, pending[0]) if pending and pending[0] is not None else None

    def _matcher(
        self,
        shape: tuple[int, ...],
        dtype: DTypeLike,
        engine: str,
        kernel: NDArray[np.float64] | None,
        *,
        shared_reference: bool = True,
    ) -> Matcher:
        settings = self.settings if engine == self.engine else replace(self.settings, kernel_options=None)
        frames = self.walk.canonical_batch
        canonical_batch = 1 if shared_reference else frames, frames
        return Matcher((shape[0], shape[1]), self.window, settings, dtype, engine, kernel, self.xp, canonical_batch)


def _some(images: Array, rows: NDArray[np.intp]) -> Array:
    """Some of images (1 or n, h, w); of a single one, which stands for all, itself."""
    return images if images.shape[0] == 1 else take(images, rows)


_decided = functools.lru_cache(maxsize=32)(decide_registration)
"""On a device twice in every call, which takes as long as tens of frames."""
