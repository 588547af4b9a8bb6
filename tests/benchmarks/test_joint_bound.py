"""The bound from all frames of a series: of two frames that of Knapp and Carter, and as its definition says."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks import joint_bound
from benchmarks.conditions import _clean
from benchmarks.scenes import BACKGROUND, READ_NOISE, SIZE, bounds, contrast

PATH = np.array([(0.0, 0.0), (3.3, -4.1), (1.2, 7.7), (-2.6, 0.4)])


def test_of_two_frames_it_is_that_of_a_noisy_reference():
    clean = _clean("spots", "plain", 2, 4, 20.0)
    a = contrast(0.5, float(clean.views[0].mean()))
    noise = (BACKGROUND + a * float(clean.views[0].mean()) + READ_NOISE**2 + 1 / 12) / a**2
    scene = joint_bound.spectrum_of(clean.scene.sample(0.0, 0.0))
    found = joint_bound.bound(PATH[:2], scene, np.zeros_like(scene), noise)
    assert found == pytest.approx(bounds(clean.scene, 0.5)[1], rel=1e-3)


def test_of_spots_of_which_none_blinks_it_is_that_of_two_noisy_images(monkeypatch):
    clean = _clean("spots", "blinking", 2, 4, 20.0)
    still = replace(clean, lit=np.ones_like(clean.lit), views=clean.scene.sample(0.0, 0.0)[None])
    monkeypatch.setattr(joint_bound, "_clean", lambda *_: still)
    found = joint_bound.of_blinking(4, 20.0, 2, 20.0)
    assert found == pytest.approx(np.sqrt(2) * bounds(clean.scene, 20.0)[0], rel=1e-9)
    monkeypatch.setattr(joint_bound, "_clean", lambda *_: clean)
    assert joint_bound.of_blinking(4, 20.0, 2, 20.0) > 1.05 * found


def test_information_is_that_of_the_covariance(rng, monkeypatch):
    """Traces of derivatives by differences, at a few frequencies."""
    monkeypatch.setattr(joint_bound, "_HIGHEST", 0.006)
    scene, pattern = rng.uniform(1, 3, (2, SIZE, SIZE))
    frequency = np.fft.fftfreq(SIZE)
    information = np.zeros((6, 6))
    for y in range(-3, 4):
        for x in range(4):
            if not (x > 0 or y > 0) or np.hypot(y, x) >= 0.006 * SIZE:
                continue
            k = 2 * np.pi * np.array([frequency[y], frequency[x]])

            def covariance(path, k=k, s=scene[y, x], p=pattern[y, x]):
                v = np.exp(-1j * path @ k)
                return 0.7 * np.eye(4) + p + s * np.outer(v, v.conj())

            inverse, changes = np.linalg.inv(covariance(PATH)), []
            for t in range(1, 4):
                for axis in range(2):
                    step = np.zeros_like(PATH)
                    step[t, axis] = 1e-4
                    changes.append(inverse @ (covariance(PATH + step) - covariance(PATH - step)) / 2e-4)
            information += np.array([[np.trace(a @ b).real for b in changes] for a in changes])
    expected = np.sqrt(np.trace(np.linalg.inv(information)) / 6)
    assert joint_bound.bound(PATH, scene, pattern, 0.7) == pytest.approx(expected, rel=1e-5)
