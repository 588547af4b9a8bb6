"""Shifts by the pixels that count, beside scikit-image's masked correlation: errors, and time of a frame.

A part of `benchmarks.motion`. Speckle moves behind a window that stands still, round and with a hole; what lies outside
is brighter by far and does not move. Both get the frames and the mask; scikit-image's answer is a whole pixel.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from skimage.registration import phase_cross_correlation

import xcorr_app as xc
from tests.registration.masked.test_masked import blob, moving

_SHAPE = (256, 256)
_LARGEST = 14.0
_SNRS = (20.0, 5.0, 2.0, 1.0, 0.5)
_OUTSIDE = 1000.0

Floats = NDArray[np.float64]


def _ours(frames: Floats, mask: NDArray[np.bool_]) -> Floats:
    return xc.estimate_shifts(frames, mask=mask, max_shift=_LARGEST).shifts


def _unmasked(frames: Floats, mask: NDArray[np.bool_]) -> Floats:
    del mask
    return xc.estimate_shifts(frames, max_shift=_LARGEST).shifts


def _skimage(frames: Floats, mask: NDArray[np.bool_]) -> Floats:
    found = [phase_cross_correlation(frames[0], each, reference_mask=mask, moving_mask=mask)[0] for each in frames]
    return np.array(found)


def rows(seeds: int, frames: int) -> list[dict[str, Any]]:
    """Print and return the rms errors of shifts to 14 px."""
    measured, mask = [], blob(_SHAPE)
    for snr in _SNRS:
        for tool, measure in (("xcorr", _ours), ("xcorr without the mask", _unmasked), ("scikit-image", _skimage)):
            errors, seconds = [], 0.0
            for seed in range(seeds):
                rng = np.random.default_rng(seed)
                shifts = np.concatenate([np.zeros((1, 2)), rng.uniform(-_LARGEST + 1, _LARGEST - 1, (frames - 1, 2))])
                scenes = moving(_SHAPE, seed, shifts)
                scenes += rng.normal(size=scenes.shape) * scenes.std() / snr
                stack = np.where(mask, scenes, _OUTSIDE)
                if snr == _SNRS[0] and seed == 0:
                    measure(stack[:2], mask)  # what a first call loads
                began = time.perf_counter()
                found = measure(stack, mask)
                seconds += time.perf_counter() - began
                errors.append((found - shifts)[1:])
            rms = float(np.sqrt(np.mean(np.square(errors))))
            each = 1e3 * seconds / (seeds * frames)
            measured.append({"snr": snr, "tool": tool, "rms_px": rms, "ms_a_frame": each})
            print(f"mask SNR {snr:4g} {tool:22} rms {rms:8.4f} px {each:8.1f} ms", flush=True)
    return measured
