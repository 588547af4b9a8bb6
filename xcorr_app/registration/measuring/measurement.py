"""Measuring all frames of a stack against one kind of reference: once, and again where parts of them move otherwise."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array
from xcorr_app.registration import quality
from xcorr_app.registration.columns import FineShifts
from xcorr_app.registration.measuring.measured import ShiftColumns, spread
from xcorr_app.registration.measuring.one_pass import OnePass
from xcorr_app.registration.measuring.phase_ramp import refine
from xcorr_app.registration.measuring.references import FixedImage, MeanOfOthers
from xcorr_app.registration.measuring.reweighted_fit import FINELY_NOISY, fit_reweighted
from xcorr_app.registration.measuring.rivals import CANDIDATES, alike_peaks, disambiguated, followed, stand_still
from xcorr_app.registration.measuring.scene_of_two import scene_of_two
from xcorr_app.registration.parts import masks
from xcorr_app.registration.parts.tiles import Grid, TileTest, look
from xcorr_app.registration.parts.turned_frames import MIN_EDGE, StraightReference, TurnFits
from xcorr_app.registration.settings import Settings
from xcorr_app.registration.stack.frames import Frames, PickedFrames
from xcorr_app.registration.stack.passes import Pass
from xcorr_app.registration.stack.preparation import Reference
from xcorr_app.registration.standard_error.peak_shapes import median_of

_SAMPLED_FRAMES = 4
"""Frames of a long stack whose tiles are looked at, to see whether they move as one."""
_FRAMES_PER_LOOK = 24
"""Of a shorter stack two frames are sampled, and one more for so many."""
_WORTH_A_FIT = 0.85
"""Standard error with less weight on what differs over that without, below which such a fit is worth its time."""
_FAR_SURER = 0.4
"""The same of phases, which know nothing of parts that move otherwise: of another layer it is .06 to .4, of bent
frames and of cells that move by themselves .45 and more."""
_BENT = 4.0
"""Standard errors by which peaks are bent: what phases say instead need only be surer."""

_IN_PART = 4
"""Frames of a longer stack that are measured without parts before all are."""
_ITSELF = 1 - 1e-6
"""Score of a frame that is compared with itself."""
_NEEDY = 0.5, 0.9
"""Ranks, by standard error, of frames on which it is tried."""

_MIN_ALIKE = 0.5
"""Share of tiles that resemble the reference, below which a frame most of whose tiles differ shows something else."""
_UNUSUAL, _LESS, _MAX_UNUSUAL = 10.0, 0.01, 0.1
"""Median deviations, and share of what noise allows, by which a frame scores less than others to be looked at; and
share of the frames that may do so."""
_ELSEWHERE = 0.5
"""Pixels by which a frame moves to another of its peaks, where its tiles are looked at again."""
_TINY = 1e-3
"""Score that noise allows at least, where others are measured by it."""
_NARROW = 0.5
"""Reciprocal of the standard deviation in pixels of a peak, above which what is fitted to 3 x 3 values is off by
hundredths of a pixel: textures of single pixels have 0.7, spots of three 0.35 and less."""
_MIN_REFINED = 0.9
"""Share of the frames that phases refine, at least."""
_OF_ONE_PEAK = 0.75
"""Pixels along an axis between what is fitted to a peak and where it is, at most."""


class Measurement(OnePass):
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
        super().__init__(frames, walk, settings, xp)
        self._count, self._whole, self._tiles = frames.count, whole, tiles

    def run(self, reference: Reference, verified: NDArray[np.bool_]) -> ShiftColumns:
        """Measure all frames; those marked in `verified` also by the float64 FFT and by the definition.

        Where the tiles of a few frames do not move as one, all are measured a second time, without those that move
        otherwise, and refined with less weight on pixels that differ, as far as either is surer.
        """
        sampled = self._sampled(reference)
        columns = self.compare(reference, verified, sampled)
        if self._whole:
            return columns
        if sampled.any():
            self._disambiguate(columns, reference)
        some_differ = masks.some_differ(columns.tiles[sampled])
        if some_differ:
            self._look(columns, reference, np.isnan(columns.inlier_fraction))
        elif self._tiles and self.settings.normalization == "zncc":
            self._torn(columns, reference)
        turned = self._turned(columns, reference)
        if turned is not None:
            return turned
        if not some_differ:
            return self._by_phase(columns, reference)
        columns.inconsistent |= masks.max_differ(columns.tiles) & (columns.inlier_fraction < _MIN_ALIKE)
        trusted = columns.valid(self.settings)
        if masks.two_motions(columns.tiles):
            columns = self._in_part(columns, trusted, reference, verified)
        columns = self._by_phase(self._reweighted(columns, trusted, sampled, reference), reference)
        return self._over_layers(columns, reference)

    def _by_phase(self, columns: ShiftColumns, reference: Reference) -> ShiftColumns:
        """Refine frames of a fine texture, whose peaks are no polynomials, by the phase of their cross-spectra."""
        chosen = self._for_phases(columns) & ~columns.partial & ~columns.reweighted
        narrowness = columns.narrowness[chosen & np.isfinite(columns.narrowness)]
        if not narrowness.size or median_of(narrowness)[0] < _NARROW:
            return columns
        found = self._phases(columns, reference, chosen)
        taken = _of_all(found, chosen)
        return columns if taken is None else columns.refined(found, taken)

    def _over_layers(self, columns: ShiftColumns, reference: Reference) -> ShiftColumns:
        """Refine frames whose tiles differ by phases, to which another layer is noise, if that is surer on a few."""
        chosen = self._for_phases(columns) & (columns.sigma <= self.settings.sure_sigma).all(axis=1)
        few = _less_sure(columns.sigma, chosen, self._few)
        if not few.any():
            return columns
        first = self._phases(columns, reference, few)
        if not masks.surer(columns.sigma, first.sigma, few, 1.0):
            return columns
        # Windows where a bent peak was found pull at a smooth scene.
        first = self._phases(columns, reference, few, first.shift)
        off = np.abs(first.shift - columns.shifts)[few] / columns.sigma[few]
        share = _WORTH_A_FIT if np.median(off.max(axis=1)) > _BENT else _FAR_SURER
        if not masks.surer(columns.sigma, first.sigma, few, share):
            return columns
        rest = chosen & ~few
        found = self._phases(columns, reference, rest, self._phases(columns, reference, rest).shift)
        found.put(few, first.of(few))
        taken = _of_all(found, chosen)
        if taken is None:
            return columns
        less = taken | (columns.score >= _ITSELF)
        return columns.refined(found, taken, partial=columns.partial & ~less, reweighted=columns.reweighted | less)

    def _for_phases(self, columns: ShiftColumns) -> NDArray[np.bool_]:
        """(T,) frames that phases may refine."""
        if self.settings.subpixel != "gaussian" or self.settings.normalization != "zncc":
            return np.zeros(self._count, dtype=bool)
        # Halfway between two pixels a narrow peak is no polynomial at all, of which nothing is sure.
        surely = replace(columns, sigma=np.zeros_like(columns.sigma)).trusted(self.settings)
        return surely & (columns.score < _ITSELF)

    def _phases(
        self,
        columns: ShiftColumns,
        reference: Reference,
        chosen: NDArray[np.bool_],
        start: NDArray[np.float64] | None = None,
    ) -> FineShifts:
        """Shifts and standard errors of frames (T,) by the phase of their cross-spectra; NaN where there are none.

        From windows at shifts (T, 2), those measured unless given.
        """
        shifts = columns.shifts if start is None else start
        found = FineShifts(shifts.copy(), np.full_like(columns.sigma, np.nan))

        def refined(images: Array, frames: Array, numbers: NDArray[np.intp]) -> FineShifts:
            return refine(images, frames, shifts[numbers])

        for numbers, these in self.over_chosen("refine", reference, chosen, refined):
            found.put(numbers, these)
        found.sigma[~(np.abs(found.shift - columns.shifts) < _OF_ONE_PEAK).all(axis=1)] = np.nan
        return found

    def _disambiguate(self, columns: ShiftColumns, reference: Reference) -> None:
        """Ask whether pictures tell shifts from others that fit almost as well; of all frames if a few do."""
        asked = columns.doubted_for_rivals(self.settings)
        if not asked.any():
            return
        # A lattice is as much like itself a period away; the frame that is compared with itself lies there.
        itself = (columns.score >= _ITSELF) & np.isfinite(columns.sigma).all(axis=1)
        before, shifts = columns.shifts, np.where(itself[:, None], columns.shifts, np.nan)
        asked, few = asked & ~itself, np.zeros_like(asked)
        few[spread(np.flatnonzero(asked), self._few)] = True
        candidates = np.full((self._count, CANDIDATES, 2), np.nan)

        def told(
            images: Array, frames: Array, numbers: NDArray[np.intp]
        ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
            return disambiguated(images, frames, columns.shifts[numbers], self.window, self.settings.min_overlap)

        for chosen in (few, asked & ~few):
            for numbers, found in self.over_chosen("tiles", reference, chosen, told):
                shifts[numbers], candidates[numbers] = found
            if untold := 2 * np.isfinite(shifts[few, 0]).sum() < few.sum():
                break
        # Frames without a rival stand for themselves.
        known = np.where(columns.trusted(self.settings)[:, None], columns.shifts, shifts)
        if stand_still(known, candidates):
            return
        columns.disambiguated = np.asarray(np.isfinite(shifts).all(axis=1))
        columns.shifts = np.where(columns.disambiguated[:, None], shifts, columns.shifts)
        if untold and 2 * asked.sum() >= self._count:
            # On the edge of the window, too.
            chosen = np.isnan(known[:, 0]) & (columns.peak_ratio < quality.AMBIGUOUS_RATIO)
            self._follow(columns, known, chosen, reference)
        moved = (np.abs(columns.shifts - before) > _ELSEWHERE).any(axis=1)
        # Their tiles were compared at another peak.
        self._look(columns, reference, moved & np.isfinite(columns.inlier_fraction))

    def _follow(
        self, columns: ShiftColumns, known: NDArray[np.float64], chosen: NDArray[np.bool_], reference: Reference
    ) -> None:
        """Follow a lattice through the chosen frames (T,) from where it is `known` (T, 2) to be."""
        alike = dict[int, NDArray[np.float64]]()

        def peaks(images: Array, frames: Array, numbers: NDArray[np.intp]) -> list[NDArray[np.float64]]:
            return alike_peaks(images, frames, columns.shifts[numbers], self.window, self.settings.min_overlap)

        for numbers, found in self.over_chosen("tiles", reference, chosen, peaks):
            alike |= zip(numbers.tolist(), found, strict=True)
        path = followed(known, alike)
        # What lay on the edge of the window was another of the peaks.
        columns.on_edge &= ~(np.abs(path - columns.shifts) > _ELSEWHERE).any(axis=1)
        columns.shifts = np.where(np.isfinite(path), path, columns.shifts)

    def _torn(self, columns: ShiftColumns, reference: Reference) -> None:
        """Look at frames that score less than the others of a stack that moves as one: parts of them may not."""
        valid = columns.valid(self.settings)
        if not valid.any():
            return
        ratio = columns.score / np.maximum(columns.score_limit, _TINY)
        middle = float(median_of(ratio[valid])[0])
        scatter = float(median_of(np.abs(ratio[valid] - middle))[0])
        unusual = valid & (middle - ratio > max(_UNUSUAL * scatter, _LESS))
        others_turn = (columns.edges[~unusual] > MIN_EDGE).any()
        if others_turn or not 0 < unusual.sum() <= _MAX_UNUSUAL * unusual.size:
            return
        self._look(columns, reference, unusual & np.isnan(columns.inlier_fraction))
        outliers = masks.is_outlier_by(masks.shares(columns.tiles)) | (columns.edges > MIN_EDGE)
        columns.inconsistent |= unusual & outliers
        # No camera turns for a single frame.
        columns.edges[unusual] = 0.0

    def _turned(self, columns: ShiftColumns, reference: Reference) -> ShiftColumns | None:
        """Measure the shifts of the centres of frames that turn or change size; None where they do not."""
        if not isinstance(reference, FixedImage) or self.settings.of_peak != "gaussian":
            return None
        seen = columns.edges > MIN_EDGE
        if not seen.any():
            return None
        # A turn makes peaks wide, and their places uncertain. Of a lattice any of its own turns fits, on little of it.
        trusted = replace(
            columns, sigma=np.zeros_like(columns.sigma), disambiguated=np.zeros_like(columns.disambiguated)
        ).valid(self.settings)
        seen &= trusted
        if not seen.any():
            return None
        image = StraightReference(reference.image[None])
        found = TurnFits.empty(self._count, Grid(self.shape).count)

        def compared(_: Array, frames: Array, numbers: NDArray[np.intp]) -> TurnFits:
            return image.compared(frames, columns.shifts[numbers], self.window)

        def compare(chosen: NDArray[np.bool_]) -> None:
            for numbers, turned in self.over_chosen("turn", reference, chosen, compared):
                found.put(numbers, turned)

        few = _less_sure(columns.sigma, seen, min(self._few, 2))
        for number in np.flatnonzero(few):
            compare(np.arange(self._count) == number)
            if not found.holds[number]:
                return None
        compare(trusted & ~few)
        return columns.turned(found) if 2 * found.holds.sum() >= trusted.sum() else None

    def _in_part(
        self,
        columns: ShiftColumns,
        trusted: NDArray[np.bool_],
        reference: Reference,
        verified: NDArray[np.bool_],
    ) -> ShiftColumns:
        """Measure frames without the tiles that move otherwise, if that is surer."""
        everywhere = np.ones(self._count, dtype=bool)
        parts = masks.Parts(masks.left_out(columns.tiles), columns.shifts)
        if not parts.out.any() or not self._may_pay(columns, trusted, parts, reference):
            return columns
        # A window that lies where all of a frame was found pulls what is left there.
        found = self.compare(reference, ~everywhere, ~everywhere, parts).shifts
        parts = replace(parts, shifts=np.where(np.isfinite(found), found, parts.shifts))
        without = self.compare(reference, verified, everywhere, parts)
        # What is left of a frame may sharpen what the whole of it showed, but not settle what that left in doubt.
        taken: NDArray[np.bool_] = trusted & parts.out.any(axis=(1, 2)) & np.isfinite(without.shifts).all(axis=1)
        taken &= masks.surer(columns.sigma, without.sigma, taken)
        scene = scene_of_two(self, reference, verified, columns, without, taken)
        # Of a scene that changes everywhere, what tiles differ by tells no other motion: all of it is surer.
        return scene or (columns.replaced(without, taken) if taken.any() else columns)

    def _may_pay(
        self, columns: ShiftColumns, trusted: NDArray[np.bool_], parts: masks.Parts, reference: Reference
    ) -> bool:
        """Ask a few frames of a longer stack whether they are surer without parts, or these are a second scene."""
        numbers = np.flatnonzero(trusted & parts.out.any(axis=(1, 2)))
        if not isinstance(reference, FixedImage) or numbers.size <= 2 * _IN_PART:
            return True
        few = spread(numbers, _IN_PART)
        frames = PickedFrames(self.frames, tuple(few.tolist()))
        walk = Pass(few.size, frames.shape[0] * frames.shape[1], self.xp is not np)
        sample, nobody = OnePass(frames, walk, self.settings, self.xp), np.zeros(few.size, dtype=bool)
        some, before = masks.Parts(parts.out[few], parts.shifts[few]), columns.of(few)
        without = sample.compare(reference, nobody, ~nobody, some)
        known: NDArray[np.bool_] = np.asarray(np.isfinite(without.shifts).all(axis=1))
        return (
            masks.surer(before.sigma, without.sigma, known)
            or scene_of_two(sample, reference, nobody, before, without, nobody) is not None
        )

    def _reweighted(
        self, columns: ShiftColumns, trusted: NDArray[np.bool_], seen: NDArray[np.bool_], reference: Reference
    ) -> ShiftColumns:
        """Refine frames with less weight on pixels that differ; all of them if it pays on a few."""
        if self.settings.of_peak != "gaussian" or 2 * trusted.sum() < self._count:
            return columns

        def is_surer(chosen: NDArray[np.bool_]) -> bool:
            known = chosen & np.isfinite(fit.shift).all(axis=1)
            return bool(known.any()) and masks.surer(columns.sigma, fit.sigma, known, _WORTH_A_FIT)

        # The reference itself has nothing to gain.
        itself = trusted & (columns.score >= _ITSELF)
        trusted = trusted & ~itself
        # A mask may have been made for the frames whose tiles were looked at: they alone are no measure.
        fit, few = FineShifts.empty(self._count), (trusted & seen, _less_sure(columns.sigma, trusted, self._few))
        self._fit(fit, reference, columns.shifts, few[0] | few[1], once=True)
        if not any(map(is_surer, few)):
            return columns
        self._fit(fit, reference, columns.shifts, trusted, once=False)
        if not is_surer(trusted):
            return columns
        trusted |= itself
        fit.shift[itself], fit.sigma[itself] = columns.shifts[itself], columns.sigma[itself]
        taken = trusted & np.isfinite(fit.shift).all(axis=1) & ~(fit.sigma > columns.sigma).all(axis=1)
        return columns.refined(fit, taken, partial=columns.partial & ~taken, reweighted=taken)

    @property
    def _few(self) -> int:
        """Frames that stand for all."""
        return min(_SAMPLED_FRAMES, self._count // _FRAMES_PER_LOOK + 2)

    def _sampled(self, reference: Reference) -> NDArray[np.bool_]:
        """Mark frames whose tiles are looked at: a few, spread over the stack, the last among them."""
        chosen = np.zeros(self._count, dtype=bool)
        # A mean of frames that were not aligned is blurred: it differs everywhere.
        if self._tiles and self.settings.normalization == "zncc" and not isinstance(reference, MeanOfOthers):
            chosen[np.linspace(0, chosen.size - 1, self._few + 1)[1:].round().astype(int)] = True
        return chosen

    def _look(self, columns: ShiftColumns, reference: Reference, chosen: NDArray[np.bool_]) -> None:
        """Look at the tiles of the chosen frames (T,)."""

        def looked(images: Array, frames: Array, numbers: NDArray[np.intp]) -> TileTest:
            return look(images, frames, columns.shifts[numbers])

        for numbers, found in self.over_chosen("tiles", reference, chosen, looked):
            columns.take_tiles(numbers, found)

    def _fit(
        self,
        fit: FineShifts,
        reference: Reference,
        shifts: NDArray[np.float64],
        chosen: NDArray[np.bool_],
        *,
        once: bool,
    ) -> None:
        """Fit the chosen frames (T,) so that pixels that differ count less."""
        kernel = self.kernel(reference, quiet=FINELY_NOISY) if chosen.any() else None

        def fitted(images: Array, frames: Array, numbers: NDArray[np.intp]) -> FineShifts:
            return fit_reweighted(images, frames, shifts[numbers], kernel, once=once)

        for numbers, these in self.over_chosen("refine", reference, chosen, fitted):
            fit.put(numbers, these)


def _of_all(found: FineShifts, chosen: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
    """(T,) which of the chosen frames were refined; None where some were not: a layer over some lies over all."""
    taken: NDArray[np.bool_] = np.asarray(np.isfinite(found.sigma).all(axis=1))
    return taken if taken.sum() > _MIN_REFINED * chosen.sum() else None


def _less_sure(sigma: NDArray[np.float64], trusted: NDArray[np.bool_], number: int) -> NDArray[np.bool_]:
    """Mark so many of the frames (T,) whose standard errors (T, 2) are the median or larger, the very largest aside."""
    chosen = np.zeros_like(trusted)
    error = np.where(trusted, sigma.max(axis=1), np.nan)
    order = np.argsort(error)[: int(np.isfinite(error).sum())]
    if order.size:
        chosen[order[np.rint(np.linspace(*_NEEDY, number) * (order.size - 1)).astype(int)]] = True
    return chosen
