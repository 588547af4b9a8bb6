"""Seconds of the first `xcorr align` on a machine, with no kernel compiled, and of the second.

Run on a machine with an NVIDIA GPU: ``python -m benchmarks.first_run [--list]``. Two stacks of 100 frames of 512 x 512
uint16, the command whole, at its defaults, with an empty folder for compiled kernels. Written to
results/first_run.json. ``--list`` measures nothing: it writes kernels/first_run.json, what defaults ask for at
several sizes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import tifffile
from scipy.ndimage import gaussian_filter

from benchmarks._environment import write_result
from xcorr_app.gpu.runtime import compile as compiling
from xcorr_app.gpu.runtime.types import INPUT_TYPES

_SIZES = ((200, 200), (256, 256), (300, 400), (512, 512), (1024, 1024), (2048, 2048))
_COMMAND = "from xcorr_app.cli import main; main()"
_IN_MOST = 3
"""Of these sizes at which a kernel is asked for that is worth compiling ahead."""
_SLOWEST = ("tile_verdict", "rated_peak", "hankel_warpgroup", "near_peak", "combined", "frame_peaks", "summed_area")


def _write_stack(path: Path, frames: int, shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    scene = gaussian_filter(rng.normal(size=(shape[0] + 40, shape[1] + 40)), 2)
    scene = (scene - scene.min()) / np.ptp(scene) * 3000 + 200
    places = rng.integers(10, 30, (frames, 2))
    stack = np.stack([scene[y : y + shape[0], x : x + shape[1]] for y, x in places])
    path.parent.mkdir(exist_ok=True)
    tifffile.imwrite(path, rng.normal(stack, 20).astype(np.uint16), photometric="minisblack")


def _asked_for(folder: Path) -> list[tuple[str, dict[str, Any]]]:
    """Kernels that the command asks for at most of the sizes, the slowest to compile first."""
    asked: Counter[tuple[str, tuple[tuple[str, Any], ...]]] = Counter()
    for number, shape in enumerate(_SIZES):
        _write_stack(folder / str(number) / "stack.tif", 30, shape)
        file = folder / f"{number}.json"
        script = (
            "import json, sys; from xcorr_app.gpu.runtime import compile as c; found = []; own = c._kernel\n"
            "def kernel(name, defines, *rest): found.append((name, defines)); return own(name, defines, *rest)\n"
            "c._kernel = kernel; from xcorr_app.cli import main\n"
            f"try: main()\nfinally: json.dump(found, open({str(file)!r}, 'w'))"
        )
        subprocess.run(
            [sys.executable, "-c", script, "align", folder / str(number), "-o", folder / f"{number}_out"], check=True
        )
        for name, defines in json.loads(file.read_text()):
            pixels = INPUT_TYPES["uint16"]
            of_pixels = ((key, compiling.PIXELS if value == pixels else value) for key, value in defines)
            asked[name, tuple(of_pixels)] += 1
    most = [kernel for kernel, times in asked.items() if times >= _IN_MOST]
    return [(name, dict(defines)) for name, defines in sorted(most, key=lambda kernel: (_rank(kernel[0]), kernel))]


def _rank(name: str) -> int:
    return next((rank for rank, slow in enumerate(_SLOWEST) if name.endswith(slow)), len(_SLOWEST))


def main() -> None:
    """Measure, or write the list."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true")
    only_list = parser.parse_args().list
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        if only_list:
            lines = ",\n".join(json.dumps(kernel) for kernel in _asked_for(folder))
            (compiling.kernel_root() / compiling.COMMON).write_text(f"[\n{lines}\n]\n")
            return
        for name in ("a", "b"):
            _write_stack(folder / "in" / f"{name}.tif", 100, (512, 512))
        seconds = []
        for run in ("first", "second", "third"):
            began = time.perf_counter()
            subprocess.run(
                [sys.executable, "-c", _COMMAND, "align", folder / "in", "-o", folder / run],
                env={**os.environ, "CUPY_CACHE_DIR": str(folder / "kernels")},
                check=True,
            )
            seconds.append(time.perf_counter() - began)
            print(f"{run} run: {seconds[-1]:.1f} s")
        write_result("first_run", {"seconds": seconds})


if __name__ == "__main__":
    main()
