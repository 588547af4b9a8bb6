"""Measuring all frames of a stack against one kind of reference, in one pass."""

from __future__ import annotations

import functools
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from xcorr_app.correlation.engines import choose_engine, limits_of
from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.decision import Decision
from xcorr_app.gpu.runtime.arrays import Array
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.gpu.runtime.memory import attempt
from xcorr_app.gpu.runtime.types import name_of
from xcorr_app.registration import masks, quality
from xcorr_app.registration import tiles as tile_grid
from xcorr_app.registration.checking import Checking, verify, with_refined_shifts
from xcorr_app.registration.choice import decide_registration
from xcorr_app.registration.chunk_result import ChunkResult
from xcorr_app.registration.device_matcher import Begun
from xcorr_app.registration.frames import Frames
from xcorr_app.registration.lit_pairs import LitImage
from xcorr_app.registration.matcher import Matcher, PreparedReference
from xcorr_app.registration.measured import Measured
from xcorr_app.registration.passes import Pass
from xcorr_app.registration.peak_shapes import PeakShapes
from xcorr_app.registration.preparation import Prepared, prepare
from xcorr_app.registration.prepared_frames import PreparedFrames, cropped, take
from xcorr_app.registration.references import FixedImage, MeanOfOthers, MedianOfOthers, Reference
from xcorr_app.registration.reweighted_fit import Fit, fit_reweighted
from xcorr_app.registration.rivals import settle
from xcorr_app.registration.seen_tiles import Judged, Seen, Watched
from xcorr_app.registration.settings import ICGN, Settings
from xcorr_app.registration.stack_weighting import StackWeighting
from xcorr_app.registration.turned_frames import MIN_EDGE, StraightReference, Turned
from xcorr_app.registration.uncertainty import peak_shapes

_LOOKED_AT = 4
"""Frames of a long stack whose tiles are looked at, to see whether they move as one."""
_FRAMES_PER_LOOK = 24
_WORTH_A_FIT = 0.85
"""Standard error with less weight on what differs over that without, below which such a fit is worth its time."""

_NEEDY = 0.5, 0.9
"""Ranks, by standard error, of frames on which it is tried."""

