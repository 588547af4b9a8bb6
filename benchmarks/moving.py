"""Moving frames: time of a frame beside a copy, SciPy's and OpenCV's shifts; on a GPU, or on this machine's cores.

On a device each row is one case and order: the launch alone (replayed from a graph, shifts on the device), the whole
call of `apply_shifts` by calls in a row, the host's share of it (until it returns), a copy of the same bytes, and
``cupyx.scipy.ndimage.shift``, one call a frame. Everything is first compared with the CPU's answer.
"""

from __future__ import annotations

import importlib
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
import cv2
import numpy as np
import scipy.ndimage

from benchmarks.harness.clock import Clock
from benchmarks.harness.environment import environment
from benchmarks.harness.record import require_device, write_json
from xcorr_app.cli.options import PATH
from xcorr_app.cli.printing.tables import console_for
from xcorr_app.cli.process import SOMETHING_FAILED, one_line_failures
from xcorr_app.gpu.resample.run import translate_on_device
from xcorr_app.gpu.runtime.select import select_device
from xcorr_app.registration.moving.apply import apply_shifts, shift_frames
from xcorr_app.registration.moving.interpolation import METHODS, Order

ORDERS: tuple[Order, ...] = (1, 3, "lanczos", "fourier")
_SPLINES: dict[Order, int] = {1: 1, 3: 3}
"""Orders of SciPy's shifts beside ours; its cubic is a spline, whose taps follow a recursive filter."""
_OPENCV: dict[Order, int] = {1: cv2.INTER_LINEAR, 3: cv2.INTER_CUBIC, "lanczos": cv2.INTER_LANCZOS4}
_CPU_FRAMES = 24
_PEER_FRAMES = 4


@dataclass(frozen=True)
class Case:
    """A stack to move."""

    frames: int
    side: int
    dtype: str

    @property
    def name(self) -> str:
        """As it is printed."""
        return f"{self.frames} x {self.side}^2 {self.dtype}"


CASES = (Case(512, 512, "uint16"), Case(2048, 256, "uint16"), Case(128, 1024, "float32"))


def scene(case: Case, count: int, seed: int = 20240501) -> tuple[Any, Any]:
    """Camera-like frames, some hundred to some thousand counts, and sub-pixel shifts of up to 8 px."""
    rng = np.random.default_rng(seed)
    few = rng.normal(size=(min(count, 8), case.side, case.side)).astype(np.float32)
    few = rng.poisson(2000 + 4000 * scipy.ndimage.gaussian_filter(few, (0, 2, 2)).clip(-0.4, 0.4)).astype(case.dtype)
    return np.resize(few, (count, case.side, case.side)), rng.uniform(-8, 8, (count, 2))


def microseconds(run: Callable[[], Any], frames: int, repeats: int = 7) -> float:
    """Median time of a call by the wall clock, for each frame."""
    run()
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        run()
        times.append(time.perf_counter() - began)
    return statistics.median(times) / frames * 1e6


def measure_on_cpu(case: Case, order: Order) -> dict[str, Any]:
    """Microseconds a frame on one core and on all, beside SciPy and OpenCV on one."""
    frames, shifts = scene(case, _CPU_FRAMES)
    out = np.empty_like(frames)
    row: dict[str, Any] = {"case": case.name, "order": order}
    row["one_core"] = microseconds(lambda: shift_frames(frames, shifts, order=order, out=out, workers=1), len(frames))
    row["all_cores"] = microseconds(lambda: shift_frames(frames, shifts, order=order, out=out), len(frames))
    row["scipy"] = row["opencv"] = None
    some = list(zip(frames, shifts, strict=True))[:_PEER_FRAMES]
    if order in _SPLINES:
        spline = _SPLINES[order]
        row["scipy"] = microseconds(lambda: [scipy.ndimage.shift(f, s, order=spline) for f, s in some], len(some))
    if order in _OPENCV:
        threads, flag = cv2.getNumThreads(), _OPENCV[order]
        cv2.setNumThreads(1)

        def warp() -> None:
            for frame, (dy, dx) in some:
                cv2.warpAffine(frame, np.array([[1.0, 0, dx], [0, 1.0, dy]]), frame.shape[::-1], flags=flag)

        row["opencv"] = microseconds(warp, len(some))
        cv2.setNumThreads(threads)
    return row


