"""Moving frames: time of a frame that is shifted, or warped by a matrix or a field.

Run ``python -m benchmarks.warping [--device cpu] [--json FILE]``; frames are of 512 x 512 uint16. On a GPU, of 512,
microseconds a frame: the launch alone (replayed from a graph, coefficients on the device), the whole call from frames
on the device and motions on the host by calls in a row, a copy of the same bytes, ``cupyx.scipy.ndimage`` one call a
frame; and the host's share of a call in microseconds. Cubic warping has the spline's two filters in its call, not in
its launch. Every answer is first compared with the CPU's. On the CPU, milliseconds a frame: shifts on one core beside
SciPy and OpenCV, the least of five calls.
"""

from __future__ import annotations

import importlib
import statistics
import time
import timeit
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click
import cv2
import numpy as np
import scipy.ndimage

from benchmarks.harness.clock import Clock
from benchmarks.harness.environment import environment
from benchmarks.harness.record import require_device, write_json
from xcorr_app.gpu.resample.run import translate_on_device
from xcorr_app.gpu.resample.warping import warp_on_device
from xcorr_app.registration.moving.apply import apply_shifts, shift_frames
from xcorr_app.registration.moving.interpolation import METHODS, Order
from xcorr_app.registration.warping.device_warp import splines_of
from xcorr_app.registration.warping.grid import Grid, with_edges
from xcorr_app.registration.warping.warp import warp_by_fields, warp_frames

_FRAMES, _SIDE, _TYPE = 512, 512, "uint16"
_PATCH = 64
"""Without overlap: 8 x 8 of a frame."""
_CPU_FRAMES, _PEER_FRAMES, _CHECKED = 48, 4, 4
SHIFTED: tuple[Order, ...] = (1, 3, "lanczos", "fourier")
_WARPED = {1: "linear", 3: "cubic"}
_SPLINES: dict[Order, int] = {1: 1, 3: 3}
"""Orders of SciPy's shifts beside ours; its cubic is a spline, whose taps follow a recursive filter."""
_OPENCV: dict[Order, int] = {1: cv2.INTER_LINEAR, 3: cv2.INTER_CUBIC, "lanczos": cv2.INTER_LANCZOS4}


def scene(count: int, side: int = _SIDE) -> Any:
    """Camera-like frames, some hundred to some thousand counts."""
    rng = np.random.default_rng(20240501)
    few = rng.normal(size=(min(count, 8), side, side)).astype(np.float32)
    few = rng.poisson(2000 + 4000 * scipy.ndimage.gaussian_filter(few, (0, 2, 2)).clip(-0.4, 0.4)).astype(_TYPE)
    return np.resize(few, (count, side, side))


def shifts_of(count: int) -> Any:
    """Sub-pixel shifts (T, 2) of up to 8 px."""
    return np.random.default_rng(1).uniform(-8, 8, (count, 2))


def motions(count: int, side: int) -> tuple[Any, Any, Any]:
    """Fields (T, gy, gx, 2) of some pixels with their nodes, and matrices (T, 3, 3) that turn by up to 2 degrees."""
    rng = np.random.default_rng(7)
    grid = Grid.of((side, side), _PATCH, _PATCH)
    nodes = with_edges(grid.rows), with_edges(grid.columns)
    fields = rng.normal(size=(count, nodes[0].size, nodes[1].size, 2)) + rng.uniform(-3, 3, (count, 1, 1, 2))
    angles = np.radians(rng.uniform(-2, 2, count))
    matrices = np.tile(np.eye(3), (count, 1, 1))
    matrices[:, 0, 0], matrices[:, 0, 1], matrices[:, 1, 0] = np.cos(angles), -np.sin(angles), np.sin(angles)
    matrices[:, 1, 1], matrices[:, :2, 2] = np.cos(angles), rng.uniform(-5, 5, (count, 2))
    return fields, nodes, matrices


