"""The real sets of ../shared/data at default options, beside loops over scikit-image and OpenCV, in one run.

    python -m benchmarks.real [--repeats 3] [--only TEXT] [--no-commands]

Of each set: seconds by the clock and of processor time, all threads and children together, of `estimate_shifts`, of
that without nuisances (`base`: correlation, sub-pixel fit, standard error), of the peers' loops over the same frames,
and of the whole command `xcorr align`, start and report included. The least of the repeats counts, which take turns;
one thread of BLAS each, in commands as many as they take.
Written to results/real.json.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tifffile
from rich.console import Console
from rich.table import Table

import xcorr_app as xc
from benchmarks._peers import opencv_phase, skimage_phase
from benchmarks.board.measure import base_alone
from benchmarks.board.real import REAL
from benchmarks.board.scenes import Series
from benchmarks.harness.record import as_installed, write_result
from xcorr_app.registration.one_blas_thread import one_blas_thread

Seconds = tuple[float, float]
"""By the clock, and of processor time."""


def timed(work: Callable[[], Any]) -> Seconds:
    """Seconds of a call or of a command."""

    def now() -> Seconds:
        return time.perf_counter(), time.process_time() + sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])

    began = now()
    with one_blas_thread():  # those that wait for each other count as work
        work()
    wall, cpu = (after - before for after, before in zip(now(), began, strict=True))
    return wall, cpu


def calls(many: list[Series]) -> dict[str, Callable[[], Any]]:
    """Return what is timed within this process, of all series of a set."""

    def loop(peer: Callable[..., Any]) -> Callable[[], Any]:
        return lambda: [peer(series.frames[0], frame, 0) for series in many for frame in series.frames[1:]]

    return {
        "call": lambda: [xc.estimate_shifts(series.frames, **series.options) for series in many],
        "base": lambda: [base_alone(series, "first") for series in many],
        "scikit-image": loop(skimage_phase),
        "OpenCV": loop(opencv_phase),
    }


def command(many: list[Series], folder: Path) -> Callable[[], Any]:
    """Return the command that aligns the series of a set, written to a folder first."""
    source = folder / "stacks"
    source.mkdir(parents=True)
    for number, series in enumerate(many):
        tifffile.imwrite(source / f"series{number}.tif", series.frames, photometric="minisblack")
    words = [sys.executable, "-m", "xcorr_app", "align", str(source), "-o", str(folder / "out"), "-q", "--overwrite"]
    words += [f"--{name.replace('_', '-')}={value}" for name, value in many[0].options.items()]
    # Exit code 1 is a stack that was flagged.
    return lambda: subprocess.run(words, check=False, capture_output=True, env=as_installed())


def main() -> None:
    """Time the sets, print them as they come, and write the record."""
    parser = argparse.ArgumentParser(description="Real sets beside peers.")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", default="", help="sets whose name contains this text")
    parser.add_argument("--no-commands", action="store_true", help="leave whole commands out")
    arguments = parser.parse_args()
    rows = dict[str, dict[str, Any]]()
    for case in REAL:
        many = case.series(0) if arguments.only in case.name and "masked" not in case.name else []
        if not many:
            continue
        with tempfile.TemporaryDirectory() as folder:
            works = calls(many) | ({} if arguments.no_commands else {"command": command(many, Path(folder))})
            rounds = [{name: timed(work) for name, work in works.items()} for _ in range(arguments.repeats)]
        best = {name: min((each[name] for each in rounds), key=lambda seconds: seconds[1]) for name in works}
        figures = {name: {"seconds": round(wall, 4), "cpu_s": round(cpu, 4)} for name, (wall, cpu) in best.items()}
        frames = [len(series.frames) for series in many]
        rows[case.name.removeprefix("real/")] = {"frames": sum(frames), "shape": many[0].frames.shape[1:], **figures}
    Console(width=140).print(table(rows))
    if not arguments.only and not arguments.no_commands:
        write_result("real", {"repeats": arguments.repeats, "rows": rows})


def table(rows: dict[str, dict[str, Any]]) -> Table:
    """Lay all sets out, and their sum."""
    out = Table(title="CPU milliseconds (by the clock), all frames of a set")
    timings = [name for name, each in next(iter(rows.values())).items() if isinstance(each, dict)]
    for title in ("set", "frames", *timings, "call / base", "call / scikit-image"):
        out.add_column(title, justify="right", no_wrap=True)
    total = {
        name: {key: sum(row[name][key] for row in rows.values()) for key in ("seconds", "cpu_s")} for name in timings
    }
    total["frames"] = sum(row["frames"] for row in rows.values())
    for name, row in [*rows.items(), ("together", total)]:
        cells = [f"{1e3 * row[each]['cpu_s']:.0f} ({1e3 * row[each]['seconds']:.0f})" for each in timings]
        over = [f"{row['call']['cpu_s'] / row[other]['cpu_s']:.1f}" for other in ("base", "scikit-image")]
        out.add_row(name, str(row["frames"]), *cells, *over)
    return out


if __name__ == "__main__":
    main()
