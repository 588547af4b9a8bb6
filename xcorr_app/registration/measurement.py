"""Measuring all frames of a stack against one kind of reference, in one pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from xcorr_app.correlation.engines import choose_engine, limits_of
from xcorr_app.correlation.plane_peaks import lacks_neighbours
from xcorr_app.correlation.weighting import LAGS, WEIGHED_FRAMES, autocorrelations, weighting_kernel
from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.decision import Decision
from xcorr_app.gpu.runtime.arrays import Array, array_namespace
from xcorr_app.gpu.runtime.beside import Beside
from xcorr_app.registration import masks, quality
from xcorr_app.registration import tiles as tile_grid
from xcorr_app.registration.choice import decide_registration
from xcorr_app.registration.frames import ArrayFrames, Chunk, Frames, PickedFrames
from xcorr_app.registration.icgn import refine_shifts
from xcorr_app.registration.match import Match
from xcorr_app.registration.matcher import Matcher, PreparedReference
from xcorr_app.registration.passes import Pass
from xcorr_app.registration.preparation import Prepared, prepare
from xcorr_app.registration.rated_peaks import Planes
from xcorr_app.registration.references import FixedImage, MeanOfOthers, MedianOfOthers, Reference
from xcorr_app.registration.settings import ICGN, Settings
from xcorr_app.registration.significance import MAX_FALSE_ALARM
from xcorr_app.registration.uncertainty import PeakShapes, peak_shapes
from xcorr_app.registration.verification import SCORE_TOLERANCE, scores_by_definition

_LOOKED_AT = 4
"""Frames of a long stack whose tiles are looked at, to see whether they move as one."""
_FRAMES_PER_LOOK = 24
_OUTER = np.pad(np.zeros((3, 3), dtype=bool), 1, constant_values=True)
"""Of the 5 x 5 values around a peak, those two shifts away: no sub-pixel place needs them."""
_AT_ONCE = 8
"""Frames whose autocorrelations are computed together."""


@dataclass
class Measured:
    """Columns with one entry a frame, filled as chunks arrive; NaN where a frame was not measured."""

    shifts: NDArray[np.float64]
    score: NDArray[np.float64]
    peak_ratio: NDArray[np.float64]
    fft_shifts: NDArray[np.float64]
    least_score: NDArray[np.float64]
    chance_score: NDArray[np.float64]
    sigma: NDArray[np.float64]
    significance: NDArray[np.float64]
    false_alarm: NDArray[np.float64]
    on_edge: NDArray[np.bool_]
    definition_disagrees: NDArray[np.bool_]
    not_refined: NDArray[np.bool_]
    usable: NDArray[np.bool_]
    flat: NDArray[np.bool_]
    unreadable: NDArray[np.bool_]
    non_finite: NDArray[np.int64]
    reasons: dict[int, str]
    tiles: NDArray[np.float32]
    """(T, rows, columns), see :func:`xcorr_app.registration.tiles.agreement`; NaN for frames not looked at."""
    partial: NDArray[np.bool_]
    """Measured without the tiles that differ."""
    inconsistent: NDArray[np.bool_]
    follows: NDArray[np.intp] | None = None
    """(T,) frame from which each shift is a step; a doubtful step makes all that follow doubtful."""
    broken: NDArray[np.bool_] | None = None
    """(T,) frames that nothing to be trusted joins with the first."""
    closure: NDArray[np.float64] | None = None
    """(T,) pixels by which measurements of a frame contradict each other, NaN where there are none."""

    @classmethod
    def empty(cls, count: int, tiles: tuple[int, int] = (0, 0)) -> Measured:
        """Columns for `count` frames of so many tiles, nothing known yet."""
        pairs = (np.full((count, 2), np.nan) for _ in range(3))
        numbers = (np.full(count, np.nan) for _ in range(6))
        edge, disagrees, not_refined, usable, flat, unreadable = (np.zeros(count, dtype=bool) for _ in range(6))
        shifts, fft_shifts, sigma = pairs
        score, ratio, least, chance, significance, false_alarm = numbers
        non_finite = np.zeros(count, dtype=np.int64)
        found = (shifts, score, ratio, fft_shifts, least, chance, sigma, significance, false_alarm)
        maps = np.full((count, *tiles), np.nan, dtype=np.float32)
        partial, inconsistent = (np.zeros(count, dtype=bool) for _ in range(2))
        return cls(
            *found, edge, disagrees, not_refined, usable, flat, unreadable, non_finite, {}, maps, partial, inconsistent
        )

    def replaced(self, other: Measured, taken: NDArray[np.bool_]) -> Measured:
        """Take frames (T,) from another measurement, which left out a part of them."""
        chosen = replace(self)
        for field in fields(Measured):
            value, new = getattr(self, field.name), getattr(other, field.name)
            if isinstance(value, np.ndarray):
                rows = taken.reshape(-1, *(1,) * (value.ndim - 1))
                setattr(chosen, field.name, np.where(rows, new, value))
        chosen.partial, chosen.inconsistent = taken, masks.contested(chosen.tiles, taken)
        return chosen

    def flags(self, settings: Settings) -> tuple[tuple[str, ...], ...]:
        """Words for every frame, in the order of :mod:`xcorr_app.registration.quality`."""
        difference = np.hypot(*(self.shifts - self.fft_shifts).T)
        known = np.isfinite(self.score)
        ambiguous = self.peak_ratio < quality.AMBIGUOUS_RATIO
        with np.errstate(invalid="ignore"):
            uncertain = (self.sigma > settings.max_sigma).any(axis=1)
            # Equal rivals fill the plane of a lattice: that is ambiguous, not a peak by chance.
            uncertain |= self.score < self.chance_score
            uncertain |= (self.false_alarm > MAX_FALSE_ALARM) & ~ambiguous
            words = {
                quality.EDGE: known & self.on_edge,
                quality.LOW_SCORE: known & (self.score < self.least_score),
                quality.AMBIGUOUS: known & ambiguous,
                quality.UNCERTAIN: known & uncertain,
                quality.INCONSISTENT: known & self.inconsistent,
                # A frame without any valid shift is as good as flat: its overlaps hold no variance.
                quality.FLAT: self.flat | (self.usable & ~known),
                quality.UNREADABLE: self.unreadable,
                quality.NON_FINITE: self.non_finite > 0,
                quality.DISAGREES: (difference > settings.tolerance) | self.definition_disagrees,
            }
        if self.follows is not None:
            doubtful = np.any([column for word, column in words.items() if word in quality.DOUBTFUL], axis=0)
            words[quality.INHERITED] = _inherited(doubtful, self.follows) & known
        if self.broken is not None:
            words[quality.INHERITED] = self.broken & known
        # Few combinations occur, however many frames there are.
        apply = np.stack(list(words.values())).astype(np.int64)
        code = (apply << np.arange(len(words))[:, None]).sum(axis=0)
        found = {one: tuple(word for k, word in enumerate(words) if one >> k & 1) for one in set(code.tolist())}
        return tuple(found[one] for one in code.tolist())

    def trusted(self, settings: Settings) -> NDArray[np.bool_]:
        """(T,) whether a frame has a shift and nothing speaks against it."""
        return self.undoubted(settings) & np.isfinite(self.shifts).all(axis=1)

    def undoubted(self, settings: Settings) -> NDArray[np.bool_]:
        """(T,) whether nothing speaks against a frame."""
        flags = self.flags(settings)
        good = {of_frame: quality.is_trusted(of_frame) for of_frame in set(flags)}
        return np.array([good[of_frame] for of_frame in flags], dtype=bool)


@dataclass(frozen=True)
class _Parts:
    """What is left out of each frame, (T, rows, columns) of tiles, at shifts (T, 2) already known."""

    out: NDArray[np.bool_]
    shifts: NDArray[np.float64]

    def leave_out(self, images: Array, frames: Array, numbers: NDArray[np.intp], *, noisy: bool) -> tuple[Array, Array]:
        """Images (1 or n, h, w) and frames (n, h, w), whose numbers (n,) are given, without those parts."""
        shifts = np.nan_to_num(self.shifts[numbers])
        of_images, of_frames = masks.windows(self.out[numbers], frames.shape[1:], shifts, frames, noisy=noisy)
        return masks.windowed(images, of_images), masks.windowed(frames, of_frames)


class Measurement:
    """A way to measure every frame of a stack: shapes, window, engine and precision are fixed here.

    Parameters
    ----------
    frames : Frames
    walk : Pass
    settings : Settings
    xp : module
        numpy or cupy: the kind of array the frames are.
    whole : bool
        Measure frames as a whole, whatever moves in them.
    tiles : bool
        Look at tiles of some frames; False for a trial of which only the peaks matter.
    """

    def __init__(
        self, frames: Frames, walk: Pass, settings: Settings, xp: Any, *, whole: bool = False, tiles: bool = True
    ) -> None:
        self._frames, self._walk, self._settings, self._xp = frames, walk, settings, xp
        self._whole, self._tiles = whole, tiles
        self._shape = settings.measured_shape(frames.shape)
        self._kept: tuple[Chunk, Prepared] | None = None
        self._autocorrelation: dict[tuple[int, ...], NDArray[np.float64] | None] = {}
        self.window: ShiftWindow = settings.window(frames.shape)
        # What was asked for is refused here where it cannot run.
        wanted = "fft" if settings.normalization == "phase" else settings.engine
        choose_engine(wanted, xp, kernel_options=settings.kernel_options)
        self.decision = self._decided(weighted=False, shared_reference=True)

    @property
    def engine(self) -> str:
        """Name of the engine of the last run, or of the next where none was."""
        return self.decision.engine

    def _decided(self, *, weighted: bool, shared_reference: bool) -> Decision:
        return decide_registration(
            self._frames.shape,
            str(self._frames.dtype),
            self._walk.images_at_once,
            self._settings,
            limits_of(self._xp),
            weighted=weighted,
            shared_reference=shared_reference,
        )

    def run(self, reference: Reference, stage: str, verified: NDArray[np.bool_]) -> Measured:
        """Measure all frames; those marked in `verified` also by the float64 FFT and by the definition.

        Where the tiles of a few frames do not move as one, all are measured a second time, without those that move
        otherwise.
        """
        columns = self._once(reference, stage, verified, self._looked_at(reference))
        if self._whole or not masks.two_motions(columns.tiles):
            return columns
        everywhere = np.ones(self._frames.count, dtype=bool)
        if not np.isfinite(columns.tiles).any(axis=(1, 2)).all():
            columns.tiles = self._agreement(reference, columns.shifts)
        parts = _Parts(masks.left_out(columns.tiles), columns.shifts)
        if not parts.out.any():
            return columns
        without = self._once(reference, stage, verified, everywhere, parts)
        # What is left of a frame may sharpen what the whole of it showed, but not settle what that left in doubt.
        trusted = columns.undoubted(self._settings)
        taken: NDArray[np.bool_] = trusted & parts.out.any(axis=(1, 2)) & np.isfinite(without.shifts).all(axis=1)
        return columns.replaced(without, taken) if masks.surer(columns.sigma, without.sigma, taken) else columns

    def _looked_at(self, reference: Reference) -> NDArray[np.bool_]:
        """Mark frames whose tiles are looked at: a few, spread over the stack."""
        chosen = np.zeros(self._frames.count, dtype=bool)
        # A mean of frames that were not aligned is blurred: it differs everywhere.
        is_blurred = isinstance(reference, (MeanOfOthers, MedianOfOthers)) or reference.part is not None
        if self._tiles and self._settings.normalization == "zncc" and not is_blurred:
            number = min(_LOOKED_AT, chosen.size // _FRAMES_PER_LOOK + 2)
            chosen[np.linspace(0, chosen.size - 1, number + 1)[1:].round().astype(int)] = True
        return chosen

    def _agreement(self, reference: Reference, shifts: NDArray[np.float64]) -> NDArray[np.float32]:
        """Tiles (T, rows, columns) of all frames."""
        tiles = np.full((self._frames.count, *tile_grid.Grid(self._shape).count), np.nan, dtype=np.float32)

        def job(start: int, stop: int) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
            prepared = prepare(self._frames.read(start, stop), self._settings)
            rows = np.flatnonzero(prepared.usable)
            images = reference.images(start, prepared)
            if images.shape[0] > 1:
                images = _take(images, rows)
            return start + rows, tile_grid.agreement(images, _take(prepared.frames, rows), shifts[start + rows])

        for numbers, these in self._walk.over("tiles", job):
            tiles[numbers] = these
        return tiles

    def _once(
        self,
        reference: Reference,
        stage: str,
        verified: NDArray[np.bool_],
        looked_at: NDArray[np.bool_],
        parts: _Parts | None = None,
    ) -> Measured:
        """Measure all frames in one pass, with the tiles of some; `parts` are left out."""
        columns = Measured.empty(self._frames.count, tile_grid.Grid(self._shape).count)
        shapes = PeakShapes.empty(self._frames.count)
        kernel = self._weighting(reference)
        shared = isinstance(reference, FixedImage) and parts is None
        self.decision = self._decided(weighted=kernel is not None, shared_reference=shared)
        part = reference.part
        shape = self._shape if part is None else tuple(side.stop - side.start for side in part)
        matcher = self._matcher(shape, np.float32, self.engine, kernel)
        verifier = self._matcher(shape, np.float64, "fft", kernel) if verified.any() else None
        fixed = fixed_exactly = None
        if isinstance(reference, FixedImage) and parts is None:
            fixed = matcher.prepare_reference(reference.image[None])
            fixed_exactly = verifier.prepare_reference(reference.image[None]) if verifier else None

        # What smooths planes, or normalises them otherwise, shares plans and constants with the engine that is checked.
        apart = self._xp is not np and kernel is None and self._settings.normalization == "zncc"

        def job(start: int, stop: int) -> _ChunkResult:
            chunk, prepared = self._prepared(start, stop)
            result = _ChunkResult(start, prepared, np.flatnonzero(prepared.usable), chunk.unreadable)
            if result.rows.size == 0:
                return result
            frames = _take(_cropped(prepared.frames, part), result.rows)
            images = _cropped(reference.images(start, prepared), part)
            if images.shape[0] > 1:
                images = _take(images, result.rows)
            whole = images, frames
            if parts is not None:
                images, frames = parts.leave_out(images, frames, start + result.rows, noisy=kernel is not None)
            result.checked = np.flatnonzero(verified[start:stop][result.rows])
            checking = None
            if verifier is not None and result.checked.size:
                of_checked = images if images.shape[0] == 1 else _take(images, result.checked)
                exact = fixed_exactly or verifier.prepare_reference(of_checked)
                checking = _Checking.start(verifier, exact, _take(frames, result.checked), apart=apart)
            prepared_reference = fixed or matcher.prepare_reference(images)
            match, clean, values = matcher.compare(prepared_reference, frames)
            if self._settings.subpixel == ICGN:
                match, result.not_refined = _refined(match, prepared_reference, values)
            result.match = match
            slopes = prepared_reference.slopes
            result.shapes = peak_shapes(slopes, values, match.peak, match.shift, match.near, match.around)
            look = np.flatnonzero(looked_at[start:stop][result.rows])
            if look.size:
                images_of = _take(whole[0], look) if whole[0].shape[0] > 1 else whole[0]
                result.seen = _Seen(start + result.rows[look], images_of, _take(whole[1], look), match.shift[look])
                if parts is not None:
                    result.seen.judged(columns.tiles)
                    result.seen = None
            overlap = np.prod(np.maximum(np.array(shape) - np.abs(match.peak), 0), axis=1)
            result.chance_score = quality.score_by_chance(overlap, self.window)
            result.least_score = quality.doubtful_below(
                self._settings.min_score,
                prepared_reference.clean,
                clean,
                overlap,
                self.window,
            )
            if verifier is not None and checking is not None:
                _verify(verifier, result, match, checking, self._settings)
            return result

        seen = list[_Seen]()
        for result in self._walk.over(stage, job):
            result.write(columns, shapes, self.window)
            if result.seen is not None:
                seen.append(result.seen)
        # The few frames that are looked at, all at once.
        _Seen.together(seen, columns.tiles, shared=isinstance(reference, FixedImage))
        columns.sigma = shapes.standard_errors(columns.significance)
        return columns

    def at_hand(self) -> Prepared | None:
        """Return all frames, prepared once, where a device measures them at once and this takes no memory; else None.

        Few of any kind, or as many as there are of integers that are measured as they are stored.
        """
        if self._xp is np or not (self._frames.count <= _AT_ONCE or self._as_stored):
            return None
        if self._kept is None:
            chunk = self._frames.read(0, self._frames.count)
            self._kept = chunk, prepare(chunk, self._settings)
        return self._kept[1]

    @property
    def _as_stored(self) -> bool:
        frames, settings = self._frames, self._settings
        is_plain = settings.prefilter.name is None and settings.contrast.sigma is None
        is_held = isinstance(frames, ArrayFrames) and self._walk.images_at_once == frames.count
        return is_plain and is_held and frames.dtype.kind in "iu"

    def _prepared(self, start: int, stop: int) -> tuple[Chunk, Prepared]:
        """Frames as read and as prepared."""
        if stop - start == self._frames.count and self.at_hand() is not None and self._kept is not None:
            return self._kept
        chunk = self._frames.read(start, stop)
        return chunk, prepare(chunk, self._settings)

    def _matcher(
        self, shape: tuple[int, ...], dtype: DTypeLike, engine: str, kernel: NDArray[np.float64] | None
    ) -> Matcher:
        settings = self._settings if engine == self.engine else replace(self._settings, kernel_options=None)
        return Matcher((shape[0], shape[1]), self.window, settings, dtype, engine, kernel, self._xp)

    def _weighting(self, reference: Reference) -> NDArray[np.float64] | None:
        """Weighting of frequencies for the whole stack, from a few of its frames and what they are compared with."""
        if self._settings.weighting == "none" or self._settings.normalization != "zncc" or min(self._shape) <= 2 * LAGS:
            return None
        numbers = _spread(self._frames.count, WEIGHED_FRAMES[reference.is_stored])
        image = reference.image[None] if isinstance(reference, FixedImage) else None
        own, right = self._autocorrelations(image, tuple(numbers))
        if right is None:
            return None
        if own is not None:
            return weighting_kernel(own, right)
        left = []
        # Means without one of the frames are all alike.
        for number in numbers if reference.is_stored else numbers[:1]:
            prepared = prepare(self._frames.read(number, number + 1), self._settings)
            if prepared.usable[0]:
                left.append(autocorrelations(reference.images(number, prepared)[:1])[0])
        return weighting_kernel(np.median(left, axis=0), right, left_is_white=reference.is_stored) if left else None

    def _autocorrelations(
        self, image: Array | None, numbers: tuple[int, ...]
    ) -> tuple[NDArray[np.float64] | None, NDArray[np.float64] | None]:
        """Of an image (1, h, w), and the median of these frames, kept for the next run; None where none is usable."""
        own = None
        if numbers not in self._autocorrelation:
            found: list[NDArray[np.float64]] = []
            many = len(numbers) > _AT_ONCE
            for i in range(0, len(numbers), _AT_ONCE):
                usable = self._usable(numbers[i : i + _AT_ONCE])
                # On a device every step costs the host much, so that the image takes its place among the frames.
                beside = image is not None and bool(usable) and usable[0].dtype == image.dtype
                beside = beside and self._xp is not np and not many
                if beside:
                    usable.append(image)
                if usable:
                    found.extend(autocorrelations(self._xp.concatenate(usable), many=many))
                if beside:
                    own = found.pop()
            self._autocorrelation[numbers] = np.median(found, axis=0) if found else None
        right = self._autocorrelation[numbers]
        if own is None and image is not None and right is not None:
            own = autocorrelations(image)[0]
        return own, right

    def _usable(self, numbers: tuple[int, ...]) -> list[Array]:
        """Those of these frames that are usable, prepared.

        On a device at once, where every step costs the host as much time as many frames take.
        """
        if self._xp is np:
            prepared = [prepare(self._frames.read(number, number + 1), self._settings) for number in numbers]
            return [one.frames for one in prepared if one.usable[0]]
        everything = self.at_hand()
        if everything is not None:
            return [everything.frames[i : i + 1] for i in numbers if everything.usable[i]]
        some = prepare(PickedFrames(self._frames, numbers).read(0, len(numbers)), self._settings)
        rows = np.flatnonzero(some.usable)
        return [_take(some.frames, rows)] if rows.size else []


def _spread(count: int, most: int) -> list[int]:
    """Numbers of up to so many frames spread evenly over the stack."""
    return [int(number) for number in np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(int))]


@dataclass(frozen=True)
class _Checking:
    """Frames (n, h, w) that are being compared with a reference once more, by the engine that checks."""

    reference: PreparedReference
    frames: Array
    planes: Callable[[], Planes]

    @classmethod
    def start(cls, verifier: Matcher, reference: PreparedReference, frames: Array, *, apart: bool) -> _Checking:
        """Begin at once where a device can do so `apart` from all else; else when the planes are asked for."""

        def planes() -> Planes:
            return verifier.planes(reference, frames)

        return cls(reference, frames, Beside(planes).result if apart else planes)


def _verify(verifier: Matcher, result: _ChunkResult, match: Match, checking: _Checking, settings: Settings) -> None:
    planes, reference = checking.planes(), checking.reference
    around, peaks = match.around[result.checked], match.peak[result.checked]
    # Images of a few pixels score the same at several shifts; which of them is first is decided by rounding.
    result.exact = verifier.match(planes, tied=peaks)
    if result.not_refined is not None:
        # From where the reference's own estimate is, in double precision; what was not refined is compared as it is.
        refined, _ = _refined(result.exact, reference, planes.values)
        kept = result.not_refined[result.checked, None]
        result.exact = replace(refined, shift=np.where(kept, result.exact.shift, refined.shift))
    scores = scores_by_definition(reference.values, planes.values, peaks, settings.min_overlap)
    known = np.isfinite(scores)
    # A value that the engine lacks is as wrong as one that is off, but the outer sixteen may be lacking together.
    needed = known.copy()
    needed[np.isnan(around[:, _OUTER]).all(axis=1)] &= ~_OUTER
    error = np.where(known & np.isfinite(around), np.abs(scores - around), np.where(needed, np.inf, 0.0))
    no_shift = np.isfinite(result.exact.shift).all(axis=1) & ~np.isfinite(match.shift[result.checked]).all(axis=1)
    result.disagrees = (error.max(axis=(1, 2)) > SCORE_TOLERANCE) | no_shift


def _refined(match: Match, reference: PreparedReference, frames: Array) -> tuple[Match, NDArray[np.bool_]]:
    """Match with shifts refined over the whole overlap, and which of them stayed as they were."""
    refined = refine_shifts(reference.template, frames, match.shift)
    return replace(match, shift=refined.shift), ~refined.settled


def _inherited(doubtful: NDArray[np.bool_], follows: NDArray[np.intp]) -> NDArray[np.bool_]:
    """(T,) whether any step that leads to a frame, its own aside, is doubtful."""
    inherited = np.zeros_like(doubtful)
    for frame, start in enumerate(follows):
        if 0 <= start < frame:
            inherited[frame] = doubtful[start] or inherited[start]
    return inherited


@dataclass(frozen=True)
class _Seen:
    """Frames whose tiles are looked at, by number, with the images they were compared with."""

    numbers: NDArray[np.intp]
    images: Array
    frames: Array
    shifts: NDArray[np.float64]

    def judged(self, tiles: NDArray[np.float32]) -> None:
        """Fill in which of their tiles agree."""
        tiles[self.numbers] = tile_grid.agreement(self.images, self.frames, self.shifts)

    @staticmethod
    def together(seen: list[_Seen], tiles: NDArray[np.float32], *, shared: bool) -> None:
        """Do so for several, all compared with the same image where `shared`."""
        if not seen:
            return
        xp = array_namespace(seen[0].frames)
        if not shared and any(one.images.shape[0] != one.frames.shape[0] for one in seen):
            for one in seen:
                one.judged(tiles)
            return
        images = seen[0].images if shared else xp.concatenate([one.images for one in seen])
        frames = xp.concatenate([one.frames for one in seen])
        numbers, shifts = (np.concatenate(parts) for parts in zip(*((s.numbers, s.shifts) for s in seen), strict=True))
        _Seen(numbers, images, frames, shifts).judged(tiles)


@dataclass
class _ChunkResult:
    """What one chunk contributes; `rows` are the usable frames in it, `checked` those of them that were verified."""

    start: int
    prepared: Prepared
    rows: NDArray[np.intp]
    reasons: dict[int, str]
    match: Match | None = None
    not_refined: NDArray[np.bool_] | None = None
    seen: _Seen | None = None
    least_score: NDArray[np.float64] | None = None
    chance_score: NDArray[np.float64] | None = None
    shapes: PeakShapes | None = None
    checked: NDArray[np.intp] | None = None
    exact: Match | None = None
    disagrees: NDArray[np.bool_] | None = None

    def write(self, columns: Measured, shapes: PeakShapes, window: ShiftWindow) -> None:
        """Fill in this chunk's entries."""
        prepared = self.prepared
        part = slice(self.start, self.start + prepared.usable.size)
        columns.usable[part], columns.flat[part] = prepared.usable, prepared.flat
        columns.unreadable[part], columns.non_finite[part] = prepared.unreadable, prepared.non_finite
        columns.reasons.update(self.reasons)
        if self.match is None:
            return
        frames = self.start + self.rows
        columns.shifts[frames], columns.score[frames] = self.match.shift, self.match.score
        columns.peak_ratio[frames] = self.match.ratio
        if self.not_refined is not None:
            columns.not_refined[frames] = self.not_refined
        columns.least_score[frames], columns.chance_score[frames] = self.least_score, self.chance_score
        if self.shapes is not None:
            shapes.replace(frames, self.shapes)
        columns.significance[frames], columns.false_alarm[frames] = self.match.significance, self.match.false_alarm
        # Shifts beyond the peak may lie outside the window, or leave too little overlap to score.
        unknown = lacks_neighbours(self.match.around[:, 1:4, 1:4], window)
        columns.on_edge[frames] = quality.on_edge(self.match.peak, window) | self.match.climbs | unknown
        if self.exact is not None and self.checked is not None:
            columns.fft_shifts[frames[self.checked]] = self.exact.shift
            columns.definition_disagrees[frames[self.checked]] = self.disagrees


def _cropped(images: Array, part: tuple[slice, slice] | None) -> Array:
    """Part (n, h, w) of images in which all of them are known; the images themselves where that is everywhere."""
    return images if part is None else images[:, *part]


def _take(frames: Array, rows: NDArray[np.intp]) -> Array:
    """Rows of a stack; the stack itself, not a copy, where all are taken."""
    return frames if rows.size == frames.shape[0] else frames[rows]
