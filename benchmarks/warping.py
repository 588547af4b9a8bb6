"""Frames that bend: time of a frame warped by a field or a matrix, and measured by patches.

Run ``python -m benchmarks.warping [--device cpu] [--json FILE]``. On the CPU: milliseconds a frame of 512 x 512
uint16, by the clock and of processor time of all threads, the least of several calls; other work on the machine
changes the latter less. The aim is 100 frames/s measured and warped, linearly, on two cores. On a GPU, rows of
warping, microseconds a frame of 512 frames of 512 x 512 uint16: the launch alone (replayed from a graph, coefficients
on the device), the whole call from frames on the device and fields on the host by calls in a row, a copy of the same
bytes, ``cupyx.scipy.ndimage`` one call a frame; and the host's share of a call in microseconds. `cubic` has the
spline's two filters in its call, not in its launch. Rows of measuring: whole calls of `estimate_motion` on frames on
the device, 8 x 8 patches. The aims are 3 us a frame warped and 6 us measured. Every answer is first compared with the
CPU's.
"""

from __future__ import annotations

import functools
import importlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np

import xcorr_app as xc
from benchmarks.harness.clock import Clock
from benchmarks.harness.environment import environment
from benchmarks.harness.record import require_device, write_json
from benchmarks.moving import Case as Stack
from benchmarks.moving import _calls, scene
from tests.registration.motion.test_motion import series
from tests.registration.patches.test_motion_patches import bent
from xcorr_app.gpu.resample.warping import warp_on_device
from xcorr_app.registration.warping.device_warp import splines_of
from xcorr_app.registration.warping.grid import Grid, with_edges
from xcorr_app.registration.warping.warp import warp_by_fields, warp_frames

_STACK = Stack(512, 512, "uint16")
_PATCH = 64
"""Without overlap: 8 x 8 of a frame."""
_CPU_FRAMES = 48
_METHODS = {1: "linear", 3: "cubic"}
_CHECKED = 4
_MEASURED = (512, 4096)
"""Frames: what is made of the reference, once a call, is shared by all."""
_TURNING, _FITTED = 8, 256
"""Frames of a series that turns, and of the stack that is made of them."""


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


def warping(cupy: Any, clock: Clock, order: int, kind: str) -> dict[str, Any]:
    """Microseconds a frame on the device, and of a whole call on the host."""
    ndimage = importlib.import_module("cupyx.scipy.ndimage")
    frames, _ = scene(_STACK, _STACK.frames)
    stack, count = cupy.asarray(frames), _STACK.frames
    fields, nodes, matrices = motions(count, _STACK.side)
    if kind == "field":
        call = lambda given, n=count: warp_by_fields(given[:n], fields[:n], nodes, order)  # noqa: E731
        motion: Any = splines_of(cupy.asarray(fields), nodes, frames.shape[1:])
    else:
        call = lambda given, n=count: warp_frames(given[:n], matrices[:n], order)  # noqa: E731
        motion = cupy.asarray(matrices[:, :2])
    off = np.abs(call(stack, _CHECKED).get().astype(int) - call(frames, _CHECKED))
    if (off > 1).mean() > 1e-3:  # places next to an edge may fall on either side
        raise AssertionError(f"device and CPU differ by {off.max()} at order {order} by a {kind}")
    source = stack if order == 1 else stack.astype(cupy.float32)
    out = cupy.empty_like(stack)
    launch = lambda: warp_on_device(source, motion, stack.dtype, _METHODS[order], outside=0.0)  # noqa: E731
    row: dict[str, Any] = {"kind": kind, "order": order}
    row["launch"] = clock.on_device(launch).seconds / count * 1e6
    row["call"], row["host_call"] = _calls(cupy, lambda: call(stack), count)
    row["copy"] = clock.on_device(lambda: cupy.copyto(out, stack)).seconds / count * 1e6
    places = cupy.asarray(np.mgrid[: _STACK.side, : _STACK.side] + np.array([1.3, -2.4])[:, None, None])
    peer = lambda: [ndimage.map_coordinates(frame, places, order=order, mode="nearest") for frame in stack[:8]]  # noqa: E731
    row["cupyx"] = _calls(cupy, peer, 8)[0]
    # The copy moves two bytes either way; splines are read as float32.
    row["floor"] = row["copy"] * (2 + source.dtype.itemsize) / 4
    row["share"] = row["floor"] / row["launch"]
    return row


@functools.cache
def _few_bending() -> Any:
    frames, _ = bent(1, 2.0, amplitude=5.0, count=8, shape=(_STACK.side, _STACK.side), periods=0.7)
    return ((frames - frames.min()) * 200).astype(_STACK.dtype)


def bending(count: int) -> Any:
    """Frames of a camera at SNR 2, the first of them the reference, that bend by up to 5 px."""
    frames = _few_bending()
    return np.concatenate([frames[:1], np.resize(frames[1:], (count - 1, *frames.shape[1:]))])


def min_ms(run: Callable[[], Any], frames: int, repeats: int = 5) -> tuple[float, float]:
    """Least time of a call by the clock, and least processor time, for each frame."""
    times = []
    for _ in range(repeats):
        began = time.perf_counter(), time.process_time()
        run()
        times.append((time.perf_counter() - began[0], time.process_time() - began[1]))
    wall, processor = np.min(times, axis=0) / frames * 1e3
    return float(wall), float(processor)


