"""What frames are moved by: what was measured, or, of a flagged frame, what is expected to be least wrong.

A shift that nothing speaks against is applied as it was measured. That of a flagged frame may be right, to its standard
error, or a peak by chance anywhere in the window. How probable either is follows from its peak, and from how well the
shift lies where the frames around it say, which drift by so much from frame to frame as this stack does (a random
walk). Shifts that are more probably right than not are moved by the mean of what was measured and what the others say,
each weighted by the inverse of its expected squared error; others lie on the line between their neighbours in time,
held at the ends. Where nothing is known but the reference, that leaves all where they are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solveh_banded

from xcorr_app.errors import ArgumentError

POLICIES = ("interpolate", "apply", "leave", "drop")
DEFAULT_POLICY = "interpolate"

_ROUNDS = 4
"""In which probabilities and the motion of the stack are found from each other."""
_FEWEST = 3.0
"""Pairs of neighbours, each counted by the probability that both are right, from which the motion is known."""
_OF_MEDIAN = 2 * np.log(2)
"""Median of the squared length of a step over its variance along an axis."""
_UNKNOWN_SIGMA = 0.5
"""Pixels, where nothing is known of a standard error."""
_EXACT, _STILL = 1e-4, 1e-3
"""Pixels: no standard error, and no step of a stack, counts as less."""
_RARE = 0.05
"""Share of the shifts of a stack that are right, at least: how rare these are is told by the stack itself."""
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
    known = np.isfinite(measured[:, 0]) & np.isfinite(measured[:, 1])
    taken = known if check_policy(policy) == "apply" else known & trusted
    if policy == "drop":
        return np.where(taken[:, None], measured, np.nan)
    shifts = measured.copy()
    if policy == "interpolate" and not taken[known].all():
        if sigma is None or wrong is None:
            if stays(taken, known, policy):
                return np.zeros_like(measured)
        else:
            right, error = _weighed(measured, taken, known, sigma, wrong, window)
            doubtful, taken = (right > 0.5) & ~taken, right > 0.5
            if doubtful.any():
                smooth = _smoothed(measured[taken], error[taken], np.flatnonzero(taken))
                shifts[doubtful] = smooth[doubtful[taken]]
    if policy == "leave" or not taken.any():
        return np.where(np.stack([taken, taken], axis=1), shifts, 0.0)
    frames = np.arange(taken.size)
    for axis in range(2):
        shifts[~taken, axis] = np.interp(frames[~taken], frames[taken], shifts[taken, axis])
    return shifts


def _weighed(
    measured: Floats,
    trusted: NDArray[np.bool_],
    known: NDArray[np.bool_],
    sigma: Floats,
    wrong: Floats,
    window: tuple[int, int],
) -> tuple[Floats, Floats]:
    """Probability (T,) that each shift is right, and its expected squared error (T,) along an axis."""
    anywhere = (window[0] ** 2 + window[1] ** 2) / 24  # variance of what lies anywhere in the window
    own = np.where(np.isfinite(sigma), np.maximum(sigma, _EXACT), _UNKNOWN_SIGMA)
    variance = np.minimum((own**2).mean(axis=1), anywhere)
    chance = np.where(np.isfinite(wrong), np.clip(wrong, _NEVER, 1 - _NEVER), 0.5)
    # A few that nothing speaks against, among many that are peaks by chance, may be so, too.
    hopeless = wrong >= 1
    sure = trusted & ((2 * trusted.sum() >= known.sum()) | (chance < _SURELY))
    if not sure.any():
        # Frames of one scene meet another with peaks that move as they do: against an image that none of them surely
        # resembles, their agreement with each other says nothing, and all stand or fall together.
        right = np.where(known, 1 - np.median(chance[known]), 0.0)
        return np.where(hopeless, 0.0, right), variance + (1 - right) * anywhere
    right = np.where(sure, 1.0, np.where(known & ~hopeless, 1 - chance, 0.0))
    numbers = np.flatnonzero(known)
    places, doubted = measured[numbers], ~sure[numbers]
    error = variance.copy()
    for _ in range(_ROUNDS):
        share = np.clip(right[numbers].mean(), _RARE, 0.5)
        step = _step(places, right[numbers], numbers, anywhere)
        said, spread = _by_others(places, error[numbers], numbers, step)
        total = np.minimum(spread, anywhere) + variance[numbers]
        squares = ((places - said) ** 2).sum(axis=1) / total
        density = (1 + squares / _TAILS) ** (-1 - _TAILS / 2) / (2 * np.pi * total)
        for_it = share * (1 - chance[numbers]) * density
        against = (1 - share) * chance[numbers] / max(window[0] * window[1], 1)
        found = for_it / np.maximum(for_it + against, _TINY)
        right[numbers[doubted]] = np.where(hopeless[numbers], 0.0, found)[doubted]
        error = variance + np.where(sure, 0.0, (1 - right) / np.maximum(right, _NEVER) * anywhere)
    expected = variance.copy()
    if_wrong = np.minimum(spread, anywhere) + ((places - said) ** 2).mean(axis=1)
    expected[numbers] += (1 - right[numbers]) * if_wrong
    return right, expected


def _step(places: Floats, right: Floats, numbers: NDArray[np.intp], anywhere: float) -> float:
    """Variance along an axis of a step from one frame to the next, by shifts (n, 2) of frames with these numbers.

    That of standard errors is not taken off: they may be too large, and a stack is not to seem to stand still for it.
    """
    weight = right[1:] * right[:-1]
    if weight.sum() < _FEWEST:
        return anywhere
    gap = np.diff(numbers)
    squares = (np.diff(places, axis=0) ** 2).sum(axis=1) / _OF_MEDIAN
    order = np.argsort(squares / gap)
    middle = order[np.searchsorted(np.cumsum(weight[order]), weight.sum() / 2)]
    return float(np.clip(squares[middle] / gap[middle], _STILL**2, anywhere))


def _by_others(places: Floats, error: Floats, numbers: NDArray[np.intp], step: float) -> tuple[Floats, Floats]:
    """Where (n, 2) the frames before and after a frame put it, and the variance (n,) of that: infinite without any."""
    total, weight = np.zeros_like(places), np.zeros(len(places))
    for order in (range(len(places)), range(len(places) - 1, -1, -1)):
        place, spread, last = np.zeros(2), np.inf, 0
        for i in order:
            if np.isfinite(spread):
                ahead = spread + step * abs(int(numbers[i]) - last)
                total[i] += place / ahead
                weight[i] += 1 / ahead
                gain = ahead / (ahead + error[i])
                place, spread = place + gain * (places[i] - place), gain * error[i]
            else:
                place, spread = places[i], error[i]
            last = int(numbers[i])
    some = weight > 0
    spread_of_all = np.where(some, 1 / np.where(some, weight, 1.0), np.inf)
    return total / np.where(some, weight, 1.0)[:, None], spread_of_all


def _smoothed(places: Floats, error: Floats, numbers: NDArray[np.intp]) -> Floats:
    """Shifts (n, 2) of frames with these numbers, each the mean of its own and of what those beside it say."""
    step = _step(places, np.ones(len(places)), numbers, np.inf) if len(places) > _FEWEST else np.inf
    if not np.isfinite(step):
        return places
    links = 1 / (step * np.diff(numbers))
    bands = np.zeros((2, len(places)))
    bands[1] = 1 / error
    bands[1, 1:] += links
    bands[1, :-1] += links
    bands[0, 1:] = -links
    smooth: Floats = solveh_banded(bands, places / error[:, None])
    return smooth


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
