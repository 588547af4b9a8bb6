"""Frames per second of registration on the CPU: this project beside scikit-image, OpenCV and pystackreg, in one run.

    python -m benchmarks.speed_cpu [--frames 200] [--repeats 5]

The series is 512x512 uint16 with drift inside a maximal shift of 16 pixels. Every method gets the same frames, their
conversion from uint16 included, and all cores the process may use. Rounds are interleaved (each method once a round),
and the median of the rounds counts. A peer that is slow runs on fewer frames of the series; the table says how many.
Without pystackreg its row is left out.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from benchmarks._peers import PEERS, Method, skimage_phase
from benchmarks.conditions import make_series
from benchmarks.harness.record import write_result
from xcorr_app import estimate_shifts
from xcorr_app.system import worker_count

MAX_SHIFT = 16
DRIFT = 14.0
SNR = 5.0
SKIMAGE = "scikit-image, loop"
OPENCV = "OpenCV phaseCorrelate"
Stack = NDArray[np.uint16]


def loop(method: Method, stack: Stack) -> None:
    """Register frame by frame to the first."""
    for frame in stack:
        method(stack[0], frame, MAX_SHIFT)


def opencv_loop(stack: Stack) -> None:
    """Run phaseCorrelate in float32, both images converted for each frame."""
    for frame in stack:
        cv2.phaseCorrelate(stack[0].astype(np.float32), frame.astype(np.float32))


def contestants(frames: int) -> dict[str, tuple[Callable[[Stack], Any], int]]:
    """List everything that runs, and on how many frames of the series."""
    ours = partial(estimate_shifts, reference="first", max_shift=MAX_SHIFT)
    rows: dict[str, tuple[Callable[[Stack], Any], int]] = {
        "xcorr, verify none": (partial(ours, verify="none"), frames),
        "xcorr, verify all": (partial(ours, verify="all"), frames),
        SKIMAGE: (partial(loop, skimage_phase), min(frames, 40)),
        OPENCV: (opencv_loop, frames),
    }
    return rows | (
        {"pystackreg": (partial(loop, PEERS["pystackreg"]), min(frames, 8))} if find_spec("pystackreg") else {}
    )


def main() -> None:
    """Race, print the table and write results/speed_cpu.json."""
    parser = argparse.ArgumentParser(description="Registration speed on the CPU, against peers.")
    parser.add_argument("--frames", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()

    stack = make_series("speckle", SNR, arguments.frames - 1, largest=DRIFT).frames
    rows, threads = contestants(arguments.frames), worker_count()
    rates: dict[str, list[float]] = {name: [] for name in rows}
    for _ in range(arguments.repeats + 1):
        for name, (run, frames) in rows.items():
            started = time.perf_counter()
            run(stack[:frames])
            rates[name].append(frames / (time.perf_counter() - started))
    rates = {name: rounds[1:] for name, rounds in rates.items()}  # the first warms up
    medians = {name: statistics.median(rounds) for name, rounds in rates.items()}

    table = Table(title=f"{arguments.frames} frames 512x512 uint16, max shift {MAX_SHIFT}, {threads} threads")
    for column in ("method", "frames", "frames/s", "spread", f"x {SKIMAGE}", f"x {OPENCV}"):
        table.add_column(column, justify="left" if column == "method" else "right")
    for name, rounds in rates.items():
        spread = f"{min(rounds):.0f} to {max(rounds):.0f}"
        ratios = (f"{medians[name] / medians[peer]:.2f}" for peer in (SKIMAGE, OPENCV))
        table.add_row(name, str(rows[name][1]), f"{medians[name]:.1f}", spread, *ratios)
    Console(width=120).print(table)
    parameters = {"frames": arguments.frames, "repeats": arguments.repeats, "threads": threads}
    results = {
        name: {"frames": rows[name][1], "frames_per_second": medians[name], "rounds": rates[name]} for name in rows
    }
    write_result("speed_cpu", {"parameters": parameters, "results": results})


if __name__ == "__main__":
    main()
