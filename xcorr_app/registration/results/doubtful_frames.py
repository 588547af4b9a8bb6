"""What frames are moved by: what was measured, or, of a flagged frame, what is expected to be least wrong.

A shift that nothing speaks against is applied as it was measured. That of a flagged frame may be right, to its standard
error, or a peak by chance anywhere in the window. How probable either is follows from its peak, from how many of the
others are right, and from how well it lies where the frames around it say, which move by so much from frame to frame as
this stack does: a random walk that also jumps, of every length of step, each counting by how likely it makes the
shifts. Shifts that are more probably right than not are moved by the mean of what was measured and what the others
say, by their standard errors and that walk; others lie on the line between their neighbours in time, held at the ends.
Where nothing is known but the reference, that leaves all where they are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from xcorr_app.errors import ArgumentError

POLICIES = ("interpolate", "apply", "leave", "drop")
DEFAULT_POLICY = "interpolate"

_ROUNDS, _FINER = 5, 0.25
"""In which probabilities follow from each other, for variances of a step of which each is this part of the last."""
_MIN_PAIRS = 3
"""Frames that say nothing of how a stack moves: it may move by any step."""
_UNKNOWN_SIGMA = 0.5
"""Pixels, where nothing is known of a standard error."""
_EXACT, _STILL = 1e-4, 1e-3
"""Pixels: no standard error, and no step of a stack, counts as less."""
_SURELY = 0.05
"""Probability that a peak is not the frame's, below which one that nothing speaks against stands in any case."""
_TAILS = 3.0
"""Degrees of freedom: a stack that jumps now and then does not drift by a normal distribution."""
_NEVER, _TINY = 1e-6, 1e-300
"""Least probability that a shift is right."""

Floats = NDArray[np.float64]


def applied_shifts(
    measured: Floats,
    trusted: NDArray[np.bool_],
    policy: str = DEFAULT_POLICY,
    sigma: Floats | None = None,
    wrong: Floats | None = None,
    window: tuple[int, int] = (1, 1),
) -> Floats:
    """Shifts (T, 2) to apply, from those measured (T, 2), NaN where there is none, and which of them are trusted (T,).

    Without standard errors, of any number of values (T, k) of each frame.

    Parameters
    ----------
    measured, trusted
    policy
        What becomes of shifts that are not trusted: weighed as said above (``interpolate``), taken all the same
        (``apply``, which interpolates only where there is none), zero (``leave``), or NaN (``drop``: the frame is to
        be left out). Where none can be taken, all are zero, or NaN.
    sigma, wrong
        Standard errors (T, 2) in pixels, and the probability (T,) that a peak is not the frame's. Without, no shift
        that is not trusted is taken.
    window
        Rows and columns of shifts that were searched.
    """
    known = np.asarray(np.isfinite(measured).all(axis=1))
    taken = known if check_policy(policy) == "apply" else known & trusted
    if policy == "drop":
        return np.where(taken[:, None], measured, np.nan)
    shifts = measured.copy()
    if policy == "interpolate" and not taken[known].all():
        if sigma is None or wrong is None:
            if stays(taken, known, policy):
                return np.zeros_like(measured)
        else:
            own = np.where(np.isfinite(sigma), np.maximum(sigma, _EXACT), _UNKNOWN_SIGMA)
            variance = np.minimum((own**2).mean(axis=1), _anywhere(window))
            right, expected = _weighed(measured, taken, known, variance, wrong, window)
            shifts, taken = np.where(taken[:, None], measured, expected), right > 0.5
    if policy == "leave" or not taken.any():
        return np.where(taken[:, None], shifts, 0.0)
    return between(shifts, taken)


def between(values: Floats, taken: NDArray[np.bool_]) -> Floats:
    """Values (T, ...) of frames, those of frames that are not `taken` (T,) interpolated between the others."""
    frames, found = np.arange(taken.size), values.copy()
    columns = found.reshape(taken.size, -1)
    for column in columns.T:
        column[~taken] = np.interp(frames[~taken], frames[taken], column[taken])
    return found


def _anywhere(window: tuple[int, int]) -> float:
    """Variance along an axis of what may lie anywhere in a window."""
    return (window[0] ** 2 + window[1] ** 2) / 24


