"""Frames per second of registration on the CPU: this project beside scikit-image, OpenCV and pystackreg, in one run.

    python benchmarks/speed_cpu.py [--scene spots|speckle] [--frames 200] [--repeats 5] [--keep-memory]

The series is 512x512 uint16 with drift inside a maximal shift of 16 pixels. Every method gets the same frames, their
conversion from uint16 included, and all cores the process may use. Rounds are interleaved (each method once a round),
and the median of the rounds counts. A peer that is slow runs on fewer frames of the series; the table says how many.
Without pystackreg its row is left out.

The command `xcorr align` tells the C library to keep freed memory, which a library call must not do behind its caller's
back; its "measuring" rows are the stage of that name in run.json, reading the file included. `--keep-memory` does the
same to the process in which all other rows run, peers too, and writes speed_cpu_kept.json.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import cv2
import numpy as np
import scipy.fft
import tifffile
from _environment import write_result
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from skimage.registration import phase_cross_correlation

from benchmarks.conditions import make_series
from xcorr_app.cli.memory import keep_freed_memory

MAX_SHIFT = 16
DRIFT = 14.0
SNR = 5.0
UPSAMPLE = 20
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

SKIMAGE = "scikit-image, loop"
OPENCV = "OpenCV phaseCorrelate"
TARGETS = {  # row: {peer: least ratio of frames per second}
    "xcorr align --verify none, measuring": {SKIMAGE: 6.0, OPENCV: 1.2},
    "xcorr align --verify all, measuring": {SKIMAGE: 2.5},
}

Stack = NDArray[np.uint16]


@dataclass(frozen=True)
class Contestant:
    """One row: what runs, and on how many frames of the series."""

    run: Callable[[Stack], float | None]
    """Returns the seconds that count, or None for all that it took."""
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


def skimage_threads(stack: Stack) -> None:
    """Do the same with SciPy's FFT told to use all cores."""
    with scipy.fft.set_workers(CORES):
        skimage_loop(stack)


def opencv_loop(stack: Stack) -> None:
    """Run phaseCorrelate in float32, both images converted for each frame."""
    for frame in stack:
        cv2.phaseCorrelate(stack[0].astype(np.float32), frame.astype(np.float32))


def opencv_reference_once(stack: Stack) -> None:
    """Run phaseCorrelate in float32, the reference converted once."""
    reference = stack[0].astype(np.float32)
    for frame in stack:
        cv2.phaseCorrelate(reference, frame.astype(np.float32))


def pystackreg_stack(stack: Stack) -> None:
    """Register the stack to its first frame by translation."""
    from pystackreg import StackReg

    StackReg(StackReg.TRANSLATION).register_stack(stack, reference="first")


def command_line(*options: str, stage: str | None, series: Path, scratch: Path) -> Callable[[Stack], float | None]:
    """Return the whole `xcorr align` command; its time is that of one stage, or of everything with start and report."""

    def run(_: Stack) -> float | None:
        with tempfile.TemporaryDirectory(dir=scratch) as out:
            command = [sys.executable, "-m", "xcorr_app", "align", str(series), "-o", out, "-q", *options]
            command += ["--overwrite", "--max-shift", str(MAX_SHIFT)]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            record = json.loads((Path(out) / "run.json").read_text())
        return None if stage is None else float(record["stacks"]["series"]["seconds"][stage])

    return run


def contestants(frames: int, series: Path, scratch: Path) -> dict[str, Contestant]:
    """List everything that runs."""
    rows = {
        "xcorr, verify none": Contestant(ours("none"), frames),
        "xcorr, verify all": Contestant(ours("all"), frames),
        SKIMAGE: Contestant(skimage_loop, min(frames, 40)),
        "scikit-image, loop, threaded FFT": Contestant(skimage_threads, min(frames, 40)),
        OPENCV: Contestant(opencv_loop, frames),
        "OpenCV, reference converted once": Contestant(opencv_reference_once, frames),
    }
    if find_spec("pystackreg"):
        rows["pystackreg"] = Contestant(pystackreg_stack, min(frames, 8))
    place = {"series": series, "scratch": scratch}
    for verify in ("none", "all"):
        measuring = command_line("--no-apply", "--verify", verify, stage="measure", **place)
        rows[f"xcorr align --verify {verify}, measuring"] = Contestant(measuring, frames)
    rows["xcorr align, start to report"] = Contestant(command_line(stage=None, **place), frames)
    return rows


def race(rows: dict[str, Contestant], stack: Stack, repeats: int) -> dict[str, list[float]]:
    """Return frames per second of every row, one value a round; a warm-up round is not counted."""
    rates: dict[str, list[float]] = {name: [] for name in rows}
    for turn in range(repeats + 1):
        for name, row in rows.items():
            part = stack[: row.frames]
            started = time.perf_counter()
            seconds = row.run(part)
            if seconds is None:
                seconds = time.perf_counter() - started
            if turn > 0:
                rates[name].append(len(part) / seconds)
    return rates


def verdicts(medians: dict[str, float]) -> list[dict[str, Any]]:
    """Compare the ratios with their targets."""
    return [
        {"row": row, "peer": peer, "ratio": medians[row] / medians[peer], "target": target}
        for row, peers in TARGETS.items()
        for peer, target in peers.items()
    ]


def main() -> None:
    """Race, print the tables and write results/speed_cpu.json."""
    parser = argparse.ArgumentParser(description="Registration speed on the CPU, against peers.")
    parser.add_argument("--scene", choices=["spots", "speckle"], default="speckle")
    parser.add_argument("--frames", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--keep-memory", action="store_true", help="keep freed memory for all rows, peers too")
    arguments = parser.parse_args()
    if arguments.keep_memory:
        keep_freed_memory()

    stack = make_series(arguments.scene, SNR, arguments.frames - 1, largest=DRIFT).frames
    with tempfile.TemporaryDirectory() as scratch:
        series = Path(scratch) / "series.tif"
        tifffile.imwrite(series, stack, photometric="minisblack")
        rows = contestants(arguments.frames, series, Path(scratch))
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
    for verdict in verdicts(medians):
        met = "met" if verdict["ratio"] >= verdict["target"] else "MISSED"
        console.print(
            f"{verdict['row']} / {verdict['peer']}: {verdict['ratio']:.2f}, target {verdict['target']}: {met}"
        )

    parameters = {"frames": arguments.frames, "repeats": arguments.repeats, "scene": arguments.scene, "threads": CORES}
    results = {
        name: {"frames": rows[name].frames, "frames_per_second": medians[name], "rounds": rates[name]} for name in rows
    }
    write_result(
        "speed_cpu_kept" if arguments.keep_memory else "speed_cpu",
        {"parameters": parameters, "results": results, "targets": verdicts(medians)},
    )


if __name__ == "__main__":
    main()