def on_device_row(cupy: Any, clock: Clock, kind: str, order: Any, count: int = _FRAMES, side: int = _SIDE) -> Any:
    """Microseconds a frame on the device, and of a whole call on the host."""
    ndimage = importlib.import_module("cupyx.scipy.ndimage")
    frames, moves, (fields, nodes, matrices) = scene(count, side), shifts_of(count), motions(count, side)
    stack = cupy.asarray(frames)
    out, source = cupy.empty_like(stack), stack if kind == "shift" or order == 1 else stack.astype(cupy.float32)
    there = {"shift": cupy.asarray(moves), "matrix": cupy.asarray(matrices[:, :2])}
    there["field"] = splines_of(cupy.asarray(fields), nodes, frames.shape[1:])

    def call(given: Any) -> Any:
        if kind == "shift":
            return apply_shifts(given, moves[: len(given)], interpolation=order)
        if kind == "field":
            return warp_by_fields(given, fields[: len(given)], nodes, order)
        return warp_frames(given, matrices[: len(given)], order)

    def launch() -> Any:
        if kind == "shift":
            return translate_on_device(stack, there[kind], METHODS[order], outside=0.0, out=out)
        return warp_on_device(source, there[kind], stack.dtype, _WARPED[order], outside=0.0)

    off = np.abs(call(stack[:_CHECKED]).get().astype(int) - call(frames[:_CHECKED]))
    if (off > 1).mean() > (0 if kind == "shift" else 1e-3):  # places next to an edge may fall on either side
        raise AssertionError(f"device and CPU differ by {off.max()} at order {order} by a {kind}")
    row: dict[str, Any] = {"kind": kind, "order": order, "off": int(off.max()), "launch": None, "share": None}
    row["copy"] = clock.on_device(lambda: cupy.copyto(out, stack)).seconds / count * 1e6
    if kind != "shift" or order in METHODS:
        row["launch"] = clock.on_device(launch).seconds / count * 1e6
        # The copy moves two bytes either way; splines are read as float32.
        row["share"] = row["copy"] * (2 + source.dtype.itemsize) / 4 / row["launch"]
    row["call"], row["host_call"] = _calls(cupy, lambda: call(stack), count)
    row["cupyx"] = None
    if order in _SPLINES:
        places = cupy.asarray(np.mgrid[:side, :side] + np.array([1.3, -2.4])[:, None, None])
        peers = {"shift": partial(ndimage.shift, shift=(1.3, -2.4), order=order)}
        peer = peers.get(kind, partial(ndimage.map_coordinates, coordinates=places, order=order, mode="nearest"))
        row["cupyx"] = _calls(cupy, lambda: [peer(frame) for frame in stack[:_PEER_FRAMES]], _PEER_FRAMES)[0]
    return row


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


def min_ms(run: Callable[[], Any], frames: int) -> float:
    """Least time of a call by the clock, for each frame."""
    return min(timeit.repeat(run, number=1)) / frames * 1e3


def shifted_on_cpu(order: Order, count: int = _CPU_FRAMES, side: int = _SIDE) -> dict[str, Any]:
    """Milliseconds a frame on one core, beside SciPy and OpenCV."""
    frames, shifts = scene(count, side), shifts_of(count)
    some = list(zip(frames, shifts, strict=True))[:_PEER_FRAMES]
    row: dict[str, Any] = {"kind": "shift", "order": order, "scipy": None, "opencv": None}
    row["one_core"] = min_ms(lambda: shift_frames(frames, shifts, order=order, workers=1), count)
    if order in _SPLINES:
        spline = _SPLINES[order]
        row["scipy"] = min_ms(lambda: [scipy.ndimage.shift(f, s, order=spline) for f, s in some], len(some))
    if order in _OPENCV:
        threads = cv2.getNumThreads()
        cv2.setNumThreads(1)
        matrices = [np.array([[1.0, 0, dx], [0, 1.0, dy]]) for _, (dy, dx) in some]
        warp = partial(cv2.warpAffine, dsize=(side, side), flags=_OPENCV[order])
        row["opencv"] = min_ms(lambda: [warp(f, m) for (f, _), m in zip(some, matrices, strict=True)], len(some))
        cv2.setNumThreads(threads)
    return row


@click.command()
@click.option("--device", type=click.Choice(("cuda", "cpu")), default="cuda", show_default=True)
@click.option("--json", "path", type=click.Path(path_type=Path), help="Also write every number to this file.")
def main(device: str, path: Path | None) -> None:
    """Time frames that move and bend."""
    works: list[Callable[[], dict[str, Any]]]
    if device == "cpu":
        works = [partial(shifted_on_cpu, order) for order in SHIFTED]
    else:
        require_device()
        row, ways = partial(on_device_row, importlib.import_module("cupy"), Clock()), [("shift", o) for o in SHIFTED]
        works = [partial(row, *way) for way in [*ways, *((kind, o) for kind in ("field", "matrix") for o in _WARPED)]]
    rows = []
    for work in works:
        rows.append(work())
        shown = (f"{name} {f'{value:.3f}' if isinstance(value, float) else value}" for name, value in rows[-1].items())
        click.echo(", ".join(shown))
    if path is not None:
        unit = "ms" if device == "cpu" else "us"
        write_json({"environment": environment(), "unit": unit, "rows": rows}, path)


if __name__ == "__main__":
    main()
