"""What happens to spots or speckle, seen by a camera, besides the drift: conditions of the board of cases.

plain
    Nothing.
pattern
    A pattern that stands still is added: column offsets and spots, of equal variance, together of the scene's own.
gradient
    The light falls off across the field by a gradient of 50 % that turns by half a turn over the series.
blinking
    30 % of the spots blink: each is on or off, with equal chance, in every frame, the reference too.
brightness
    The light drifts from frame to frame, 10 % rms, with a power spectrum of 1/f.
hot, flickering
    20 pixels a frame, between 20 000 and 65 535: at the same places in every frame; of 40 places, a random half of
    them in each frame.
lattice
    Spots on a lattice of 12 pixels with 5 % defects; the shift stays below half the lattice.
turning, growing
    Spots that turn about the centre of the frame by up to 1.5 degrees over the series, or grow by up to 2 %; the true
    shift is that of the centre.

The noise-free frames of a condition do not depend on the signal-to-noise ratio, which is that of the scene alone.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.scenes import (
    BACKGROUND,
    LARGEST_DRIFT,
    OFFSET,
    READ_NOISE,
    SCENES,
    SIZE,
    Lattice,
    Scene,
    Spots,
    bounds,
    contrast,
    drift,
)

CONDITIONS = {
    "plain": 0,
    "pattern": 1,
    "gradient": 3,
    "blinking": 4,
    "brightness": 5,
    "hot": 6,
    "flickering": 7,
    "lattice": 8,
    "turning": 9,
    "growing": 10,
}
"""And the number by which each has random numbers of its own."""
LATTICE_DRIFT = 5.5
_HOT = 20
_TURN, _GROWTH = np.deg2rad(1.5), 0.02

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Series:
    """Frames, what is true about them, and how they are to be measured."""

    frames: NDArray[Any]
    shifts: Array
    """(T, 2) true registration shifts; NaN where there is none, or nobody knows it."""
    foreign: NDArray[np.bool_] | None = None
    """(T,) frames that do not show the scene, and should be flagged."""
    zero: int | None = 0
    """Frame by which errors are counted; None: the surest, where the reference may be any frame."""
    bound: float = np.nan
    """Smallest rms error per axis of a pair of frames, in pixels, where it is known (see :mod:`benchmarks.scenes`)."""
    bound_known_scene: float = np.nan
    """The same, were the reference without noise."""
    options: dict[str, Any] = field(default_factory=dict)
    """Of `estimate_shifts`, beside the reference."""


@dataclass(frozen=True)
class Clean:
    """Frames without noise, and what the camera adds to them."""

    scene: Scene
    views: Array
    """(T, size, size) in units of the scene's deviation."""
    light: Array
    """(T, size, size) or (T, 1, 1) factor of the scene and the background."""
    hot: Array
    """(T, size, size) counts of hot pixels, zero elsewhere, or (T, 1, 1) zeros."""
    path: Array
    """(T, 2) displacements."""


def make_series(
    scene_name: str,
    snr: float,
    frames: int = 20,
    seed: int = 0,
    largest: float = LARGEST_DRIFT,
    condition: str = "plain",
    size: int = SIZE,
) -> Series:
    """Make one series: a reference and `frames` displaced frames, all equally noisy.

    Parameters
    ----------
    scene_name : {"spots", "speckle"}
    snr : float
        Standard deviation of the clean scene over rms noise.
    frames : int
        Number of frames beside the reference.
    seed : int
        The same seed gives the same scene and drift at every SNR, and the same series on every machine.
    largest : float
        Largest displacement per axis in pixels; `LATTICE_DRIFT` at most for a lattice.
    condition : str
        One of `CONDITIONS`; lattices, blinking, turning and growing ones are of spots alone.
    size : int
        Rows and columns of a frame.

    Returns
    -------
    Series
    """
    clean = _clean(scene_name, condition, frames, seed, largest, size)
    noise = np.random.default_rng(np.random.SeedSequence([seed, 20_240_512]).spawn(2)[1])
    a = contrast(snr, float(clean.views[0].mean()))
    stack = np.empty((frames + 1, size, size), dtype=np.uint16)
    for index, (view, light, hot) in enumerate(zip(clean.views, clean.light, clean.hot, strict=True)):
        electrons = noise.poisson(light * (BACKGROUND + a * view))
        counts = OFFSET + electrons + READ_NOISE * noise.standard_normal((size, size))
        stack[index] = np.clip(np.rint(np.where(hot > 0, hot, counts)), 0, 65_535)
    known, noisy = bounds(clean.scene, snr) if condition == "plain" else (np.nan, np.nan)
    return Series(stack, -clean.path, bound=noisy, bound_known_scene=known)


