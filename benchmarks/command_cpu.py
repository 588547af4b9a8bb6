"""Frames per second of the whole command `xcorr align` on the CPU, from start to the last file, with parts left out.

    python -m benchmarks.command_cpu [--frames 2000] [--side 512] [--repeats 2] [--only TEXT] [--name NAME]

One stack of uint16 that drifts by up to 7 pixels, `--max-shift 16`, on all cores the process may use (`taskset`
for fewer). Of each row the fastest round counts; beside frames a second by the clock stand the CPU time of a frame,
start included, which other work on the machine hardly changes, and the largest resident set. Written to
results/command_cpu.json, or command_cpu_NAME.json.
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

from rich.console import Console

from benchmarks.harness.record import as_installed, write_result
from benchmarks.pipeline.data import write_stacks

_PLAIN = ("--report", "none")
ROWS: dict[str, tuple[str, ...]] = {
    "default": (),
    "quick report": ("--report", "quick"),
    "no report": _PLAIN,
    "no report, unchecked": (*_PLAIN, "--verify", "none"),
    "measured only, unchecked": (*_PLAIN, "--verify", "none", "--no-apply"),
    "measured only, every frame checked": (*_PLAIN, "--verify", "all", "--no-apply"),
    "measured only, unchecked, window of a quarter": (*_PLAIN, "--verify", "none", "--no-apply", "--max-shift", "128"),
}


def run_once(source: Path, options: tuple[str, ...]) -> tuple[float, float, float]:
    """Seconds by the clock and of CPU that a command takes, and GiB that it holds at most."""
    with tempfile.TemporaryDirectory(dir=source.parent) as out:
        command = [sys.executable, "-m", "xcorr_app", "align", str(source), "-o", out, "-q", "--overwrite"]
        command += ["--device", "cpu", "--max-shift", "16", *options]
        began = time.perf_counter()
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=as_installed())
        _, status, usage = os.wait4(child.pid, 0)
        if status:
            raise SystemExit(f"{' '.join(command)} ended with {os.waitstatus_to_exitcode(status)}")
        return time.perf_counter() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 2**20


def main() -> None:
    """Time the rows in turns, print them as they come, and write the record."""
    parser = argparse.ArgumentParser(description="The whole command on the CPU.")
    parser.add_argument("--frames", type=int, default=2000)
    parser.add_argument("--side", type=int, default=512)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--name", help="write results/command_cpu_NAME.json")
    parser.add_argument("--only", default="", help="rows whose name contains this text")
    arguments = parser.parse_args()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    console, rounds = Console(width=120), {name: [] for name in ROWS if arguments.only in name}
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "stacks"
        # What this process held at most is the least that a child can report: another writes the frames.
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            pool.submit(write_stacks, source, 1, arguments.frames, arguments.side).result()
        for turn in range(arguments.repeats):
            for name, times in rounds.items():
                times.append(run_once(source, ROWS[name]))
                seconds, cpu, held = times[-1]
                rate = (
                    f"{arguments.frames / seconds:6.1f} frames/s, {1e3 * cpu / arguments.frames:.2f} ms of CPU a frame"
                )
                console.print(f"round {turn}, {cores} cores, {name}: {rate}, {held:.2f} GiB")
    rows = {
        name: {
            "frames_per_second": round(arguments.frames / min(seconds for seconds, *_ in times), 1),
            "cpu_ms_per_frame": round(1e3 * min(cpu for _, cpu, _ in times) / arguments.frames, 3),
            "peak_gib": round(max(held for *_, held in times), 3),
            "rounds": times,
        }
        for name, times in rounds.items()
    }
    name = f"command_cpu_{arguments.name}" if arguments.name else "command_cpu"
    write_result(name, {"frames": arguments.frames, "side": arguments.side, "cores": cores, "rows": rows})


if __name__ == "__main__":
    main()