def measure_on_device(case: Case, order: Order, clock: Clock) -> dict[str, Any]:
    """Microseconds a frame on the device, and of a whole call on the host."""
    cupy = importlib.import_module("cupy")
    ndimage = importlib.import_module("cupyx.scipy.ndimage")
    frames, shifts = scene(case, case.frames)
    stack, moves = cupy.asarray(frames), cupy.asarray(shifts)
    out = cupy.empty_like(stack)
    row: dict[str, Any] = {"case": case.name, "order": order, "off": _difference(stack, frames, shifts, order)}
    row["launch"] = row["cupyx"] = None
    count = case.frames
    if order in METHODS:
        method = METHODS[order]
        run = lambda: translate_on_device(stack, moves, method, outside=0.0, out=out)  # noqa: E731
        row["launch"] = clock.on_device(run).seconds / count * 1e6
    call = lambda: apply_shifts(stack, shifts, interpolation=order)  # noqa: E731
    row["call"], row["host_call"] = _calls(cupy, call, count)
    row["copy"] = clock.on_device(lambda: cupy.copyto(out, stack)).seconds / count * 1e6
    if order in _SPLINES:
        spline = _SPLINES[order]
        some = list(zip(stack, shifts, strict=True))[:_PEER_FRAMES]
        peers = lambda: [ndimage.shift(f, s, order=spline, output=o) for (f, s), o in zip(some, out, strict=False)]  # noqa: E731
        row["cupyx"] = _calls(cupy, peers, len(some))[0]
    return row


def _difference(stack: Any, frames: Any, shifts: Any, order: Order) -> float:
    """Largest difference between device and CPU over some frames, over their range; a wrong answer is an error."""
    found = apply_shifts(stack, shifts, interpolation=order)[:_PEER_FRAMES].get().astype(np.float64)
    expected = apply_shifts(frames[:_PEER_FRAMES], shifts[:_PEER_FRAMES], interpolation=order).astype(np.float64)
    off = float(np.abs(found - expected).max())
    limit = 1.0 if frames.dtype.kind != "f" else 1e-5 * float(np.abs(frames).max())
    if off > limit:
        raise AssertionError(f"device and CPU differ by {off} at order {order}")
    return off


def _calls(cupy: Any, run: Callable[[], Any], frames: int, repeats: int = 20) -> tuple[float, float]:
    """Microseconds a frame of calls in a row, and microseconds until a call returns to an idle device's host."""
    for _ in range(3):
        run()
    cupy.cuda.Device().synchronize()
    began = time.perf_counter()
    for _ in range(repeats):
        run()
    cupy.cuda.Device().synchronize()
    whole = (time.perf_counter() - began) / repeats
    hosts = []
    for _ in range(repeats):
        began = time.perf_counter()
        run()
        hosts.append(time.perf_counter() - began)
        cupy.cuda.Device().synchronize()
    return whole / frames * 1e6, statistics.median(hosts) * 1e6


_COLUMNS = {
    "cpu": ("one_core", "all_cores", "scipy", "opencv"),
    "cuda": ("launch", "call", "copy", "cupyx", "host_call"),
}


@click.command()
@click.option("--quick", is_flag=True, help="Only 512 x 512 of uint16.")
@click.option("--device", default="cuda", show_default=True, help="cuda, cuda:N or cpu.")
@click.option("--json", "json_path", type=PATH, metavar="FILE", help="Also write every number to this file.")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def moving(quick: bool, device: str, json_path: Path | None, debug: bool) -> None:
    """Time moving frames beside a copy and the shifts of SciPy, CuPy and OpenCV; microseconds a frame.

    host_call is the whole call's time on the host, until it returns, in microseconds. Answers of the device are
    compared with the CPU's first.

    \b
    Examples:
      python -m benchmarks moving --json moving.json
      python -m benchmarks moving --device cpu --quick
    """
    console = console_for(sys.stdout)
    with one_line_failures(SOMETHING_FAILED, debug=debug):
        kind = "cpu" if device == "cpu" else "cuda"
        status = None if kind == "cpu" else require_device()
        select_device(device)
        rows = []
        columns = _COLUMNS[kind]
        say = lambda text: console.print(text, soft_wrap=True, markup=False, highlight=False)  # noqa: E731
        say(f"{'us a frame':24}{'order':>9}" + "".join(f"{name:>11}" for name in columns))
        for case in CASES[: 1 if quick else None]:
            for order in ORDERS:
                row = measure_on_cpu(case, order) if kind == "cpu" else measure_on_device(case, order, Clock())
                rows.append(row)
                times = ("-" if row[name] is None else f"{row[name]:.3f}" for name in columns)
                say(f"{case.name:24}{order!s:>9}" + "".join(f"{text:>11}" for text in times))
        if json_path is not None:
            described = None if status is None else asdict(status)
            write_json({"environment": environment(), "device": described, "unit": "us", "rows": rows}, json_path)
            say(f"Written: {json_path}")
