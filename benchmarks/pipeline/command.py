"""``python -m benchmarks pipeline``: whole commands, their frames a second, and which stage set the pace."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.harness.environment import environment
from benchmarks.harness.record import as_installed, write_json
from benchmarks.pipeline.cases import Case, Size, cases
from benchmarks.pipeline.data import frames_of, write_stacks
from benchmarks.pipeline.raw import decode_rate, read_rate, write_rate
from xcorr_app.system import worker_count

_READERS, _WRITERS = 8, 8
_FRAMES_READ = 250
"""Of a stack, for the raw rate of reading."""


def run_pipeline(console: Console, size: Size, only: Sequence[str], device: str, json_path: Path | None) -> None:
    """Time the cases whose names contain one of the texts `only`, or all, beside the raw rates of the run.

    A file of results that is there already, of the same machine and versions, keeps its other cases.
    """
    about = {"benchmark": "pipeline", "device": device, "environment": environment()}
    known = _cases_of(json_path, about) if json_path is not None and json_path.is_file() else {}
    with tempfile.TemporaryDirectory(prefix="xcorr-pipeline-") as name:
        folder = Path(name)
        raw = _raw_rates(folder, size)
        console.print("raw rates, frames/s: " + ", ".join(f"{what} {rate:.0f}" for what, rate in raw.items()))
        for case in cases(folder):
            if any(text in case.name for text in only or [""]):
                result = _timed(case, folder, size, device, raw)
                _print(console, result)
                known[case.name] = result | {"size": vars(size), "raw": raw}
                if json_path is not None:  # case by case: who stops it keeps what was measured
                    write_json(about | {"cases": list(known.values())}, json_path)


def _cases_of(path: Path, about: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Cases of an earlier run by name, if it was one of the same machine and versions."""
    record = json.loads(path.read_text())
    then, now = ({**each["environment"], "date": None, "commit": None} for each in (record, about))
    same = (then, record["device"]) == (now, about["device"])
    return {case["case"]: case for case in record["cases"]} if same else {}


def _raw_rates(folder: Path, size: Size) -> dict[str, float]:
    """Frames a second."""
    source = folder / "raw"
    write_stacks(source, min(size.stacks, _READERS), min(size.frames, _FRAMES_READ), size.side)
    frame = size.side**2 * 2
    total = min(size.stacks * size.frames * frame, 1 << 30)
    rates = {
        f"read by {_READERS} threads": read_rate(sorted(source.iterdir()), _READERS) / frame,
        f"write and sync by {_WRITERS}": write_rate(folder, total, _WRITERS) / frame,
        f"inflate by {worker_count()}": decode_rate(frames_of(size.side, 0)[0], worker_count()),
    }
    shutil.rmtree(source)
    return rates


def _timed(case: Case, folder: Path, size: Size, device: str, raw: dict[str, float]) -> dict[str, Any]:
    """Seconds for all frames and for twice as many, once a run before has left kernels and page cache warm."""
    seconds, frames, record, out = [], [], {}, folder / "out"
    for times in (1, 2):
        source = folder / f"in{times}"
        frames.append(case.make(source, replace(size, stacks=size.stacks * times)))
        if times == 1:
            _run(case.command, source, out, device)
        of_run, record = _run(case.command, source, out, device)
        seconds.append(of_run)
        shutil.rmtree(out)
        shutil.rmtree(source)
    # On a busy machine twice as much may take less time: then there is no rate.
    more = seconds[1] - seconds[0]
    marginal = (frames[1] - frames[0]) / more if more > 0 else None
    bound = next(rate for what, rate in raw.items() if what.startswith(case.bound.replace("decode", "inflate")))
    return {
        "case": case.name,
        "command": " ".join(case.command),
        "frames": frames[0],
        "seconds": round(seconds[0], 3),
        "seconds_twice": round(seconds[1], 3),
        "frames_per_second_whole": round(frames[0] / seconds[0], 1),
        "frames_per_second_marginal": None if marginal is None else round(marginal, 1),
        "share_of_raw": None if marginal is None else round(marginal / bound, 4),
        "timings": record["timings"],
    }


def _run(command: tuple[str, ...], source: Path, out: Path, device: str) -> tuple[float, dict[str, Any]]:
    """Seconds of a command, and what it recorded."""
    shutil.rmtree(out, ignore_errors=True)
    words = [sys.executable, "-m", "xcorr_app", *command, str(source), "-o", str(out), "--device", device, "-q"]
    begin = time.perf_counter()
    process = subprocess.run(words, capture_output=True, text=True, check=False, env=as_installed())
    seconds = time.perf_counter() - begin
    if process.returncode not in (0, 1) or not (out / "run.json").exists():
        raise RuntimeError(f"{' '.join(words)} failed: {process.stdout[-500:]}{process.stderr[-500:]}")
    record: dict[str, Any] = json.loads((out / "run.json").read_text())
    return seconds, record


def _print(console: Console, result: dict[str, Any]) -> None:
    marginal, share = result["frames_per_second_marginal"], result["share_of_raw"]
    rate = "not measurable" if marginal is None else f"{marginal:.0f} frames/s, {share:.2f} of the raw rate"
    console.print(
        f"{result['case']}: W {result['seconds']:.2f} s ({result['frames_per_second_whole']:.0f} frames/s), "
        f"R {rate}; the pace was set by {result['timings']['pace']}"
    )
    table = Table(box=None, pad_edge=False)
    for heading in ("stage", "busy", "waited for", "GB", "GB/s"):
        table.add_column(heading, justify="left" if heading == "stage" else "right")
    for name, stage in result["timings"]["stages"].items():
        rate = stage["gigabytes_per_second"]
        numbers = (f"{stage['busy_seconds']:.2f} s", f"{stage['waited_seconds']:.2f} s", f"{stage['gigabytes']:.3g}")
        table.add_row(f"  {name}", *numbers, "" if rate is None else f"{rate:.2f}")
    console.print(table)
