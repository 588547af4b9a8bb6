"""Public calls on arrays in device memory, whole: microseconds a frame, in ``benchmarks/results/calls.json``.

Run on a machine with an NVIDIA GPU: ``python -m benchmarks.calls``. Frames are cut from one textured scene, so that
each moves by whole pixels; the best of several calls is kept, each waited for.
"""

from __future__ import annotations

import importlib
import timeit
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.ndimage import gaussian_filter

import xcorr_app as xc
from benchmarks.harness.record import write_result

_STACKS = ((512, 512), (2048, 256), (128, 1024))
"""Frames, and pixels along a side."""
_UNCHECKED: dict[str, Any] = {"contrast": "none", "verify": "none"}
_CALLS: dict[str, dict[str, Any]] = {
    "weighting none": {**_UNCHECKED, "weighting": "none"},
    "weighting auto": _UNCHECKED,
    "every frame checked": {"contrast": "none", "verify": "all"},
    "defaults": {},
}


def _stack(cupy: Any, frames: int, side: int) -> Any:
    rng = np.random.default_rng(0)
    scene = gaussian_filter(rng.normal(size=(side + 64, side + 64)), 2)
    scene = ((scene - scene.min()) / np.ptp(scene) * 3000 + 200).astype(np.uint16)
    places = rng.integers(20, 36, (frames, 2))
    return cupy.asarray(np.stack([scene[y : y + side, x : x + side] for y, x in places]))


def _best(cupy: Any, call: Callable[[], Any], times: int) -> float:
    def waited_for() -> None:
        call()
        cupy.cuda.Device().synchronize()

    waited_for()  # compiles
    return min(timeit.repeat(waited_for, number=1, repeat=times))


def main() -> None:
    """Measure, print and keep."""
    cupy = importlib.import_module("cupy")
    rows = []
    for frames, side in _STACKS:
        stack = _stack(cupy, frames, side)
        for name, how in _CALLS.items():
            seconds = _best(cupy, lambda stack=stack, how=how: xc.estimate_shifts(stack, max_shift=16, **how), 4)
            rows.append({"frames": frames, "side": side, "call": name, "us_a_frame": 1e6 * seconds / frames})
            print(f"{frames:5} x {side:4}^2  {name:20} {rows[-1]['us_a_frame']:8.1f} us a frame")
    left, right = cupy.random.rand(300, 200, dtype="float32"), cupy.random.rand(50, 300, 200, dtype="float32")
    zncc = _best(cupy, lambda: xc.cross_correlate(left, right, "one-to-many", 11), 20)
    print(f"cross_correlate, ZNCC, 50 of 300 x 200 against one, +-11: {1e6 * zncc:.0f} us")
    write_result("calls", {"estimate_shifts": rows, "cross_correlate_zncc_us": 1e6 * zncc})


if __name__ == "__main__":
    main()
