"""Frames per second of registration on the CPU: this project beside scikit-image, OpenCV and pystackreg, in one run.

    python -m benchmarks.speed_cpu [--frames 200] [--repeats 5]

The series is 512x512 uint16 with drift inside a maximal shift of 16 pixels. Every method gets the same frames, their
conversion from uint16 included, and all cores the process may use. Rounds are interleaved (each method once a round),
and the median of the rounds counts. A peer that is slow runs on fewer frames of the series; the table says how many.
Without pystackreg its row is left out.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Literal

import cv2
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from skimage.registration import phase_cross_correlation

from benchmarks.conditions import make_series
from benchmarks.harness.record import write_result

MAX_SHIFT = 16
DRIFT = 14.0
SNR = 5.0
UPSAMPLE = 20
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

SKIMAGE = "scikit-image, loop"
OPENCV = "OpenCV phaseCorrelate"
Stack = NDArray[np.uint16]


@dataclass(frozen=True)
class Contestant:
    """One row: what runs, and on how many frames of the series."""

    run: Callable[[Stack], None]
    frames: int


def ours(verify: Literal["all", "none"]) -> Callable[[Stack], None]:
    """Return this project's estimate_shifts with that verification."""
    from xcorr_app import estimate_shifts

    def run(stack: Stack) -> None:
        estimate_shifts(stack, reference="first", max_shift=MAX_SHIFT, verify=verify)

    return run


def skimage_loop(stack: Stack) -> None:
    """Run phase_cross_correlation frame by frame, as its documentation shows."""
    for frame in stack:
        phase_cross_correlation(stack[0], frame, upsample_factor=UPSAMPLE)


def opencv_loop(stack: Stack) -> None:
    """Run phaseCorrelate in float32, both images converted for each frame."""
    for frame in stack:
        cv2.phaseCorrelate(stack[0].astype(np.float32), frame.astype(np.float32))


def pystackreg_stack(stack: Stack) -> None:
    """Register the stack to its first frame by translation."""
    from pystackreg import StackReg

    StackReg(StackReg.TRANSLATION).register_stack(stack, reference="first")


def contestants(frames: int) -> dict[str, Contestant]:
    """List everything that runs."""
    rows = {
        "xcorr, verify none": Contestant(ours("none"), frames),
        "xcorr, verify all": Contestant(ours("all"), frames),
        SKIMAGE: Contestant(skimage_loop, min(frames, 40)),
        OPENCV: Contestant(opencv_loop, frames),
    }
    if find_spec("pystackreg"):
        rows["pystackreg"] = Contestant(pystackreg_stack, min(frames, 8))
    return rows


def race(rows: dict[str, Contestant], stack: Stack, repeats: int) -> dict[str, list[float]]:
    """Return frames per second of every row, one value a round; a warm-up round is not counted."""
    rates: dict[str, list[float]] = {name: [] for name in rows}
    for turn in range(repeats + 1):
        for name, row in rows.items():
            part = stack[: row.frames]
            started = time.perf_counter()
            row.run(part)
            if turn > 0:
                rates[name].append(len(part) / (time.perf_counter() - started))
    return rates


def main() -> None:
    """Race, print the tables and write results/speed_cpu.json."""
    parser = argparse.ArgumentParser(description="Registration speed on the CPU, against peers.")
    parser.add_argument("--frames", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()

    stack = make_series("speckle", SNR, arguments.frames - 1, largest=DRIFT).frames
    rows = contestants(arguments.frames)
    rates = race(rows, stack, arguments.repeats)
    medians = {name: statistics.median(values) for name, values in rates.items()}

    table = Table(title=f"{arguments.frames} frames 512x512 uint16, max shift {MAX_SHIFT}, {CORES} threads")
    for column in ("method", "frames", "frames/s", "spread", f"x {SKIMAGE}", f"x {OPENCV}"):
        table.add_column(column, justify="left" if column == "method" else "right")
    for name, values in rates.items():
        spread = f"{min(values):.0f} to {max(values):.0f}"
        ratios = (f"{medians[name] / medians[peer]:.2f}" for peer in (SKIMAGE, OPENCV))
        table.add_row(name, str(rows[name].frames), f"{medians[name]:.1f}", spread, *ratios)
    console = Console(width=120)
    console.print(table)
    parameters = {"frames": arguments.frames, "repeats": arguments.repeats, "threads": CORES}
    results = {
        name: {"frames": rows[name].frames, "frames_per_second": medians[name], "rounds": rates[name]} for name in rows
    }
    write_result("speed_cpu", {"parameters": parameters, "results": results})


if __name__ == "__main__":
    main()
