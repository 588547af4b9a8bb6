"""Measuring frames against those shortly before them, for series whose look changes: previous, pairs.

Of one image of the whole stack there is little in a series that changes; a frame and the one before it are alike. What
is paid for it is that errors of steps add up. Pairs over several frames close loops, which tell errors apart and find
them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy  # whose parts are loaded when they are asked for
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array
from xcorr_app.registration.measuring.measured import ShiftColumns, spread
from xcorr_app.registration.measuring.measurement import Measurement
from xcorr_app.registration.measuring.references import FixedImage
from xcorr_app.registration.reference.earlier_frames import EarlierUsable, GivenFrames, earlier
from xcorr_app.registration.reference.pair_shifts import solve_pairs
from xcorr_app.registration.reference.template import Outcome
from xcorr_app.registration.settings import Settings
from xcorr_app.registration.stack.frames import PickedFrames
from xcorr_app.registration.stack.passes import Pass
from xcorr_app.registration.standard_error.significance import medians_of

_COMPARED, _MIN_COMPARED = 16, 4
"""Frames spread over the stack that are compared with the first directly."""
_MIN_ERROR = 0.005
"""Standard error in pixels below which a pair gains no more weight."""


def against_neighbours(measurement: Measurement, name: str, number: int, verified: NDArray[np.bool_]) -> Outcome:
    """Measure every frame against some shortly before it, and say how far these measurements contradict each other."""
    frames = measurement.frames
    first = measurement.prepared.first_usable(range(frames.count))
    if name == "pairs":
        measured = _pairs(measurement, number, first, verified)
        described = "the frame before each"
        if number > 1:
            described = f"the {number} frames before each, shifts by least squares"
    else:
        measured, described = _previous(measurement, first, verified), "previous frame, shifts summed"
    closure = np.full(frames.count, np.nan) if measured.closure is None else measured.closure
    known = np.flatnonzero(np.isfinite(closure))
    if not known.size:
        lacking = (f"Closure: no later frame could be compared with frame {first[0]} directly.",)
        return measured, described, lacking if name != "pairs" and frames.count > 1 else ()
    last, worst = known[-1], known[closure[known].argmax()]
    note = (
        f"Closure: compared with frame {first[0]} directly, frame {last} lies {closure[last]:.3f} px from where "
        f"the sum of steps puts it; of {known.size} frames compared, the farthest is frame {worst}, "
        f"{closure[worst]:.3f} px."
    )
    if name == "pairs":
        note = (
            f"Closure: pairs contradict the shifts by {np.median(closure[known]):.3f} px (median of frames), most "
            f"at frame {worst}, {closure[worst]:.3f} px."
        )
    return measured, described, (note,)


def _previous(measurement: Measurement, first: tuple[int, Array], verified: NDArray[np.bool_]) -> ShiftColumns:
    """Sum the steps from frame to frame, over those that show nothing of either side."""
    measured, follows = _bridged(measurement, _steps(measurement, first, verified), verified)
    measured.follows = follows
    step, own = measured.shifts, measured.sigma
    measured.shifts, measured.sigma = _summed(step, own, follows)
    return _closed(measurement, first, measured, own)


def _pairs(measurement: Measurement, count: int, first: tuple[int, Array], verified: NDArray[np.bool_]) -> ShiftColumns:
    """Compare each frame with the `count` before it, and place all by what most pairs agree on."""
    frames, settings, runs = measurement.frames, measurement.settings, [_steps(measurement, first, verified)]
    partners = [earlier(runs[0].usable, back, settings.apart) for back in range(1, count + 1)]
    partners = [partner for partner in partners if (partner >= 0).any()] or partners[:1]
    given = (GivenFrames(frames, settings, partner) for partner in partners[1:])
    runs.extend(measurement.run(reference, verified) for reference in given)
    return _placed(runs, partners, first[0], settings)


def _steps(measurement: Measurement, first: tuple[int, Array], verified: NDArray[np.bool_]) -> ShiftColumns:
    return measurement.run(EarlierUsable(measurement.frames, measurement.settings, first), verified)


def _closed(
    measurement: Measurement, first: tuple[int, Array], measured: ShiftColumns, own: NDArray[np.float64]
) -> ShiftColumns:
    """Say how far some frames lie from where they are found against the first directly, and how sure all are.

    The noise of a frame enters two steps, with opposite signs: of a sum, that of the first and last frame is left,
    which a direct comparison and the last step alone (`own`) know, and what the two contradict each other by, which
    adds up from step to step. Where enough is known of it, standard errors are not larger.
    """
    frames, (start, image) = measurement.frames, first
    measured.closure = distance = np.full(frames.count, np.nan)
    candidates = np.flatnonzero(np.isfinite(measured.shifts).all(axis=1))
    candidates = candidates[candidates > start + measurement.settings.apart]
    if candidates.size == 0:
        return measured
    numbers = spread(candidates, _COMPARED)
    picked = PickedFrames(frames, tuple(numbers.tolist()))
    walk = Pass(picked.count, picked.shape[0] * picked.shape[1], measurement.xp is not np)
    settings = replace(measurement.settings, engine="auto", kernel_options=None)
    direct = Measurement(picked, walk, settings, measurement.xp).run(
        FixedImage(image), np.zeros(picked.count, dtype=bool)
    )
    good = direct.trusted(settings)
    away = np.hypot(*(direct.shifts - measured.shifts[numbers] + measured.shifts[start]).T)
    distance[numbers[good]] = away[good]
    if good.sum() >= _MIN_COMPARED:
        steps = np.maximum(np.arange(frames.count) - start, 0)[:, None]
        by_step = (away[good] ** 2).sum() / 2 / steps[numbers[good]].sum()
        error = np.sqrt(np.maximum(own, np.median(direct.sigma[good], axis=0)) ** 2 + by_step * steps)
        measured.sigma = np.where(steps > 0, np.minimum(measured.sigma, error), measured.sigma)
    return measured


def _bridged(
    measurement: Measurement, measured: ShiftColumns, verified: NDArray[np.bool_]
) -> tuple[ShiftColumns, NDArray[np.intp]]:
    """Steps, and the frame (T,) that each is taken from: that before those that no sound step enters or leaves.

    Such frames (of a closed shutter, say) would make a doubt of all that follow.
    """
    frames, settings = measurement.frames, measurement.settings
    follows = earlier(measured.usable, 1, settings.apart)
    sound = measured.trusted(settings)
    leads = np.zeros_like(sound)
    leads[follows[sound & (follows < np.arange(sound.size))]] = True
    lost = measured.usable & ~sound & ~leads
    asked = measured.usable & ~sound & ~lost & lost[follows]
    if not asked.any():
        return measured, follows
    before = earlier(measured.usable & ~lost, 1, settings.apart)
    again = measurement.run(GivenFrames(frames, settings, np.where(asked, before, -1)), verified & asked)
    taken = asked & again.trusted(settings) & (before < np.arange(sound.size))
    return _chosen([measured, again], taken.astype(np.intp)), np.where(taken, before, follows)


def _summed(
    steps: NDArray[np.float64], sigma: NDArray[np.float64], follows: NDArray[np.intp]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Places (T, 2) and their standard errors from steps (T, 2), each from the frame that it follows."""
    # A sum is as uncertain as its steps; one without any certainty at all is doubtful by itself.
    places, variance = np.nan_to_num(steps), np.where(np.isfinite(sigma), sigma, 0.0) ** 2
    for frame, start in enumerate(follows):
        if start >= 0 and start != frame:
            places[frame] += places[start]
            variance[frame] += variance[start]
    return np.where(np.isnan(steps), np.nan, places), np.where(np.isfinite(sigma), np.sqrt(variance), sigma)


