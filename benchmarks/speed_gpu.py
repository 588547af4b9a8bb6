"""Time `estimate_shifts` on a GPU from the call to the result: frames a second by engine, every step included.

    python benchmarks/speed_gpu.py [--frames N]

Frames of 512 x 512 lie on the device as uint16, drifting by up to 8 pixels; the search goes to +-10. What is timed is
the Python call: preparation, correlation, normalisation, peaks, quality, and the checks where they are asked for.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import cupy
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from _environment import write_result

from benchmarks.conditions import make_series
from xcorr_app import estimate_shifts


def frames_a_second(stack: cupy.ndarray, repeats: int, **options: Any) -> float:
    """Median of several calls, after two that compile and plan."""
    times = []
    for _ in range(repeats + 2):
        start = time.perf_counter()
        estimate_shifts(stack, max_shift=10, **options)
        times.append(time.perf_counter() - start)
    return len(stack) / statistics.median(times[2:])


def main() -> None:
    """Time every engine with and without weighting and checks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frames", type=int, default=512, help="frames of the stack")
    count = parser.parse_args().frames
    series = make_series("spots", 20.0, frames=16, largest=8.0).frames
    stack = cupy.asarray(np.resize(series, (count, *series.shape[1:])))
    rows = []
    for engine in ("auto", "direct", "fft"):
        for weighting, verify in (("none", "none"), ("auto", "none"), ("none", "all")):
            options = {"engine": engine, "weighting": weighting, "verify": verify}
            rate = frames_a_second(stack, 3 if verify == "all" else 5, **options)
            rows.append({**options, "frames_per_second": round(rate)})
            print(f"engine {engine:13} weighting {weighting:5} verify {verify:5} {rate:9.0f} frames/s", flush=True)
    write_result("speed_gpu", {"frames": count, "shape": [512, 512], "dtype": "uint16", "max_shift": 10, "rows": rows})


if __name__ == "__main__":
    main()
