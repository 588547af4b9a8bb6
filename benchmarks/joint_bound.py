"""The smallest error that any method could reach from all frames of a series, over a pattern of its own or without.

Of frame t, at frequency k,

    F_t = P + S exp(-i k d_t) + noise,

S and P are those of a random scene and a random pattern, Gaussian, of known spectra but else unknown. With C the
covariance of the F_t at one frequency, the Fisher information of the displacements is

    sum over half of all frequencies of trace(C^-1 dC/di C^-1 dC/dj)

(Slepian and Bangs; of two frames without a pattern this is the bound of Knapp and Carter in :mod:`benchmarks.scenes`).
Frame 0 is held at zero: the bound is that of the other frames' shifts onto it, from all frames together. What enters
and leaves at the rim is left out, as is what a method must do to learn the spectra: no method comes quite as near.

    python -m benchmarks.joint_bound [--seeds N] [--first-seed N] [--frames N] [--drift PX]
"""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray

from benchmarks.conditions import _clean
from benchmarks.harness.record import write_result
from benchmarks.scenes import BACKGROUND, LARGEST_DRIFT, READ_NOISE, SIZE, SNRS, contrast

Array = NDArray[np.float64]

_HIGHEST = 0.25
"""Cycles per pixel up to which spots show anything."""
_WHOLLY = 1e9
"""Variance of a frequency that shows the pattern alone."""


def spectrum_of(image: Array) -> Array:
    """Radial mean of an image's periodogram (SIZE, SIZE), variance per pixel, as in :mod:`benchmarks.scenes`."""
    hann = np.hanning(SIZE)[:, None] * np.hanning(SIZE)
    hann /= np.sqrt(np.mean(hann**2))
    power = np.abs(np.fft.fft2((image - image.mean()) * hann)) ** 2 / image.size
    frequency = np.fft.fftfreq(SIZE)
    ring = np.rint(np.hypot(frequency[:, None], frequency) * SIZE).astype(np.intp).ravel()
    of_rings = np.bincount(ring, power.ravel()) / np.bincount(ring)
    return np.asarray(of_rings[ring].reshape(power.shape))


def bound(path: Array, scene: Array, pattern: Array, noise: float) -> float:
    """Rms error per axis in pixels of displacements (T, 2) against the first, from spectra (SIZE, SIZE)."""
    count = len(path)
    frequency = np.fft.fftfreq(SIZE)
    y, x = np.broadcast_arrays(frequency[:, None], frequency)
    half = ((x > 0) | ((x == 0) & (y > 0))) & (np.hypot(y, x) < _HIGHEST)
    k = 2 * np.pi * np.stack([y[half], x[half]])
    information = np.zeros((count, 2, count, 2))
    for first in range(0, k.shape[1], 4096):
        part = slice(first, first + 4096)
        of_scene, of_pattern = scene[half][part] / noise, pattern[half][part] / noise
        v = np.exp(-1j * (k[:, part].T @ path.T))
        c = np.eye(count) + of_pattern[:, None, None] + of_scene[:, None, None] * v[:, :, None] * v[:, None].conj()
        inverse = np.linalg.inv(c)
        # dC/d(d_t) = -i k S v_t e_t v^H and its adjoint: both traces in closed form.
        w = np.einsum("nij,nj->ni", inverse, v)
        both = np.einsum("ni,ni->n", v.conj(), w).real
        own, cross = (v.conj()[:, :, None] * inverse * v[:, None]).real, w.conj() * v
        density = both[:, None, None] * own - (cross[:, :, None] * cross[:, None]).real
        density *= 2 * (of_scene**2)[:, None, None]
        for a in range(2):
            for b in range(2):
                information[:, a, :, b] += np.einsum("n,nij->ij", k[a, part] * k[b, part], density)
    free = information[1:, :, 1:].reshape(2 * (count - 1), -1)
    return float(np.sqrt(np.trace(np.linalg.inv(free)) / (2 * (count - 1))))


def of_series(seed: int, snr: float, frames: int, largest: float) -> tuple[float, float]:
    """Bounds of one series of spots as they are, and over a pattern of its own."""
    bounds = []
    for condition in ("plain", "pattern"):
        clean = _clean("spots", condition, frames, seed, largest)
        a = contrast(snr, float(clean.views[0].mean()))
        noise = (BACKGROUND + a * float(clean.views.mean()) + READ_NOISE**2 + 1 / 12) / a**2
        scene = clean.scene.sample(0.0, 0.0)
        pattern = clean.views[0] - clean.scene.sample(*clean.path[0])
        # What is the same in a column, or in a row, is nothing but the pattern.
        spectrum = spectrum_of(pattern - pattern.mean(axis=0)) if condition == "pattern" else np.zeros_like(scene)
        if condition == "pattern":
            spectrum[0] = _WHOLLY
        bounds.append(bound(clean.path, spectrum_of(scene), spectrum, noise))
    return bounds[0], bounds[1]


def main() -> None:
    """Print the bounds of spots and write results/joint_bound.json."""
    parser = argparse.ArgumentParser(description="Smallest errors on spots over a pattern, and without.")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--frames", type=int, default=8)
    parser.add_argument("--drift", metavar="PX", type=float, default=LARGEST_DRIFT)
    parser.add_argument("--snr", nargs="+", type=float, default=[*SNRS])
    arguments = parser.parse_args()
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    records = []
    for snr in arguments.snr:
        series = [(seed, snr, arguments.frames, arguments.drift) for seed in seeds]
        found = np.array([of_series(*each) for each in series])
        plain, pattern = np.sqrt(np.mean(found**2, axis=0)).tolist()
        records.append({"snr": snr, "plain": plain, "pattern": pattern})
        print(f"SNR {snr:g}: {plain:.4f} px without a pattern, {pattern:.4f} px over one", flush=True)
    write_result("joint_bound", {"parameters": vars(arguments), "records": records})


if __name__ == "__main__":
    main()