def _placed(runs: list[ShiftColumns], partners: list[NDArray[np.intp]], held: int, settings: Settings) -> ShiftColumns:
    """Shifts from measurements of every frame against several before it, and of each the best measurement's columns."""
    count = runs[0].usable.size
    frames = np.arange(count)
    real = (np.array(partners) >= 0) & (np.array(partners) != frames)
    sound: NDArray[np.bool_] = np.array([run.trusted(settings) for run in runs]) & real
    found: NDArray[np.bool_] = np.array([np.isfinite(run.shifts).all(axis=1) for run in runs]) & real
    run_of, later = np.nonzero(found)
    numbers = np.cumsum(runs[0].usable) - 1  # usable frames counted by themselves, so that pairs reach only a few
    earlier_of = np.array(partners)[run_of, later]
    steps = np.array([run.shifts for run in runs])[run_of, later]
    sigma = np.array([run.sigma for run in runs])[run_of, later]
    variance = np.where(np.isfinite(sigma), np.maximum(sigma, _MIN_ERROR), 1.0) ** 2
    is_sound = sound[run_of, later]
    pair = numbers[later], numbers[earlier_of]
    usable = np.flatnonzero(runs[0].usable)
    start = int(numbers[held])
    solution = solve_pairs(*pair, steps, 1 / variance.mean(axis=1), is_sound, usable.size, start)
    best = np.where(sound.any(axis=0), sound.argmax(axis=0), 0)
    measured = _chosen(runs, best)
    has_shift = np.isfinite(measured.shifts).all(axis=1, keepdims=True)
    placed = np.full((count, 2), np.nan)
    placed[usable] = solution.shifts
    measured.shifts = np.where(has_shift, placed, np.nan)
    # Of the checks of all pairs of a frame the one that is farthest off counts.
    used = np.where(sound.any(axis=0), sound, np.arange(len(runs))[:, None] == 0)
    differences = np.array([run.check_offset for run in runs])
    size = np.where(used & np.isfinite(differences).all(axis=2), np.hypot(*differences.transpose(2, 0, 1)), -1.0)
    measured.check_offset = differences[size.argmax(axis=0), frames]
    disagree = np.array([run.definition_disagrees for run in runs]) & used
    measured.definition_disagrees = np.asarray(disagree.any(axis=0))
    sides = np.concatenate([later, earlier_of]), np.concatenate([run_of, run_of + len(runs)]), np.tile(is_sound, 2)
    closure = _median_of_pairs(np.tile(solution.residuals, 2), sides, count)
    spread = np.stack([_median_of_pairs(np.tile(each, 2), sides, count) for each in variance.T], axis=1)
    measured.closure = closure
    # Half of what a pair does not know is the noise of either frame, which no loop shows; what loops show adds up.
    noise = np.maximum(spread - solution.scatter**2, 0.0) / 2
    error = np.full(count, np.nan)
    error[usable] = solution.variance
    combined = np.sqrt(noise + noise[held] + error[:, None])
    combined[held] = measured.sigma[held]
    measured.sigma = np.where(np.isfinite(combined) & np.isfinite(measured.sigma), combined, measured.sigma)
    measured.broken = _cut_off(pair, is_sound, usable, count, start)
    return measured