@functools.lru_cache(maxsize=1)
def _clean(scene_name: str, condition: str, frames: int, seed: int, largest: float, size: int = SIZE) -> Clean:
    """Make the noise-free frames; the last are kept, since every SNR needs the same."""
    world = np.random.default_rng(np.random.SeedSequence([seed, 20_240_512]).spawn(2)[0])
    extra = np.random.default_rng([seed, 20_240_512, CONDITIONS[condition]])
    scene: Scene = Lattice(world, size) if condition == "lattice" else SCENES[scene_name](world, size)
    path = drift(frames + 1, world, min(largest, LATTICE_DRIFT) if condition == "lattice" else largest)
    light, hot = np.ones((frames + 1, 1, 1)), np.zeros((frames + 1, 1, 1))
    if condition == "blinking" and isinstance(scene, Spots):
        blinking = scene.random_spots(extra, 0.3)
        lit = np.stack([~(blinking & (extra.random(blinking.size) < 0.5)) for _ in path])
        views = np.stack([scene.without(~on).sample(*d) for on, d in zip(lit, path, strict=True)])
    elif condition in ("turning", "growing") and isinstance(scene, Spots):
        by = np.linspace(0, 1, frames + 1)
        angle, factor = (_TURN * by, 1 + 0 * by) if condition == "turning" else (0 * by, 1 + _GROWTH * by)
        views = np.stack([scene.turned(*how).sample(*d) for *how, d in zip(angle, factor, path, strict=True)])
    else:
        views = np.stack([scene.sample(dy, dx) for dy, dx in path])
    if condition == "pattern":
        views += _pattern(extra, size)
    elif condition == "gradient":
        light = _gradient(frames + 1, extra, size)
    elif condition == "brightness":
        light = np.exp(0.1 * _pink(frames + 1, extra))[:, None, None]
    elif condition in ("hot", "flickering"):
        hot = _hot_pixels(frames + 1, extra, size, flickering=condition == "flickering")
    return Clean(scene, views, light, hot, path)


def _pattern(rng: np.random.Generator, size: int) -> Array:
    """Columns and spots, non-negative, of unit deviation together."""
    columns = rng.standard_normal(size)
    columns = (columns - columns.min()) / columns.std()
    pattern: Array = np.sqrt(0.5) * (columns + Spots(rng, size).sample(0.0, 0.0))
    return pattern


def _gradient(count: int, rng: np.random.Generator, size: int) -> Array:
    """Light of mean one that falls off in a direction that turns."""
    angle = rng.uniform(0, 2 * np.pi) + np.linspace(0, np.pi, count)[:, None, None]
    across = np.linspace(-1, 1, size)
    light: Array = 1 + 0.5 * (np.sin(angle) * across[:, None] + np.cos(angle) * across)
    return light


def _pink(count: int, rng: np.random.Generator) -> Array:
    """Return a series of unit deviation whose power falls as 1/f."""
    spectrum = np.fft.rfft(rng.standard_normal(4 * count))
    spectrum[1:] /= np.sqrt(np.arange(1, spectrum.size))
    spectrum[0] = 0
    series = np.fft.irfft(spectrum, 4 * count)[:count]
    pink: Array = (series - series.mean()) / series.std()
    return pink


def _hot_pixels(count: int, rng: np.random.Generator, size: int, *, flickering: bool) -> Array:
    places = rng.choice(size * size, size=2 * _HOT, replace=False)
    hot = np.zeros((count, size * size))
    for frame in hot:
        chosen = rng.choice(places, size=_HOT, replace=False) if flickering else places[:_HOT]
        frame[chosen] = rng.uniform(20_000, 65_535, size=_HOT)
    return hot.reshape(count, size, size)
