"""How far the peak of a plane stands above what the rest of the plane reaches by chance.

``z = (peak - median) / (1.4826 MAD)`` over the plane away from the peak. A plane is smooth, so its values are not
independent: the probability that noise alone reaches z somewhere in the window is the expected number of its maxima
above z, which depends on the variance of the plane's slopes (Adler 1981, The Geometry of Random Fields, doi
10.1137/1.9780898718980). Where the plane holds few independent values, its spread is itself uncertain, and Student's
distribution replaces the normal one, by the normal deviate that is as improbable (Wallace 1959, doi
10.1214/aoms/1177706094; to a twentieth from two degrees of freedom on). Correlation coefficients are made normal by
Fisher's transform first, the inverse hyperbolic tangent: near one, little is left to chance.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, array_namespace, to_host

MAX_FALSE_ALARM = 0.01
"""Probability of a peak as high by chance above which a shift is not trusted."""

_SAMPLES = 48
"""Values along each axis of a plane that its spread is taken from."""
DEVIATION = 1.4826
"""Standard deviation of normal values over their median absolute deviation."""


_NARROWEST = 2.5 * np.pi
"""Width of a window, in units of its plane's mean slope over deviation, that a wave of a period and a quarter has."""


@dataclass(frozen=True)
class Significance:
    """One entry a plane, on the host; NaN where the plane has no peak or too few values away from it."""

    z: NDArray[np.float64]
    """Height of the peak above the median, in standard deviations of the plane."""
    false_alarm: NDArray[np.float64]
    """Probability of a peak as high by chance, anywhere in the window."""


@dataclass(frozen=True)
class Spread:
    """What the rest of each plane is like, on the host; one entry a plane."""

    middle: NDArray[np.float64]
    """Median of the values away from the peak; NaN where there are none."""
    distance: NDArray[np.float64]
    """Median distance from it."""
    steps: NDArray[np.float64]
    """(2, n) median steps between neighbours, down and across."""
    samples: NDArray[np.int64]
    """Values looked at that count."""


def significance(planes: Array, row: Array, column: Array, value: Array, *, scores: bool) -> Significance:
    """Rate the peaks (n,) of planes (n, ny, nx), which are NaN where no shift is valid; `scores` are within [-1, 1]."""
    if not scores:
        return rated(planes.shape[1:], (to_host(value), _spread(planes, row, column)), None)
    count, both = planes.shape[0], _spread(planes, row, column, _with_fisher)
    plain, transformed = (
        Spread(both.middle[part], both.distance[part], both.steps[:, part], both.samples[part])
        for part in (slice(None, count), slice(count, None))
    )
    return rated(planes.shape[1:], (to_host(value), plain), (to_host(_fisher(value)), transformed))


def rated(
    shape: tuple[int, int],
    plain: tuple[NDArray[np.float64], Spread],
    transformed: tuple[NDArray[np.float64], Spread] | None,
) -> Significance:
    """Rate peaks (n,) by the spreads of their planes, the latter as they are and after Fisher's transform."""
    z, cells, valid = _height(shape, *plain)
    height = z
    if transformed is not None:
        height, cells, valid = _height(shape, *transformed)
    return Significance(z, false_alarm(height, cells, valid))