def _median_of_pairs(
    values: NDArray[np.float64], sides: tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.bool_]], count: int
) -> NDArray[np.float64]:
    """(T,) median of the values of each frame's sound pairs; `sides` name frame and place, and say which are sound."""
    frame, place, sound = sides
    table = np.full((count, int(place.max(initial=0)) + 1), np.nan)
    table[frame[sound], place[sound]] = values[sound]
    return np.asarray(medians_of(table))


def _chosen(runs: list[ShiftColumns], best: NDArray[np.intp]) -> ShiftColumns:
    """Of each frame the columns of its best run (T,)."""
    out = runs[0]
    for number, run in enumerate(runs[1:], 1):
        out = replace(out.where(best == number, run.arrays), reasons={**out.reasons, **run.reasons})
    return out


def _cut_off(
    pair: tuple[NDArray[np.intp], NDArray[np.intp]],
    sound: NDArray[np.bool_],
    usable: NDArray[np.intp],
    count: int,
    start: int,
) -> NDArray[np.bool_]:
    """(T,) frames that no chain of sound pairs joins with the first, one that stands alone aside."""
    shape = (usable.size, usable.size)
    graph = scipy.sparse.coo_array((np.ones(int(sound.sum())), (pair[0][sound], pair[1][sound])), shape=shape)
    _, part = scipy.sparse.csgraph.connected_components(graph, directed=False)
    size = np.bincount(part)[part]
    cut = np.zeros(count, dtype=bool)
    cut[usable] = (part != part[start]) & np.asarray(size > 1)
    return cut
