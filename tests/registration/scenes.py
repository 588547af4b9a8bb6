"""Scenes whose displacement is exact: band-limited, made by Fourier synthesis, cropped from a larger canvas."""

import numpy as np
from scipy.ndimage import gaussian_filter

from xcorr_app.registration.reference.reference_names import REFERENCES
from xcorr_app.registration.stack.frames import Chunk

EVERY_REFERENCE = (*REFERENCES, "pairs:2")
"""Each reference that has a name, with a number where it needs one."""

MARGIN = 40
"""Canvas around the view, so that what leaves on one side does not come back on the other."""


def drifting(displacements, shape=(64, 72), width=0.05, seed=1, contrast=1.0, offset=0.0, *, noisy=0.0, noise_seed=2):
    """Views (T, Y, X) of one random scene displaced by (T, 2) pixels; the shift to add to frame t is minus that.

    `width` is the deviation of the scene's Gaussian spectrum in cycles per pixel; nothing exceeds 0.25. The scene has
    zero mean and deviation `contrast` over the canvas, then `offset` is added, and noise of deviation `noisy`.
    """
    size = [n + 2 * MARGIN for n in shape]
    fy, fx = np.fft.fftfreq(size[0])[:, None], np.fft.fftfreq(size[1])[None, :]
    squares = fy**2 + fx**2
    spectrum = np.fft.fft2(np.random.default_rng(seed).normal(size=size))
    spectrum *= np.exp(-squares / (2 * width**2)) * ((squares > 0) & (squares < 0.25**2))
    deviation = np.fft.ifft2(spectrum).real.std()
    views = []
    for dy, dx in np.asarray(displacements, dtype=float):
        whole = np.fft.ifft2(spectrum * np.exp(-2j * np.pi * (fy * dy + fx * dx))).real
        views.append(whole[MARGIN : MARGIN + shape[0], MARGIN : MARGIN + shape[1]])
    clean = offset + contrast * np.stack(views) / deviation
    return clean + noise(clean, noisy, noise_seed) if noisy else clean


def texture(shape, seed, width, mode="reflect"):
    """Smoothed noise of unit deviation; of a number, or of a generator as it stands."""
    image = gaussian_filter(np.random.default_rng(seed).normal(size=shape), width, mode=mode)
    return image / image.std()


def particles(displacements, shape, seed):
    """Views (T, Y, X) of 25 bright particles that are displaced together by (T, 2) pixels."""
    y, x = np.mgrid[: shape[0], : shape[1]]
    views = np.zeros((len(displacements), *shape))
    for cy, cx in np.random.default_rng(seed).uniform(-20, max(shape) + 20, (25, 2)):
        for view, (dy, dx) in zip(views, displacements, strict=True):
            view += np.exp(-((y - cy - dy) ** 2 + (x - cx - dx) ** 2) / 18)
    return views


def walk(seed, count, step):
    """Displacements (T, 2) of a random walk with normal steps of so many pixels; the first frame's are zero."""
    path = np.cumsum(np.random.default_rng(seed).normal(0, step, (count, 2)), axis=0)
    return path - path[0]


def rms(errors):
    """Root of the mean square."""
    return np.sqrt(np.mean(np.square(errors)))


def noise(stack, deviation, seed=2):
    """White Gaussian noise of the stack's shape."""
    return deviation * np.random.default_rng(seed).normal(size=np.shape(stack))


class UnreliableFrames:
    """Frames of an array of which some cannot be read; these are handed out as zeros, as files would be."""

    def __init__(self, stack, broken):
        self._stack, self._broken = stack, dict(broken)
        self.count, self.shape, self.dtype = stack.shape[0], stack.shape[1:], stack.dtype

    def read(self, start, stop):
        frames = self._stack[start:stop].copy()
        unreadable = {t: reason for t, reason in self._broken.items() if start <= t < stop}
        for t in unreadable:
            frames[t - start] = 0
        return Chunk(start, frames, unreadable)