def _weighed(
    measured: Floats,
    trusted: NDArray[np.bool_],
    known: NDArray[np.bool_],
    variance: Floats,
    wrong: Floats,
    window: tuple[int, int],
) -> tuple[Floats, Floats]:
    """Probability (T,) that each shift is right, and the mean (T, 2) of what was measured and what the others say."""
    chance = np.where(np.isfinite(wrong), np.clip(wrong, _NEVER, 1 - _NEVER), 0.5)
    possible = known & ~(wrong >= 1)
    # A few that nothing speaks against, among many that are peaks by chance, may be so, too.
    sure = trusted & ((2 * trusted.sum() >= known.sum()) | (chance < _SURELY))
    # The sure ones count: those in doubt alone would fall in stacks that leave the window, where some are right.
    if (chance - 0.5)[known].sum() > 0:
        # Frames of one scene meet another with peaks that move as they do: where fewer than half are expected to be
        # right, agreement of the others with each other makes none of them so, and these fall together.
        return sure * float(sure.sum() > 1), measured
    numbers, anywhere, area = np.flatnonzero(known), _anywhere(window), max(window[0] * window[1], 1)
    smallest = _STILL**2 if numbers.size > _MIN_PAIRS else anywhere
    steps = anywhere * _FINER ** np.arange(np.ceil(np.log(smallest / anywhere) / np.log(_FINER)) + 1)
    places, chance, own, stands = measured[known], chance[known], variance[known], sure[known]
    doubted = possible[known] & ~stands
    right = np.tile(np.where(stands, 1.0, np.where(doubted, 1 - chance, 0.0)), (steps.size, 1))
    for _ in range(_ROUNDS):
        error = own + np.where(stands, 0.0, (1 - right) / np.maximum(right, _NEVER) * anywhere)
        expected, spread = _by_others(places, error, numbers, steps)
        total = np.minimum(spread, anywhere) + own
        chi_squared = ((places - expected) ** 2).sum(axis=2) / total
        density = (1 + chi_squared / _TAILS) ** (-1 - _TAILS / 2) / (2 * np.pi * total)
        # Whether frames of this stack are right at all is told by the others; the reference finds itself.
        others = (right.sum(axis=1, keepdims=True) - right) / numbers.size
        for_it = np.where(stands, 1.0, others * (1 - chance)) * density
        against = np.where(stands, 0.0, (1 - others) * chance / area)
        right = np.where(doubted, for_it / np.maximum(for_it + against, _TINY), right)
    likelihood = np.log(np.maximum(for_it + against, _TINY))[:, stands | doubted].sum(axis=1)
    weights = np.exp(likelihood - likelihood.max())
    found, expected_of = np.zeros(known.size), measured.copy()
    found[known] = np.average(right, axis=0, weights=weights)
    own_share = (right * spread / (right * spread + own))[..., None]
    expected_of[known] = np.average(expected + own_share * (places - expected), axis=0, weights=weights)
    return found, expected_of


def _by_others(places: Floats, error: Floats, numbers: NDArray[np.intp], steps: Floats) -> tuple[Floats, Floats]:
    """Where (k, n, 2) the frames before and after a frame put it, and the variance (k, n) of that.

    For k variances of a step from one frame to the next; `error` (k, n) are those of the places (n, 2).
    """
    total, weight = np.zeros((*error.shape, 2)), np.zeros_like(error)
    for order in (range(len(places)), range(len(places) - 1, -1, -1)):
        place, spread, last = np.tile(places[order[0]], (len(steps), 1)), error[:, order[0]], order[0]
        for i in order[1:]:
            ahead = spread + steps * abs(int(numbers[i] - numbers[last]))
            total[:, i] += place / ahead[:, None]
            weight[:, i] += 1 / ahead
            gain = ahead / (ahead + error[:, i])
            place = place + gain[:, None] * (places[i] - place)
            spread, last = gain * error[:, i], i
    weight = np.maximum(weight, _TINY)
    return total / weight[..., None], 1 / weight


def stays(trusted: NDArray[np.bool_], known: NDArray[np.bool_], policy: str) -> bool:
    """Whether no frame is warped, since fewer than half of the known motions are trusted: others would follow these.

    Frames without a motion, dark ones say, are no sign that others are trusted by chance.
    """
    return policy == "interpolate" and bool(2 * trusted.sum() < known.sum())


def check_policy(policy: str) -> str:
    """Return a policy that exists; raises ArgumentError for any other."""
    if policy not in POLICIES:
        raise ArgumentError(f"unknown policy {policy!r} for doubtful frames: use {', '.join(POLICIES)}")
    return policy