_UNEXPLAINED = 0.6
"""Share of the score that noise allows, below which frames are looked at for what they show."""
_MAX_FOREIGN = 0.3
"""Share of their tiles that resemble the reference, below which they show something else."""
_MIN_ALIKE = 0.5
"""The same of frames most of whose tiles differ."""
_UNUSUAL, _LESS, _MAX_UNUSUAL = 10.0, 0.01, 0.1
"""Median deviations, and share of what noise allows, by which a frame scores less than others to be looked at; and
share of the frames that may do so."""
_TINY = 1e-3


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
        self.prepared = PreparedFrames(frames, walk, settings, xp)
        self._weighting = StackWeighting(frames, self.prepared, settings, xp)
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
        limits, frames = limits_of(self._xp), self._walk.images_at_once
        dtype, settings = name_of(self._frames.dtype), self._settings
        problem = self._frames.shape, dtype, frames, settings, limits, weighted, shared_reference
        if limits is not None:
            with suppress(TypeError):  # of settings that cannot be kept: a list, or slices before Python 3.12
                return _decided(*problem)
        return _decide(*problem)

    def run(self, reference: Reference, stage: str, verified: NDArray[np.bool_]) -> Measured:
        """Measure all frames; those marked in `verified` also by the float64 FFT and by the definition.

        Where the tiles of a few frames do not move as one, all are measured a second time, without those that move
        otherwise, and refined with less weight on pixels that differ, as far as either is surer.
        """
        looked_at = self._looked_at(reference)
        columns = self._once(reference, stage, verified, looked_at)
        if self._whole:
            return columns
        if looked_at.any():
            settle(columns, reference, self.prepared, self._walk, self._settings, self.window, self._few)
            self._suspects(columns, reference)
        some_differ = masks.some_differ(columns.tiles[looked_at])
        if some_differ:
            self._look(columns, reference, np.isnan(columns.alike))
        elif looked_at.any():
            self._torn(columns, reference)
        turned = self._turned(columns, reference)
        if turned is not None:
            return turned
        if not some_differ:
            return columns
        with np.errstate(invalid="ignore"):
            columns.inconsistent |= masks.max_differ(columns.tiles) & (columns.alike < _MIN_ALIKE)
        trusted = columns.undoubted(self._settings)
        if masks.two_motions(columns.tiles):
            columns = self._in_part(columns, trusted, reference, stage, verified)
        return self._reweighted(columns, trusted, looked_at, reference)

    def _suspects(self, columns: Measured, reference: Reference) -> None:
        """Look at frames whose score noise does not explain: of sparse scenes a few things fall together by chance."""
        with np.errstate(invalid="ignore"):
            suspect = columns.score * max(self._settings.min_score, _TINY) < _UNEXPLAINED * columns.score_limit
        if not suspect.any():
            return
        suspect &= columns.undoubted(self._settings) & np.isnan(columns.alike)
        if suspect.any():
            self._look(columns, reference, suspect)
        with np.errstate(invalid="ignore"):
            low = columns.score * max(self._settings.min_score, _TINY) < _UNEXPLAINED * columns.score_limit
            columns.inconsistent |= low & (columns.alike < _MAX_FOREIGN)

    def _torn(self, columns: Measured, reference: Reference) -> None:
        """Look at frames that score less than the others of a stack that moves as one: parts of them may not."""
        undoubted = columns.undoubted(self._settings)
        if not undoubted.any():
            return
        ratio = np.where(undoubted, columns.score / np.maximum(columns.score_limit, _TINY), np.nan)
        below = np.nanmedian(ratio) - ratio
        with np.errstate(invalid="ignore"):
            unusual = below > max(_UNUSUAL * float(np.nanmedian(np.abs(below))), _LESS)
            others_turn = (columns.edges[~unusual] > MIN_EDGE).any()
        if others_turn or not 0 < unusual.sum() <= _MAX_UNUSUAL * unusual.size:
            return
        self._look(columns, reference, unusual & np.isnan(columns.alike))
        contested = masks.contested_by(masks.shares(columns.tiles)) | (columns.edges > MIN_EDGE)
        columns.inconsistent |= unusual & contested
        # No camera turns for a single frame.
        columns.edges[unusual] = 0.0

    def _turned(self, columns: Measured, reference: Reference) -> Measured | None:
        """Measure the shifts of the centres of frames that turn or change size; None where they do not."""
        if not isinstance(reference, FixedImage) or self._settings.of_peak != "gaussian":
            return None
        seen = columns.edges > MIN_EDGE
        if not seen.any():
            return None
        # A turn makes peaks wide, and their places uncertain.
        trusted = replace(columns, sigma=np.zeros_like(columns.sigma)).undoubted(self._settings)
        seen &= trusted
        if not seen.any():
            return None
        image = StraightReference(reference.image[None])
        for chosen in (_less_sure(columns.sigma, seen, self._few), trusted):
            found = Turned.empty(self._frames.count, tile_grid.Grid(self._shape).count)

            def job(
                start: int, stop: int, chosen: NDArray[np.bool_] = chosen
            ) -> tuple[NDArray[np.intp], Turned] | None:
                if not chosen[start:stop].any():
                    return None
                _, prepared = self.prepared.read(start, stop)
                rows = np.flatnonzero(prepared.usable & chosen[start:stop])
                numbers = start + rows
                return numbers, image.compared(take(prepared.frames, rows), columns.shifts[numbers])

            for turned in self._walk.over("turn", job, small=True):
                if turned is not None:
                    found.write(*turned)
            if 2 * found.holds.sum() < chosen.sum():
                return None
        return columns.turned(found)

    def _in_part(
        self,
        columns: Measured,
        trusted: NDArray[np.bool_],
        reference: Reference,
        stage: str,
        verified: NDArray[np.bool_],
    ) -> Measured:
        """Measure frames without the tiles that move otherwise, if that is surer."""
        everywhere = np.ones(self._frames.count, dtype=bool)
        parts = masks.Parts(masks.left_out(columns.tiles), columns.shifts)
        if not parts.out.any():
            return columns
        without = self._once(reference, stage, verified, everywhere, parts)
        # What is left of a frame may sharpen what the whole of it showed, but not settle what that left in doubt.
        taken: NDArray[np.bool_] = trusted & parts.out.any(axis=(1, 2)) & np.isfinite(without.shifts).all(axis=1)
        return columns.replaced(without, taken) if masks.surer(columns.sigma, without.sigma, taken) else columns

    def _reweighted(
        self, columns: Measured, trusted: NDArray[np.bool_], seen: NDArray[np.bool_], reference: Reference
    ) -> Measured:
        """Refine frames with less weight on pixels that differ; all of them if it pays on a few."""
        if self._settings.of_peak != "gaussian":
            return columns

        fit, done = Fit.empty(self._frames.count), np.zeros(self._frames.count, dtype=bool)

        def pays(chosen: NDArray[np.bool_]) -> bool:
            self._fit(reference, columns.shifts, chosen & ~done, fit)
            done[chosen] = True
            known = chosen & np.isfinite(fit.shift).all(axis=1)
            return bool(known.any() and masks.surer(columns.sigma, fit.sigma, known, _WORTH_A_FIT))

        # A mask may have been made for the frames whose tiles were looked at: they alone are no measure.
        few = trusted & seen, _less_sure(columns.sigma, trusted, self._few)
        if not (any(pays(chosen) for chosen in few) and pays(trusted)):
            return columns
        with np.errstate(invalid="ignore"):
            taken = trusted & np.isfinite(fit.shift).all(axis=1) & ~(fit.sigma > columns.sigma).all(axis=1)
        return columns.refined(fit, taken)

    @property
    def _few(self) -> int:
        """Frames that stand for all."""
        return min(_LOOKED_AT, self._frames.count // _FRAMES_PER_LOOK + 2)

    def _looked_at(self, reference: Reference) -> NDArray[np.bool_]:
        """Mark frames whose tiles are looked at: a few, spread over the stack."""
        chosen = np.zeros(self._frames.count, dtype=bool)
        # A mean of frames that were not aligned is blurred: it differs everywhere.
        is_blurred = isinstance(reference, (MeanOfOthers, MedianOfOthers)) or reference.part is not None
        if self._tiles and self._settings.normalization == "zncc" and not is_blurred:
            chosen[_spread(chosen.size, self._few)] = True
        return chosen

    def _look(self, columns: Measured, reference: Reference, chosen: NDArray[np.bool_]) -> None:
        """Look at the tiles of the chosen frames (T,)."""

        def job(start: int, stop: int) -> tuple[NDArray[np.intp], tile_grid.Look] | None:
            if not chosen[start:stop].any():
                return None
            prepared = prepare(self._frames.read(start, stop), self._settings)
            if isinstance(reference, LitImage):
                prepared = reference.weighted(start, prepared)
            rows = np.flatnonzero(prepared.usable & chosen[start:stop])
            images = reference.images(start, prepared)
            if images.shape[0] > 1:
                images = take(images, rows)
            return start + rows, tile_grid.look(images, take(prepared.frames, rows), columns.shifts[start + rows])

        for found in self._walk.over("tiles", job, small=True):
            if found is not None:
                columns.looked_at(*found)

    def _fit(self, reference: Reference, shifts: NDArray[np.float64], chosen: NDArray[np.bool_], fit: Fit) -> None:
        """Fit the chosen frames (T,) so that pixels that differ count less."""
        if not chosen.any():
            return
        kernel = self._weighting.kernel(reference)

        def job(start: int, stop: int) -> tuple[NDArray[np.intp], Fit] | None:
            if not chosen[start:stop].any():
                return None
            _, prepared = self.prepared.read(start, stop)
            if isinstance(reference, LitImage):
                prepared = reference.weighted(start, prepared)
            rows = np.flatnonzero(prepared.usable & chosen[start:stop])
            images = reference.images(start, prepared)
            if images.shape[0] > 1:
                images = take(images, rows)
            return start + rows, fit_reweighted(images, take(prepared.frames, rows), shifts[start + rows], kernel)

        for found in self._walk.over("refine", job, small=True):
            if found is not None:
                numbers, these = found
                fit.shift[numbers], fit.sigma[numbers] = these.shift, these.sigma

    def _once(
        self,
        reference: Reference,
        stage: str,
        verified: NDArray[np.bool_],
        looked_at: NDArray[np.bool_],
        parts: masks.Parts | None = None,
    ) -> Measured:
        """Measure all frames in one pass, with the tiles of some; `parts` are left out."""
        made = functools.cache(
            lambda: (
                Measured.empty(self._frames.count, tile_grid.Grid(self._shape).count),
                PeakShapes.empty(self._frames.count),
            )
        )
        shared = isinstance(reference, FixedImage) and parts is None
        part = reference.part
        shape = self._shape if part is None else tuple(side.stop - side.start for side in part)
        early = self._begun(shape) if shared and self._xp is not np else None
        kernel = self._weighting.kernel(reference)
        self.decision = self._decided(weighted=kernel is not None, shared_reference=shared)
        if early is not None and kernel is None:
            matcher, together, begun = early
        else:
            matcher, together, begun = self._matcher(shape, np.float32, self.engine, kernel), None, None
        fixed = fixed_exactly = None
        verifier = self._matcher(shape, np.float64, "fft", kernel) if verified.any() else None
        if isinstance(reference, FixedImage) and parts is None:
            fixed = matcher.prepare_reference(reference.image[None])
            fixed_exactly = verifier.prepare_reference(reference.image[None]) if verifier else None

        # What smooths planes, or normalises them otherwise, shares plans and constants with the engine that is checked.
        apart = self._xp is not np and kernel is None and self._settings.normalization == "zncc"

        def check(exact: PreparedReference, frames: Array) -> Checking | None:
            return Checking.start(verifier, exact, frames, apart=apart) if verifier and len(frames) else None

        def job(start: int, stop: int) -> ChunkResult:
            chunk, prepared = self.prepared.read(start, stop)
            if isinstance(reference, LitImage):
                prepared = reference.weighted(start, prepared)
            compared = watched = checking = None
            if fixed is not None and prepared is together and begun is not None:
                if fixed_exactly:
                    checking = check(fixed_exactly, take(prepared.frames, np.flatnonzero(verified)))
                watched = Watched(reference.images(start, prepared), prepared.frames, np.flatnonzero(looked_at))

                def meanwhile(watched: Watched = watched) -> None:
                    watched.start()
                    made()

                compared = matcher.compare(fixed, prepared.frames, meanwhile, begun)
                if compared.flat is not None:
                    prepared.flat = compared.flat & ~prepared.unreadable
            result = ChunkResult(start, prepared, np.flatnonzero(prepared.usable), chunk.unreadable)
            if result.rows.size == 0:
                return result
            frames = take(cropped(prepared.frames, part), result.rows)
            images = cropped(reference.images(start, prepared), part)
            if images.shape[0] > 1:
                images = take(images, result.rows)
            whole = images, frames
            if parts is not None:
                images, frames = parts.leave_out(images, frames, start + result.rows, noisy=kernel is not None)
            result.checked = np.flatnonzero(verified[start:stop][result.rows])
            if frames is not prepared.frames:
                checking = watched = None  # begun with flat frames among the others
            if checking is None and verifier is not None and result.checked.size:
                of_checked = images if images.shape[0] == 1 else take(images, result.checked)
                checking = check(fixed_exactly or verifier.prepare_reference(of_checked), take(frames, result.checked))
            prepared_reference = fixed or matcher.prepare_reference(images)
            if watched is None:
                watched = Watched(*whole, np.flatnonzero(looked_at[start:stop][result.rows]))
            if compared is None:
                compared = matcher.compare(prepared_reference, frames, watched.start)
            else:
                compared = compared.of(result.rows)
            match, values, result.shapes = compared.match, compared.values, compared.shapes
            if self._settings.subpixel == ICGN:
                match, result.not_refined = with_refined_shifts(match, prepared_reference, values)
                result.shapes = None
            result.match = match
            if result.shapes is None:
                slopes = prepared_reference.slopes
                result.shapes = peak_shapes(slopes, values, match.peak, match.shift, match.near, match.around)
            if looked_at[start:stop][result.rows].any():
                result.seen = watched.seen(start + result.rows, match.shift)
                # Of a single range there are no others to wait for; a device may be checking meanwhile.
                if parts is not None or frames.shape[0] == self._frames.count:
                    result.look, result.seen = result.seen.started(), None
            overlap = np.prod(np.maximum(np.array(shape) - np.abs(match.peak), 0), axis=1)
            result.chance_score = quality.score_by_chance(overlap, self.window)
            result.score_limit = quality.doubtful_below(
                self._settings.min_score,
                prepared_reference.clean,
                compared.clean,
                result.chance_score,
            )
            if verifier is not None and checking is not None:
                verify(verifier, result, match, checking, self._settings)
            return result

        seen, looks = list[Seen](), list[Judged]()
        for result in self._walk.over(stage, job, small=True):
            columns, shapes = made()
            result.write(columns, shapes, self.window)
            if result.seen is not None:
                seen.append(result.seen)
            if result.look is not None:
                looks.append(result.look)
        # The few frames that are looked at, all at once; a device does so while the host goes on.
        looks += Seen.together(seen, shared=isinstance(reference, FixedImage))
        columns, shapes = made()
        columns.sigma = shapes.standard_errors(columns.significance)
        for look in looks:
            columns.looked_at(*look())
        return columns

    def _begun(self, shape: tuple[int, ...]) -> tuple[Matcher, Prepared, Begun] | None:
        """Let a device begin with all frames: it is not to wait for what the host prepares, or asks of a few frames.

        Only where comparing frames tells which of them are flat, so that it need not be asked before. Where memory does
        not suffice for all at once, there will be ranges.
        """
        everything = self.prepared.at_hand()
        if everything is None or everything.is_judged:
            return None
        self.decision = self._decided(weighted=False, shared_reference=True)
        matcher = self._matcher(shape, np.float32, self.engine, None)
        begun = attempt(matcher.begin, everything.frames) if matcher.tells_flat(everything.frames) else []
        return (matcher, everything, begun[0]) if begun and begun[0] is not None else None

    def _matcher(
        self, shape: tuple[int, ...], dtype: DTypeLike, engine: str, kernel: NDArray[np.float64] | None
    ) -> Matcher:
        settings = self._settings if engine == self.engine else replace(self._settings, kernel_options=None)
        return Matcher((shape[0], shape[1]), self.window, settings, dtype, engine, kernel, self._xp)


@functools.lru_cache(maxsize=64)
def _spread(count: int, few: int) -> list[int]:
    """Numbers of so few of the frames, the last among them."""
    numbers: list[int] = np.linspace(0, count - 1, few + 1)[1:].round().astype(int).tolist()
    return numbers


def _decide(
    shape: tuple[int, int],
    dtype: str,
    frames: int,
    settings: Settings,
    limits: DeviceLimits | None,
    weighted: bool,
    shared_reference: bool,
) -> Decision:
    return decide_registration(
        shape, dtype, frames, settings, limits, weighted=weighted, shared_reference=shared_reference
    )


_decided = functools.lru_cache(maxsize=32)(_decide)
"""On a device twice in every call, which takes as long as tens of frames."""


def _less_sure(sigma: NDArray[np.float64], trusted: NDArray[np.bool_], number: int) -> NDArray[np.bool_]:
    """Mark so many of the frames (T,) whose standard errors (T, 2) are the median or larger, the very largest aside."""
    chosen = np.zeros_like(trusted)
    error = np.where(trusted, sigma.max(axis=1), np.nan)
    order = np.argsort(error)[: int(np.isfinite(error).sum())]
    if order.size:
        chosen[order[np.rint(np.linspace(*_NEEDY, number) * (order.size - 1)).astype(int)]] = True
    return chosen
