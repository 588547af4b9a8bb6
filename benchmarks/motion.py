"""Motion that is more than a shift beside the public tools, on synthetic series with known motion: errors and times.

Run: ``python -m benchmarks.motion [--frames 4] [--seeds 2] [SECTION...]``. Without one, all sections are written to
``results/motion.json``; those that are named, to ``motion_SECTION.json``: `models` (rotation, scale, affine), `patches`
and `pairs` (displacement fields).

Of `models` turns are at most 3 degrees, because StackReg follows intensities from where the frame lies;
shifts are at most 12 px. Scales of 0.8 to 1.25, in the rows of ``similarity`` and ``affine``, are beyond what it
follows in part of the frames: there the median says more than the rms, and only ``rigid`` compares precision.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import xcorr_app as xc
from benchmarks import fields
from benchmarks.harness.record import write_result
from benchmarks.motion_peers import log_polar, rms, stackreg, timed
from tests.registration.motion.test_motion import corner_errors, series

_SHAPE = (256, 256)
_SNRS = (20.0, 5.0, 2.0, 1.0, 0.5)
_LARGEST_TURN = np.radians(3)


def _ours(frames: NDArray[np.float64], model: str) -> NDArray[np.float64]:
    return xc.estimate_motion(frames, model).matrices


_TOOLS: dict[str, tuple[Callable[[NDArray[np.float64], str], NDArray[np.float64]], tuple[str, ...]]] = {
    "xcorr": (_ours, ("rigid", "similarity", "affine")),
    "pystackreg": (stackreg, ("rigid", "similarity", "affine")),
    "scikit-image": (log_polar, ("rigid",)),
}


def models(seeds: int, frames: int) -> list[dict[str, Any]]:
    """Print and return the typical error of a corner of the frame, its rms, and the time of a frame."""
    rows = []
    for model, snr in ((model, snr) for model in ("rigid", "similarity", "affine") for snr in _SNRS):
        scenes = [series(model, snr, seed, _SHAPE, count=frames, turn=_LARGEST_TURN) for seed in range(seeds)]
        for name, (tool, known) in _TOOLS.items():
            if model not in known:
                continue
            try:
                found, each = timed(tool, [stack for stack, _ in scenes], model)
            except ImportError as error:
                print(f"{name}: {error}")
                continue
            pairs = zip(found, scenes, strict=True)
            errors = np.concatenate([corner_errors(matrices, truth, _SHAPE)[1:] for matrices, (_, truth) in pairs])
            row = {
                "model": model,
                "snr": snr,
                "tool": name,
                "median_corner_px": float(np.median(errors)),
                "rms_corner_px": rms(errors),
                "ms_a_frame": each,
            }
            rows.append(row)
            shown = (f"{value:9.4f}" for value in list(row.values())[3:])
            print(f"{model:10} SNR {snr:4g} {name:13}", *shown, flush=True)
    return rows


_SECTIONS: dict[str, Callable[[int, int], list[dict[str, Any]]]] = {
    "models": models,
    "patches": fields.patches,
    "pairs": lambda _seeds, _frames: fields.pairs(),
}


def main() -> None:
    """Print and keep the rows of the sections asked for."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--frames", type=int, default=4, help="of a series, the first of them the reference")
    arguments.add_argument("--seeds", type=int, default=2)
    arguments.add_argument("sections", nargs="*", metavar="SECTION", help=", ".join(_SECTIONS))
    asked = arguments.parse_args()
    if unknown := set(asked.sections) - set(_SECTIONS):
        arguments.error(f"unknown section {', '.join(sorted(unknown))}: use {', '.join(_SECTIONS)}")
    rows = {name: _SECTIONS[name](asked.seeds, asked.frames) for name in asked.sections or _SECTIONS}
    write_result("_".join(["motion", *asked.sections]), {"frames": asked.frames, "seeds": asked.seeds, **rows})


if __name__ == "__main__":
    main()
