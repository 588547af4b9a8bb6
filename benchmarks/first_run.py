"""What a first run of ``xcorr align`` costs more than a second one, and the record of the kernels that it asks for.

``python -m benchmarks.first_run`` empties a folder of its own for kernels and runs the command twice, each time in a
process of its own (results/first_run.json), on a short stack at the defaults and on a longer one with a window that the
record does not have. With ``--record`` it writes the record from which kernels are compiled ahead: every kernel that
these runs ask for, those of CuPy as the text that it hands to the compiler.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import timeit
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tifffile
from scipy.ndimage import gaussian_filter, shift

from benchmarks.harness.record import write_result
from xcorr_app.gpu.runtime.compile_ahead import RECORD

_RECORDED = {
    "a": (40, 512, "uint16", ()),
    "b": (40, 512, "uint8", ()),
    "c": (40, 1024, "uint16", ()),
    "d": (200, 512, "uint16", ("-m", "16")),
    "e": (200, 512, "uint16", ("-m", "32")),
}
"""Frames, side, type of pixels and options of the stacks that a record is made with."""
_TIMED = {"a": _RECORDED["a"], "other": (200, 512, "uint16", ("-m", "24"))}
_LONG = 0.5
"""Seconds of compilation from which on a kernel is compiled before the others."""


def write_stacks(folder: Path) -> None:
    """Write stacks of noisy frames that drift over a scene of blobs."""
    rng = np.random.default_rng(1)
    for name, (count, side, dtype, _) in (_RECORDED | _TIMED).items():
        scene = gaussian_filter(rng.standard_normal((side + 40, side + 40)), 3)
        scene *= 60 / scene.std()
        drift = np.cumsum(rng.normal(0, 0.6, (count, 2)), axis=0).clip(-14, 14)
        frames = [shift(scene, move, order=1)[20:-20, 20:-20] + rng.normal(128, 8, (side, side)) for move in drift]
        (folder / name).mkdir()
        tifffile.imwrite(folder / name / "stack.tif", np.clip(frames, 0, 255).astype(dtype), metadata={"axes": "TYX"})


def record_kernels(folder: Path) -> None:
    """Align the stacks in this process, whose cache of kernels is empty, and write down what is compiled."""
    from xcorr_app.gpu.runtime import compile as own_compiler

    RECORD.unlink(missing_ok=True)
    use_caches(folder, "record")
    import cupy
    from cupy._core import core
    from cupy.cuda import compiler

    from xcorr_app.cli import main

    headers = "".join(f"#include <{name}>\n" for name in core._cupy_header_list)
    added = set(core.assemble_cupy_compiler_options(()))
    kernels: dict[str, tuple[float, list[Any]]] = {}
    own, of_cupy = own_compiler.cubin_of, compiler._compile_module_with_cache

    def timed(kernel: list[Any], compiled: Callable[[], Any]) -> Any:
        began, made = time.perf_counter(), compiled()
        kernels.setdefault(json.dumps(kernel), (time.perf_counter() - began, kernel))
        return made

    def cubin_of(name: str, defines: dict[str, Any]) -> Any:
        return timed([name, dict(sorted(defines.items()))], lambda: own(name, defines))

    def compile_module(source: str, options: tuple[str, ...] = (), **how: Any) -> Any:
        kernel = [source[len(headers) :], [option for option in options if option not in added]]
        recorded = source.startswith(headers) and not how.get("name_expressions")
        return (timed if recorded else lambda _, compiled: compiled())(kernel, lambda: of_cupy(source, options, **how))

    own_compiler.cubin_of, compiler._compile_module_with_cache = cubin_of, compile_module  # type: ignore[assignment]
    for name, (*_, options) in _RECORDED.items():
        main(["align", str(folder / name), "-o", str(folder / f"{name}_out"), "-q", *options], standalone_mode=False)
    ordered = [kernel for _, kernel in sorted(kernels.values(), key=lambda each: -each[0] if each[0] > _LONG else 0)]
    text = json.dumps({"cupy": cupy.__version__, "kernels": ordered})
    RECORD.write_bytes(gzip.compress(text.encode(), mtime=0))
    print(f"{len(ordered)} kernels: {RECORD}")


def use_caches(folder: Path, turn: str) -> None:
    """Let CuPy, this project and the driver keep their kernels in folders of this turn, which begins with none."""
    for name in ("CUPY_CACHE_DIR", "CUDA_CACHE_PATH"):
        os.environ[name] = str(folder / f"{name}_{turn}")


def seconds_of_a_run(folder: Path, turn: int, name: str, stack: str) -> float:
    """Align a stack in a process of its own, with the caches of this turn."""
    use_caches(folder, f"{stack}_{turn}")
    arguments = ["align", str(folder / stack), "-o", str(folder / f"{stack}_{name}_{turn}"), "-q", *_TIMED[stack][-1]]
    return timeit.timeit(lambda: subprocess.run([sys.executable, "-m", "xcorr_app", *arguments], check=True), number=1)


def main() -> None:
    """Record, or measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", action="store_true", help="write the record anew")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_stacks(folder)
        if parser.parse_args().record:
            record_kernels(folder)
            return
        seconds = {
            stack: [[seconds_of_a_run(folder, turn, run, stack) for run in ("first", "second")] for turn in range(3)]
            for stack in _TIMED
        }
    more = {stack: statistics.median(first - second for first, second in runs) for stack, runs in seconds.items()}
    print(f"first and second runs {seconds} s, medians of what the first takes more: {more} s")
    write_result("first_run", {"seconds_of_first_and_second": seconds, "median_more": more})


if __name__ == "__main__":
    main()
