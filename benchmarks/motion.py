"""Rotation and scale beside the public tools, on synthetic series with known motion: errors and time of a frame.

Run: ``python -m benchmarks.motion [--frames 6] [--seeds 3] [--fields]``. StackReg (pystackreg) follows intensities
from where the frame lies, so turns are at most 3 degrees here; shifts are at most 12 px. Scales of 0.8 to 1.25, in
the rows of ``similarity`` and ``affine``, are beyond what it follows: only ``rigid`` compares precision.
scikit-image's way (log-polar phase correlation, then phase correlation of the turned frame) is that of its gallery.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import xcorr_app as xc
from benchmarks import fields
from benchmarks._environment import write_result
from tests.registration.test_motion import corner_errors, series

_SHAPE = (256, 256)
_SNRS = (20.0, 5.0, 2.0, 1.0, 0.5)
_LARGEST_TURN = np.radians(3)


def _ours(frames: NDArray[np.float64], model: str) -> NDArray[np.float64]:
    return xc.estimate_motion(frames, model).matrices


def _stackreg(frames: NDArray[np.float64], model: str) -> NDArray[np.float64]:
    from pystackreg import StackReg

    kinds = {"rigid": StackReg.RIGID_BODY, "similarity": StackReg.SCALED_ROTATION, "affine": StackReg.AFFINE}
    register = StackReg(kinds[model])
    found = register.register_stack(frames, reference="first")
    # Columns before rows.
    return found[:, [1, 0, 2]][:, :, [1, 0, 2]]


def _skimage(frames: NDArray[np.float64], model: str) -> NDArray[np.float64]:
    from skimage.filters import window
    from skimage.registration import phase_cross_correlation
    from skimage.transform import rotate, warp_polar

    del model
    first, middle, found = frames[0], (np.array(frames[0].shape) - 1) / 2, []
    radius = frames.shape[1] // 8

    def polar(image: NDArray[np.float64]) -> Any:
        spectrum = np.abs(np.fft.fftshift(np.fft.fft2(image * window("hann", image.shape))))
        return warp_polar(spectrum, radius=radius, output_shape=(720, radius))[:360]

    for frame in frames:
        turn = phase_cross_correlation(polar(first), polar(frame), upsample_factor=20, normalization=None)[0][0] / 2
        turn = 90 - (turn + 90) % 180
        shift = phase_cross_correlation(first, rotate(frame, turn), upsample_factor=20, normalization=None)[0]
        angle = np.radians(turn)
        matrix = np.array([[np.cos(angle), np.sin(angle), 0], [-np.sin(angle), np.cos(angle), 0], [0, 0, 1]])
        matrix[:2, 2] = middle - matrix[:2, :2] @ (middle + shift)
        found.append(matrix)
    return np.stack(found)


_TOOLS: dict[str, tuple[Callable[[NDArray[np.float64], str], NDArray[np.float64]], tuple[str, ...]]] = {
    "xcorr": (_ours, ("rigid", "similarity", "affine")),
    "pystackreg": (_stackreg, ("rigid", "similarity", "affine")),
    "scikit-image": (_skimage, ("rigid",)),
}


def main() -> None:
    """Print and keep the largest and the typical error of a corner, and the time of a frame."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--frames", type=int, default=6)
    arguments.add_argument("--seeds", type=int, default=3)
    arguments.add_argument("--fields", action="store_true", help="patches and displacement fields instead")
    asked = arguments.parse_args()
    if asked.fields:
        fields.main(asked.seeds)
        return
    rows = []
    for model in ("rigid", "similarity", "affine"):
        for snr in _SNRS:
            for name, (tool, models) in _TOOLS.items():
                if model not in models:
                    continue
                errors, seconds = [], 0.0
                for seed in range(asked.seeds):
                    frames, truth = series(model, snr, seed, _SHAPE, count=asked.frames, turn=_LARGEST_TURN)
                    began = time.perf_counter()
                    found = tool(frames, model)
                    seconds += time.perf_counter() - began
                    errors += corner_errors(found, truth, _SHAPE)[1:].tolist()
                row = {
                    "model": model,
                    "snr": snr,
                    "tool": name,
                    "median_corner_px": float(np.median(errors)),
                    "rms_corner_px": float(np.sqrt(np.mean(np.square(errors)))),
                    "ms_a_frame": 1e3 * seconds / (asked.frames * asked.seeds),
                }
                rows.append(row)
                print(f"{model:10} SNR {snr:4g} {name:13}", *(f"{value:9.4f}" for value in list(row.values())[3:]))
    write_result("motion", {"shape": _SHAPE, "frames": asked.frames, "seeds": asked.seeds, "rows": rows})


if __name__ == "__main__":
    main()
