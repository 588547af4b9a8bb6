"""What is known of every frame once a stack is measured, and which flags follow from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.correlation.standardize import working_dtype
from xcorr_app.gpu.runtime.arrays import Array
from xcorr_app.registration import quality
from xcorr_app.registration.columns import Columns, FineShifts
from xcorr_app.registration.parts import masks
from xcorr_app.registration.parts.tiles import TileTest
from xcorr_app.registration.parts.turned_frames import TurnFits
from xcorr_app.registration.settings import Settings
from xcorr_app.registration.stack.frames import Frames, PickedFrames
from xcorr_app.registration.stack.preparation import prepare
from xcorr_app.registration.standard_error.peak_shapes import median_of
from xcorr_app.registration.standard_error.significance import MAX_FALSE_ALARM

SAME_PEAK = 1.0
"""Pixels up to which two shifts are of one peak."""


@dataclass
class ShiftColumns(Columns):
    """Columns with one entry a frame, filled as chunks arrive; NaN where a frame was not measured."""

    shifts: NDArray[np.float64]
    score: NDArray[np.float64]
    peak_ratio: NDArray[np.float64]
    check_offset: NDArray[np.float64]
    """(T, 2) pixels from shifts to those by the float64 FFT; NaN where these are not checked."""
    score_limit: NDArray[np.float64]
    chance_score: NDArray[np.float64]
    sigma: NDArray[np.float64]
    significance: NDArray[np.float64]
    false_alarm: NDArray[np.float64]
    on_edge: NDArray[np.bool_]
    definition_disagrees: NDArray[np.bool_]
    usable: NDArray[np.bool_]
    flat: NDArray[np.bool_]
    unreadable: NDArray[np.bool_]
    non_finite: NDArray[np.int64]
    reasons: dict[int, str]
    tiles: NDArray[np.float32]
    """(T, rows, columns), see :func:`xcorr_app.registration.parts.tiles.TileTest`; NaN for frames not looked at."""
    partial: NDArray[np.bool_]
    """Measured without the tiles that differ."""
    inconsistent: NDArray[np.bool_]
    """Not to be trusted, since what the frame shows contradicts its shift."""
    inlier_fraction: NDArray[np.float64]
    """(T,) and"""
    edges: NDArray[np.float64]
    """(T,) of frames looked at, see :class:`xcorr_app.registration.parts.tiles.TileTest`."""
    reweighted: NDArray[np.bool_]
    """Refined with less weight on pixels, or frequencies, that differ."""
    disambiguated: NDArray[np.bool_]
    """The picture tells the shift from others at which the plane is almost as high."""
    narrowness: NDArray[np.float64]
    """(T,) of peaks, see :func:`xcorr_app.registration.standard_error.peak_shapes.narrowness_of`."""
    occluded: bool = False
    """Something large moves over the scene, and was told from it, or all is doubted."""
    shared: NDArray[np.float64] | None = None
    """(T, 2) pixels that standard errors lack where neighbouring parts of the picture are off alike, as lines of a scan
    are. No reason to doubt a frame: its shift is still the one that serves all of it best."""
    follows: NDArray[np.intp] | None = None
    """(T,) frame from which each shift is a step; a doubtful step makes all that follow doubtful."""
    broken: NDArray[np.bool_] | None = None
    """(T,) frames that nothing to be trusted joins with the first."""
    linear: NDArray[np.float64] | None = None
    """(T, 2, 2) motion beside the shift of the centre where frames turn, NaN where it is none or not known."""
    closure: NDArray[np.float64] | None = None
    """(T,) pixels by which measurements of a frame contradict each other, NaN where there are none."""

    @classmethod
    def empty(cls, count: int, tiles: tuple[int, int] = (0, 0)) -> ShiftColumns:
        """Columns for `count` frames of so many tiles, nothing known yet."""
        # Few arrays are made, and views of them handed out: that many take as long as hundreds of frames.
        shifts, check_offset, sigma = np.full((3, count, 2), np.nan)
        score, ratio, least, chance, significance, false_alarm, inlier_fraction, edges, narrow = np.full(
            (9, count), np.nan
        )
        edge, disagrees, usable, flat, unreadable, *differences = np.zeros((9, count), dtype=bool)
        non_finite = np.zeros(count, dtype=np.int64)
        found = (shifts, score, ratio, check_offset, least, chance, sigma, significance, false_alarm)
        maps = np.full((count, *tiles), np.nan, dtype=np.float32)
        partial, inconsistent, reweighted, disambiguated = differences
        others = partial, inconsistent, inlier_fraction, edges, reweighted, disambiguated, narrow
        return cls(*found, edge, disagrees, usable, flat, unreadable, non_finite, {}, maps, *others)

    def take_tiles(self, numbers: NDArray[np.intp], look: TileTest) -> None:
        """Fill in what the tiles of these frames say."""
        self.tiles[numbers], self.inlier_fraction[numbers], self.edges[numbers] = (
            look.tiles,
            look.inlier_fraction,
            look.edges,
        )

    def replaced(self, other: ShiftColumns, taken: NDArray[np.bool_]) -> ShiftColumns:
        """Take frames (T,) from another measurement, which left out a part of them."""
        chosen = self.where(taken, other.arrays)
        chosen.partial = taken
        # The other was not asked: what stands where the whole of a frame was measured stands for a part of it there.
        stays: NDArray[np.bool_] = np.asarray((np.abs(chosen.shifts - self.shifts) < SAME_PEAK).all(axis=1))
        chosen.disambiguated = self.disambiguated & (~taken | stays)
        chosen.inconsistent = (self.inconsistent & ~taken) | masks.outliers(chosen.tiles, taken)
        return chosen

    def with_all_parts(self, whole: ShiftColumns) -> ShiftColumns:
        """Take frames of which a part was left out from a measurement of all of them; what tiles said still stands."""
        kept = ("tiles", "inlier_fraction", "edges", "inconsistent", "disambiguated", "partial")
        chosen = self.where(self.partial, {name: new for name, new in whole.arrays.items() if name not in kept})
        chosen.partial = np.zeros_like(self.partial)
        return chosen

    def refined(self, found: FineShifts | TurnFits, taken: NDArray[np.bool_], **columns: Any) -> ShiftColumns:
        """Take shifts of frames (T,), and their standard errors, from a better fit, and `columns` as given."""
        return replace(
            self,
            shifts=np.where(taken[:, None], found.shift, self.shifts),
            sigma=np.where(taken[:, None], found.sigma, self.sigma),
            **columns,
        )

    def turned(self, found: TurnFits) -> ShiftColumns:
        """Take the shifts of centres where a linear motion holds; where neither it nor a shift does, trust none."""
        taken = found.holds[:, None, None]
        return self.refined(
            found,
            found.holds,
            tiles=np.where(taken, found.tiles, self.tiles),
            linear=np.where(taken, found.linear, np.nan),
            inconsistent=self.inconsistent | found.outliers,
        )

    def flags(self, settings: Settings) -> tuple[tuple[str, ...], ...]:
        """Words for every frame, in the order of :mod:`xcorr_app.registration.quality`."""
        words = self._words(settings)
        if not any(frames.any() for frames in words.values()):
            return ((),) * len(self.shifts)
        # Few combinations occur, however many frames there are.
        code = (1 << np.arange(len(words))) @ np.stack(list(words.values()))
        found = {one: tuple(word for k, word in enumerate(words) if one >> k & 1) for one in np.unique(code).tolist()}
        return tuple([found[one] for one in code.tolist()])

    def wrong(self, settings: Settings) -> NDArray[np.float64]:
        """(T,) probability that the peak of a frame is not its own, by what is known of that frame."""
        words = self._words(settings)
        by_chance = quality.wrong_by_chance(self.false_alarm, words[quality.UNCERTAIN])
        # What fills the plane of a lattice is the lattice, of which the frames around tell the period.
        ambiguous = words[quality.AMBIGUOUS]
        is_lattice = ~words[quality.LOW_SCORE] & (2 * ambiguous.sum() >= ambiguous.size)
        right = 1 - np.where(ambiguous | self.disambiguated, 0.0, by_chance)
        right *= np.where(ambiguous, quality.OF_A_LATTICE * is_lattice, 1.0)
        for word, probability in quality.WRONG.items():
            if word in words:
                right = right * np.where(words[word], 1 - probability, 1.0)
        return 1 - right * (1 - words[quality.INCONSISTENT] * quality.wrong_if_inconsistent(self.inlier_fraction))

    def lost(self, settings: Settings) -> NDArray[np.bool_]:
        """(T,) whether no peak of a frame is sure, nor several alike."""
        words = self._words(settings)
        return np.asarray(words[quality.UNCERTAIN] & ~words[quality.AMBIGUOUS])

    def _words(self, settings: Settings) -> dict[str, NDArray[np.bool_]]:
        """Frames (T,) that each word is said of."""
        difference = np.hypot(*self.check_offset.T)
        known = np.isfinite(self.score)
        ambiguous = self.peak_ratio < quality.AMBIGUOUS_RATIO
        uncertain = self.score < self.chance_score
        # What fills the plane of a lattice is the lattice: its peak is ambiguous, or told from it, none by chance.
        uncertain |= (self.false_alarm > MAX_FALSE_ALARM) & ~ambiguous & ~self.disambiguated
        doubtful = uncertain | self.on_edge | self.inconsistent | (ambiguous & ~self.disambiguated)
        # What a few of many frames move by may be chance.
        sure = known & ~doubtful & np.isfinite(self.shifts).all(axis=1)
        moves = self.shifts[sure] if 2 * sure.sum() > known.sum() else self.shifts[:0]
        uncertain |= (self.sigma > settings.sigma_limit(moves)).any(axis=1)
        words = {
            quality.EDGE: known & self.on_edge,
            quality.LOW_SCORE: known & (self.score < self.score_limit),
            quality.AMBIGUOUS: known & ambiguous & ~self.disambiguated,
            quality.UNCERTAIN: known & uncertain,
            quality.INCONSISTENT: known & self.inconsistent,
            # A frame without any valid shift is as good as flat: its overlaps hold no variance.
            quality.FLAT: self.flat | (self.usable & ~known),
            quality.UNREADABLE: self.unreadable,
            quality.NON_FINITE: self.non_finite > 0,
            quality.DISAGREES: (difference > settings.tolerance) | self.definition_disagrees,
        }
        if self.follows is not None:
            doubtful = _any_of(words, quality.DOUBTFUL)
            words[quality.INHERITED] = _inherited(doubtful, self.follows) & known
        if self.broken is not None:
            words[quality.INHERITED] = self.broken & known
        return words

    def doubted_for_rivals(self, settings: Settings) -> NDArray[np.bool_]:
        """(T,) whether nothing speaks against a frame but that other shifts fit almost as well, or that many do."""
        if_disambiguated = replace(self, disambiguated=np.ones_like(self.disambiguated))
        return np.asarray(if_disambiguated.valid(settings) & ~self.valid(settings))

    def trusted(self, settings: Settings) -> NDArray[np.bool_]:
        """(T,) whether a frame has a shift and nothing speaks against it."""
        return self.valid(settings) & np.isfinite(self.shifts).all(axis=1)

    def valid(self, settings: Settings) -> NDArray[np.bool_]:
        """(T,) whether nothing speaks against a frame."""
        return ~_any_of(self._words(settings), quality.DOUBTFUL | quality.FAILED)


Trial = Callable[..., ShiftColumns]
"""Measures some frames against a reference by settings; as a whole, whatever moves in them, without a look at tiles."""


def _any_of(words: dict[str, NDArray[np.bool_]], which: frozenset[str]) -> NDArray[np.bool_]:
    """(T,) whether any of these words is said of a frame."""
    return np.asarray(np.logical_or.reduce([frames for word, frames in words.items() if word in which]))


def _inherited(doubtful: NDArray[np.bool_], follows: NDArray[np.intp]) -> NDArray[np.bool_]:
    """(T,) whether any step that leads to a frame, its own aside, is doubtful."""
    inherited = np.zeros_like(doubtful)
    for frame, start in enumerate(follows):
        if 0 <= start < frame:
            inherited[frame] = doubtful[start] or inherited[start]
    return inherited


def near_each_other(measured: ShiftColumns, shape: tuple[int, int]) -> NDArray[np.intp]:
    """Frames with shifts, but for those that would leave half of what the others share, and for repetitions.

    On the edge of the window there is no peak: where most others have one, such frames were not found.
    """
    known = measured.usable & np.isfinite(measured.shifts).all(axis=1)
    if measured.on_edge.any() and 2 * (found := known & ~measured.on_edge).sum() > known.sum():
        known = found
    if known.any():
        away = np.nan_to_num(measured.shifts) - median_of(measured.shifts[known])
        known &= (np.abs(away) <= np.array(shape) / 4).all(axis=1)
    # Frames that show the same as another to the last bit (a camera that sends one twice, a looped movie) share its
    # noise: what such frames have in common stands still.
    rows = np.column_stack([measured.shifts, measured.sigma, measured.score, measured.significance])
    first = {rows[number].tobytes(): number for number in np.flatnonzero(known)[::-1].tolist()}
    return np.array(sorted(first.values()), dtype=np.intp)


FEW = 5
"""Frames, spread over a series, that tell what is true of all."""


def spread(numbers: NDArray[np.intp], count: int = FEW) -> NDArray[np.intp]:
    """At most so many of the numbers, spread evenly, the first among them."""
    return np.asarray(numbers[np.linspace(0, numbers.size - 1, min(count, numbers.size)).round().astype(np.intp)])


def taken(frames: Frames, numbers: NDArray[np.intp], settings: Settings) -> Array:
    """Frames (n, Y, X) as floats without their means."""
    images = prepare(PickedFrames(frames, tuple(numbers.tolist())).read(0, numbers.size), settings).frames
    images = images.astype(working_dtype(images))
    return images - images.mean(axis=(1, 2), keepdims=True)
