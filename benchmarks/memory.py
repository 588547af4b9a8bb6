"""Peak memory of `xcorr align` on a stack much larger than it may hold at once.

    python -m benchmarks.memory [--size 4] [--apply]

Writes a BigTIFF of 1024x1024 uint16 frames (64 noisy frames, repeated), runs the command on it as a
subprocess and reports the largest resident set of that process (of its largest child, where it starts any), the time
and the frames per second. Target: at most 1.5 GiB, whatever the size of the stack.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from benchmarks.harness.record import write_result
from benchmarks.pipeline.data import write_stacks

EDGE = 1024
GIB = 2**30
TARGET = 1.5
MAX_SHIFT = 16


def run_measured(command: list[str]) -> tuple[int, float, float]:
    """Run the command; return its exit code, its peak resident memory in GiB and the seconds it took."""
    started = time.perf_counter()
    child = subprocess.Popen(command)
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - started
    child.returncode = os.waitstatus_to_exitcode(status)
    unit = 1 if sys.platform == "darwin" else 1024  # macOS counts bytes, Linux KiB
    return child.returncode, usage.ru_maxrss * unit / GIB, seconds


def main() -> None:
    """Measure, print one line and write results/memory.json."""
    parser = argparse.ArgumentParser(description="Peak memory of xcorr align on a large stack.")
    parser.add_argument("--size", type=float, default=4.0, help="GiB of pixels")
    parser.add_argument("--apply", action="store_true", help="also write the registered stack (as much disk again)")
    arguments = parser.parse_args()
    apply = "--apply" if arguments.apply else "--no-apply"

    with tempfile.TemporaryDirectory() as scratch:
        frames, series = round(arguments.size * GIB / (2 * EDGE**2)), Path(scratch) / "in"
        # What this process held at most is the least the child can report on Linux: another writes the frames.
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            pool.submit(write_stacks, series, 1, frames, EDGE).result()
        command = [sys.executable, "-m", "xcorr_app", "align", str(series), "-o", str(Path(scratch) / "out"), "-q"]
        code, peak, seconds = run_measured([*command, apply, "--max-shift", str(MAX_SHIFT)])
    print(
        f"{arguments.size:g} GiB, {frames} frames, {apply}: exit code {code}, peak {peak:.2f} GiB (target {TARGET}), "
        f"{seconds:.1f} s, {frames / seconds:.1f} frames/s"
    )
    if code != 0:
        sys.exit(f"xcorr align ended with exit code {code}: no result written")
    parameters = {"size_gib": arguments.size, "frames": frames, "shape": [EDGE, EDGE], "apply": arguments.apply}
    measured = {"peak_gib": peak, "target_gib": TARGET, "seconds": seconds, "frames_per_second": frames / seconds}
    write_result("memory", {"parameters": parameters, **measured})


if __name__ == "__main__":
    main()
