"""Motion that is more than a shift beside the public tools, on synthetic series with known motion: errors and times.

Run: ``python -m benchmarks.motion [--frames 4] [--seeds 2] [SECTION...]``. Without one, all sections are written to
``results/motion.json``; those that are named, to ``motion_SECTION.json``: `models` (rotation, scale, affine), `patches`
and `pairs` (displacement fields).

Of `models` turns are at most 3 degrees, because StackReg follows intensities from where the frame lies;
shifts are at most 12 px. Scales of 0.8 to 1.25, in the rows of ``similarity`` and ``affine``, are beyond what it
follows in part of the frames: there the median says more than the rms, and only ``rigid`` compares precision.

Of `patches` suite2p's non-rigid registration, jnormcorre and ours get the same noisy reference, the
first frame, patches of 128 pixels and 6 px that a patch may be away from its frame; errors are those of the field at
every pixel but 16 along the edges. Times follow a first call, which compiles jnormcorre. OpenPIV gets the same window
and step; its single pass looks for a window in one of the same size, or in an area of 64 pixels as ours does. On its
own image pair both are compared with the field that comes with it, at those of its vectors that it does not flag. Tools
that are not installed are left out, and said so.
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import itertools
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import RegularGridInterpolator

import xcorr_app as xc
from benchmarks.harness.record import write_result
from benchmarks.motion_peers import log_polar, normcorre, rms, stackreg, suite2p, timed
from tests.registration.field.test_displacement_field import pair, truth
from tests.registration.motion.test_motion import corner_errors, series
from tests.registration.patches.test_motion_patches import bent, waves

_SHAPE, _WIDE = (256, 256), (512, 512)
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


_RIM = 16
_PAIR = Path(__file__).resolve().parents[2] / "shared" / "data" / "openpiv_test1"
_PIXELS_A_MM = 96.52
_HOW: dict[str, dict[str, Any]] = {"xcorr": {}, "xcorr icgn": {"refine": "icgn"}, "xcorr one pass": {"passes": 1}}


def _patches(frames: NDArray[np.float32]) -> NDArray[np.float64]:
    field = xc.estimate_motion(frames, "patches").field
    assert field is not None
    return np.stack([np.moveaxis(field.at_pixels(t, _WIDE), 2, 0) for t in range(len(frames))])


_BENDING = {"xcorr": _patches, "suite2p": suite2p, "jnormcorre": normcorre}


def patches(seeds: int, frames: int) -> list[dict[str, Any]]:
    """Print and return the rms errors of fields to 5 px, one and half a period a frame."""
    measured = []
    for periods, snr in ((periods, snr) for periods in (1.0, 0.5) for snr in _SNRS):
        scenes = [bent(seed, snr, amplitude=5.0, count=frames, shape=_WIDE, periods=periods) for seed in range(seeds)]
        for name, tool in _BENDING.items():
            try:
                found, each = timed(tool, [stack for stack, _ in scenes])
            except ImportError as error:
                print(f"{name}: {error}")
                continue
            errors = [of_one - shifts for of_one, (_, shifts) in zip(found, scenes, strict=True)]
            off = rms(np.array(errors)[:, 1:, :, _RIM:-_RIM, _RIM:-_RIM])
            measured.append({"periods": periods, "snr": snr, "tool": name, "rms_px": off, "ms_a_frame": each})
            print(f"movie {periods:g} SNR {snr:4g} {name:14} rms {off:7.4f} px {each:8.1f} ms", flush=True)
    return measured


def _our_field(first: NDArray[np.float64], second: NDArray[np.float64], **how: Any) -> Any:
    found = xc.displacement_field(first, second, **how)
    return found, found.displacement


def _openpiv(first: NDArray[np.float64], second: NDArray[np.float64]) -> Any:
    from openpiv import windef

    settings = windef.PIVSettings()
    settings.windowsizes, settings.overlap, settings.num_iterations = (64, 32, 32), (32, 16, 16), 3
    images = [((image - image.min()) / np.ptp(image) * 255).astype(np.int32) for image in (first, second)]
    x, y, u, v, _ = windef.first_pass(*images, settings)
    u, v = (np.ma.masked_array(part, np.zeros(part.shape, bool)) for part in (u, v))
    for number in (1, 2):
        x, y, u, v, _, _ = windef.multipass_img_deform(*images, number, x, y, u, v, settings)
    return types.SimpleNamespace(rows=y[:, 0], columns=x[0]), np.ma.filled(np.ma.stack([v, u], axis=2), np.nan)


def _one_pass(area: int) -> Any:
    """OpenPIV's own single pass: windows of 32 pixels every 16, looked for in areas of so many, as it is by default."""

    def measure(first: NDArray[np.float64], second: NDArray[np.float64]) -> Any:
        from openpiv import pyprocess

        images = [((image - image.min()) / np.ptp(image) * 255).astype(np.int32) for image in (first, second)]
        u, v, _ = pyprocess.extended_search_area_piv(*images, 32, area - 16, search_area_size=area)
        x, y = pyprocess.get_coordinates(first.shape, area, area - 16)
        return types.SimpleNamespace(rows=y[:, 0], columns=x[0]), np.stack([v, u], axis=2)

    return measure