def on_cpu() -> list[dict[str, Any]]:
    """Milliseconds a frame, measured by patches of two sizes and warped by the fields found."""
    rows, frames = [], bending(_CPU_FRAMES)
    for patch, overlap in ((_PATCH, 0.0), (128, 0.5)):
        measure = lambda p=patch, o=overlap: xc.estimate_motion(frames, "patches", patch=p, patch_overlap=o)  # noqa: E731
        found = measure()
        row: dict[str, Any] = {"patch": patch, "overlap": overlap}
        row["measured"], row["measured_cpu"] = min_ms(measure, len(frames))
        for order, method in _METHODS.items():
            warp = lambda f=found, o=order: f.apply(frames, o)  # noqa: E731
            row[method], row[f"{method}_cpu"] = min_ms(warp, len(frames))
        row["frames_a_second"] = 1e3 / (row["measured"] + row["linear"])
        rows.append(row)
        shown = [f"{name} {row[name]:.2f} ({row[name + '_cpu']:.2f})" for name in ("measured", *_METHODS.values())]
        click.echo(f"patches of {patch}, overlap {overlap:g}: {', '.join(shown)} ms a frame (of processor time)")
        click.echo(f"measured and warped linearly: {row['frames_a_second']:.0f} frames/s")
    return rows


def measuring(cupy: Any, count: int, options: dict[str, Any]) -> dict[str, Any]:
    """Microseconds a frame of a whole call, once what the first one compiles is there."""
    frames = bending(count)
    stack = cupy.asarray(frames)
    here, there = (xc.estimate_motion(given[:8], "patches", **options) for given in (frames, stack))
    assert here.field is not None
    assert there.field is not None
    off = float(np.abs(there.field.shifts - here.field.shifts).max())
    if off > 0.02:
        raise AssertionError(f"device and CPU differ by {off} px")
    seconds = min(_seconds(lambda: xc.estimate_motion(stack, "patches", **options)) for _ in range(4))
    return {"kind": "measured", "options": options, "frames": count, "call": seconds / count * 1e6, "off_px": off}


def fitting(cupy: Any, model: str) -> dict[str, Any]:
    """Microseconds a frame of a whole call on frames that turn, and by how much corners differ from the CPU's."""
    few, _ = series(model, 5, 3, shape=(_STACK.side, _STACK.side), count=_TURNING)
    few = ((few - few.min()) * 2000).astype(_STACK.dtype)
    frames = np.concatenate([few[:1], np.resize(few[1:], (_FITTED - 1, *few.shape[1:]))])
    stack = cupy.asarray(frames)
    here, there = (xc.estimate_motion(given[:_TURNING], model) for given in (frames, stack))
    off = float(np.abs((there.matrices - here.matrices)[:, :2] @ [_STACK.side, _STACK.side, 1.0]).max())
    if off > 0.02 or here.flags != there.flags:
        raise AssertionError(f"device and CPU differ by {off} px: {here.flags}, {there.flags}")
    seconds = min(_seconds(lambda: xc.estimate_motion(stack, model)) for _ in range(3))
    return {"kind": model, "frames": _FITTED, "call": seconds / _FITTED * 1e6, "off_px": off}


def _seconds(run: Callable[[], Any]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def on_device() -> list[dict[str, Any]]:
    """Microseconds a frame."""
    require_device()
    cupy, rows = importlib.import_module("cupy"), []
    columns = ("launch", "call", "copy", "cupyx", "host_call", "share")
    click.echo(f"{'us a frame':18}" + "".join(f"{name:>11}" for name in columns))
    for kind in ("field", "matrix"):
        for order in _METHODS:
            rows.append(row := warping(cupy, Clock(), order, kind))
            click.echo(f"{kind + ' ' + _METHODS[order]:18}" + "".join(f"{row[name]:11.3f}" for name in columns))
    for options in ({"patch": _PATCH, "patch_overlap": 0.0}, {}):
        for count in _MEASURED:
            rows.append(row := measuring(cupy, count, options))
            shown = "8 x 8 patches" if options else "default patches"
            click.echo(
                f"{count} frames measured by {shown}: {row['call']:.1f} us a frame, off by {row['off_px']:.1g} px"
            )
    for model in ("rigid", "similarity", "affine"):
        rows.append(row := fitting(cupy, model))
        click.echo(f"{model}: {row['call']:.0f} us a frame, off by {row['off_px']:.1g} px")
    return rows


@click.command()
@click.option("--device", type=click.Choice(("cuda", "cpu")), default="cuda", show_default=True)
@click.option("--json", "path", type=click.Path(path_type=Path), help="Also write every number to this file.")
def main(device: str, path: Path | None) -> None:
    """Time frames that bend."""
    if device == "cpu":
        rows, unit = on_cpu(), "ms"
    else:
        rows, unit = on_device(), "us"
    if path is not None:
        write_json({"environment": environment(), "unit": unit, "rows": rows}, path)


if __name__ == "__main__":
    main()