def strides_of(shape: tuple[int, int]) -> tuple[int, int]:
    """Every how many rows and columns of a plane are looked at."""
    return max(1, shape[0] // _SAMPLES), max(1, shape[1] // _SAMPLES)


def _fisher(scores: Array) -> Array:
    return array_namespace(scores).arctanh(scores * (1 - max(1e-9, float(np.finfo(scores.dtype).eps))))


def _with_fisher(scores: Array) -> Array:
    """Scores (n, ...) as they are, then transformed, (2 n, ...): each step costs a few frames much time."""
    return array_namespace(scores).concatenate([scores, _fisher(scores)])


def _as_it_is(values: Array) -> Array:
    return values


def _spread(planes: Array, row: Array, column: Array, of_samples: Callable[[Array], Array] = _as_it_is) -> Spread:
    """What is away from the peaks, by what `of_samples` makes of planes (n, ...): as many, or several times as many."""
    xp = array_namespace(planes)
    _, ny, nx = planes.shape
    strides = strides_of((ny, nx))
    if strides == (1, 1):  # all of a plane is looked at: transformed once
        planes, of_samples = of_samples(planes), _as_it_is
    rows, columns = (xp.arange(0, size, stride) for size, stride in zip((ny, nx), strides, strict=True))
    here = of_samples(planes[:, :: strides[0], :: strides[1]])
    # A quarter of each axis around the peak is left out, but for the smallest windows.
    near = (abs(rows[None] - row[:, None]) <= max(1, ny // 8))[:, :, None]
    near = near & (abs(columns[None] - column[:, None]) <= max(1, nx // 8))[:, None, :]
    rest = xp.where(near, np.nan, here.reshape(-1, *near.shape)).reshape(len(here), -1)
    middle = medians_of(rest)
    distance = medians_of(abs(rest - middle[:, None]))
    # Steps between neighbours of the plane itself, not between the values sampled.
    steps = [medians_of(abs(_steps(planes, axis, strides, of_samples)).reshape(len(here), -1)) for axis in (1, 2)]
    samples = xp.isfinite(here).sum(axis=(1, 2))
    return Spread(to_host(middle), to_host(distance), np.stack([to_host(step) for step in steps]), to_host(samples))


def _height(
    shape: tuple[int, int], value: NDArray[np.float64], spread: Spread
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Height of each peak in deviations of its plane, the plane's area over that of a cell, and its valid shifts."""
    deviation = DEVIATION * spread.distance
    known = deviation > 0
    safe = np.where(known, deviation, 1.0)
    valid = spread.samples * math.prod(strides_of(shape))
    cells = valid.astype(np.float64)
    for size, step in zip(shape, DEVIATION * spread.steps, strict=True):
        # Of white values steps have twice the variance; more than that is no noise.
        rate = np.minimum(np.where(known, step, 0.0) / safe, np.sqrt(2.0))
        # A window of one hump holds nothing to compare it with.
        known = known & (size * rate > _NARROWEST)
        cells = cells * rate
    return np.where(known, (value - spread.middle) / safe, np.nan), cells, valid


def false_alarm(z: NDArray[np.float64], cells: NDArray[np.float64], values: NDArray[np.int64]) -> NDArray[np.float64]:
    """Probability that noise reaches z, `cells` being the window's area in units of the slopes' inverse deviations."""
    # A field's squares are correlated over half the area of its values.
    freedom = np.maximum(cells / np.pi, 1.0)
    normal = normal_deviate(freedom, np.maximum(z, 0.0))
    # One by one: SciPy's function takes as long to load as NumPy and all of this package together.
    tail = np.array([math.erfc(deviate) / 2 for deviate in (normal / math.sqrt(2)).tolist()])
    maxima = cells * (2 * np.pi) ** -1.5 * np.maximum(normal, 1.0) * np.exp(-(normal**2) / 2)
    maxima += np.sqrt(cells) / np.pi * np.exp(-(normal**2) / 2)  # on the rim of the window
    return np.where(np.isnan(z), np.nan, np.minimum(tail + np.minimum(maxima, values * tail), 1.0))


def normal_deviate(freedom: NDArray[np.float64], t: NDArray[np.float64]) -> NDArray[np.float64]:
    """Normal deviate as improbable as Student's `t`, not negative, with so many degrees of freedom (Wallace)."""
    return np.asarray((8 * freedom + 1) / (8 * freedom + 3) * np.sqrt(freedom * np.log1p(t * t / freedom)))


def _steps(planes: Array, axis: int, strides: tuple[int, int], of_samples: Callable[[Array], Array]) -> Array:
    """Differences of values next to each other along an axis, as many as are sampled."""
    first, second = ([slice(None), slice(None, None, strides[0]), slice(None, None, strides[1])] for _ in range(2))
    stride = strides[axis - 1]
    last = planes.shape[axis] - 1
    first[axis], second[axis] = slice(0, last, stride), slice(1, last + 1, stride)
    return of_samples(planes[tuple(second)]) - of_samples(planes[tuple(first)])


def medians_of(values: Array) -> Array:
    """Median of each row (n, m) without its NaN; NaN where there is nothing else. On the host rows are overwritten."""
    xp = array_namespace(values)
    if values.shape[1] == 0:
        return xp.full(values.shape[0], np.nan)
    count = xp.isfinite(values).sum(axis=1)
    places = [xp.maximum((count - 1) // 2, 0), xp.minimum(count // 2, values.shape[1] - 1)]
    few = np.unique(places).tolist() if xp is np else []
    # NaN last, in either order.
    if few and few[-1] - few[0] <= 1:
        # A single place is found by vector instructions; what belongs before it is the largest on this side.
        values.partition(few[-1], axis=1)
        values[:, few[0]] = values[:, : few[0] + 1].max(axis=1)
    else:
        values = xp.sort(values, axis=1)
    batch = xp.arange(values.shape[0])
    pair = [values[batch, index] for index in places]
    return xp.where(count > 0, (pair[0] + xp.where(count % 2 == 1, pair[0], pair[1])) / 2, np.nan)