def _tools() -> dict[str, Any]:
    """What measures a pair, by its name; windows of 32 pixels, every 16."""
    peers = {"openpiv one pass": _one_pass(32), "openpiv one pass in 64": _one_pass(64), "openpiv": _openpiv}
    ours = {name: functools.partial(_our_field, **how) for name, how in _HOW.items()}
    return ours | (peers if importlib.util.find_spec("openpiv") else {})


def _flow(tools: dict[str, Any]) -> list[dict[str, Any]]:
    """The image pair of OpenPIV against the field that it ships, in millimetres of 96.52 pixels, rows upwards."""
    if not _PAIR.is_dir():
        print(f"{_PAIR.name}: not there")
        return []
    first, second = (xc.read_stack(_PAIR / f"exp1_001_{name}.bmp").data.squeeze().astype(float) for name in "ab")
    table = np.loadtxt(_PAIR / "test_data.vec")
    places = np.stack([first.shape[0] - table[:, 1] * _PIXELS_A_MM, table[:, 0] * _PIXELS_A_MM], axis=1)
    vectors = np.stack([-table[:, 3], table[:, 2]], axis=1) * _PIXELS_A_MM
    good, rows = table[:, 4] == 0, []
    for name in [name for name in ("xcorr", "openpiv") if name in tools]:
        grid, found = tools[name](first, second)
        lookup = RegularGridInterpolator((np.sort(grid.rows), grid.columns), found[np.argsort(grid.rows)])
        error = (lookup(places) - vectors)[good]
        rms, median = float(np.sqrt(np.mean(error**2))), float(np.median(np.abs(error)))
        rows.append({"scene": _PAIR.name, "tool": name, "rms_px": rms, "median_px": median, "vectors": int(good.sum())})
        print(f"{_PAIR.name} {name:14} rms {rms:7.4f} px, median {median:7.4f} px", flush=True)
    return rows


def pairs() -> list[dict[str, Any]]:
    """Print and return the rms errors of the displacement between two images, and the least times of four."""
    measured: list[dict[str, Any]] = []
    displacement, tools = waves(_WIDE, 1, 4.0, 0.5) + np.array([1.4, -3.2])[:, None, None], _tools()
    for noise, (name, measure) in itertools.product((0.02, 0.2), tools.items()):
        images, times = pair(1, displacement, noise), []
        for _ in range(4):
            began = np.array([time.perf_counter(), time.process_time()])
            grid, found = measure(*images)
            times.append([time.perf_counter(), time.process_time()] - began)
        rms = float(np.sqrt(np.nanmean((found - truth(displacement, grid))[1:-1, 1:-1] ** 2)))
        seconds, cpu = np.min(times, axis=0).tolist()
        measured.append({"noise": noise, "tool": name, "rms_px": rms, "seconds": seconds, "cpu_s": cpu})
        print(f"pair noise {noise:4g} {name:22} rms {rms:7.4f} px {seconds:7.3f} s, CPU {cpu:7.3f} s", flush=True)
    return measured + _flow(tools)


_SECTIONS: dict[str, Callable[[int, int], list[dict[str, Any]]]] = {
    "models": models,
    "patches": patches,
    "pairs": lambda _seeds, _frames: pairs(),
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
