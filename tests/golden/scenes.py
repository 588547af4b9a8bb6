"""Small series of every kind that the program treats in its own way; the same numbers everywhere."""

from functools import cache

import numpy as np
from scipy import ndimage

from tests.registration.scenes import drifting, noise

PATH = np.array([(0, 0), (1.25, -2.5), (-3.4, 4.1), (5.0, 2.0), (2.2, -6.3), (-4.7, -1.6), (0.6, 3.3)])


@cache
def plain(deviation: float = 0.05, shape: tuple[int, int] = (69, 78), seed: int = 3) -> np.ndarray:
    """One scene that moves, with noise."""
    stack = drifting(PATH, shape, width=0.06, seed=seed)
    return (100 + 20 * (stack + noise(stack, deviation, seed + 1))).astype(np.float32)


@cache
def odd_frames() -> np.ndarray:
    """One frame is flat, one of another scene, one dim, one blurred, and some pixels are missing."""
    stack = plain(0.1, seed=5).copy()
    stack[2] = 100
    stack[3] = plain(0.1, seed=9)[3]
    stack[4] = 100 + 0.2 * (stack[4] - 100)
    stack[5] = ndimage.gaussian_filter(stack[5], 2.5)
    stack[6, 10:14, 20:30] = np.nan
    return stack


@cache
def over_a_pattern() -> np.ndarray:
    """A scene that moves over columns that stand still."""
    phase = np.arange(7) / 6
    drift = np.stack([13 * np.sin(3.1 * phase), 8 * (np.cos(4 * phase) - 1)], axis=1)
    clean = drifting(drift, (131, 143), width=0.05)
    columns = np.random.default_rng(3).normal(size=143)
    return (500 + 40 * (clean + noise(clean, 0.2) + columns)).astype(np.float32)


@cache
def turning_light() -> np.ndarray:
    """Light that falls off across the frame, in a direction that turns."""
    phase = np.arange(6) / 5
    drift = np.stack([9 * np.sin(3.1 * phase), 6 * (np.cos(4 * phase) - 1)], axis=1)
    y, x = (np.linspace(-1, 1, size) for size in (131, 143))
    angle = 3 * phase[:, None, None]
    light = 1 + 0.45 * (np.sin(angle) * y[:, None] + np.cos(angle) * x)
    clean = light * (60 + 20 * drifting(drift, (131, 143), width=0.04))
    return (100 + clean + noise(clean, 4.0)).astype(np.float32)


@cache
def turning() -> np.ndarray:
    """Frames that turn by up to two degrees."""
    canvas = ndimage.gaussian_filter(np.random.default_rng(5).normal(size=(211, 223)), 2.5)
    middle, found = (np.array(canvas.shape) - 1) / 2, []
    for t, shift in enumerate(PATH[:5]):
        angle = np.radians(0.5 * t)
        matrix = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        whole = ndimage.affine_transform(canvas, matrix.T, middle - matrix.T @ (middle + shift), order=3)
        found.append(whole[40:-40, 40:-40])
    stack = np.stack(found) / np.std(found)
    return (1000 + 100 * (stack + noise(stack, 0.05))).round().astype(np.uint16)


@cache
def swept() -> np.ndarray:
    """Every other row lies two pixels aside."""
    drift = 0.7 * PATH
    there, back = (drifting(drift + np.array([0, aside]), (111, 122), width=0.06) for aside in (0, 2.0))
    there[:, 1::2] = back[:, 1::2]
    return (100 + 20 * (there + noise(there, 0.3))).astype(np.float32)


@cache
def crossing() -> np.ndarray:
    """A bright thing that crosses a scene that moves."""
    stack = drifting(PATH, (131, 143), width=0.06)
    y, x = np.mgrid[:131, :143]
    for t, frame in enumerate(stack):
        frame += 12 * np.exp(-((y - 40 - 5 * t) ** 2 + (x - 30 - 12 * t) ** 2) / 60)
    return (100 + 20 * (stack + noise(stack, 0.2))).astype(np.float32)


@cache
def blinking() -> np.ndarray:
    """Spots of which half are lit in each frame."""
    rng = np.random.default_rng(8)
    y, x = np.mgrid[:119, :127]
    places = rng.uniform(-8, 135, (150, 2))
    stack = np.zeros((6, 119, 127))
    for t, (dy, dx) in enumerate(0.8 * PATH[:6]):
        for row, column in places[rng.random(150) < 0.6]:
            stack[t] += np.exp(-((y - row - dy) ** 2 + (x - column - dx) ** 2) / 4.5)
    return rng.poisson(30 + 200 * stack).astype(np.uint16)


@cache
def defective() -> np.ndarray:
    """Hot and dead pixels that stand still."""
    stack = plain(0.1, (101, 109), seed=6).copy()
    rng = np.random.default_rng(1)
    stack[:, rng.integers(0, 101, 25), rng.integers(0, 109, 25)] = 900
    stack[:, rng.integers(0, 101, 10), rng.integers(0, 109, 10)] = 0
    return stack


@cache
def bent(count: int = 3, shape: tuple[int, int] = (139, 147)) -> np.ndarray:
    """Frames bent by a smooth wave, and moved."""
    canvas = ndimage.gaussian_filter(np.random.default_rng(2).normal(size=(shape[0] + 40, shape[1] + 40)), 1.8)
    y, x = np.mgrid[: shape[0], : shape[1]].astype(float)
    found = []
    for t in range(count):
        down = y + 20 + 1.3 * t * np.sin(x / 25) + 0.4 * t
        across = x + 20 + 0.9 * t * np.cos(y / 30) - 0.7 * t
        found.append(ndimage.map_coordinates(canvas, [down, across], order=3))
    stack = np.stack(found) / np.std(found)
    return (100 + 20 * (stack + noise(stack, 0.03))).astype(np.float32)
