"""Measure what tensor cores of a Hopper GPU multiply and add: their ceilings, and the products of engine ``tensor``.

    python benchmarks/tensor_rates.py

T multiply-adds/s of loops of ``wgmma`` (fragments of A fixed, and read from shared memory) and ``mma.sync``, of a large
product of half precision matrices by PyTorch, if that is installed, and of the engine's products over 512 random frames
of 512 x 512 against one image (multiply-adds of the definition, where elements outside an overlap are skipped). Writes
``results/tensor_rates.json``.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
from _environment import write_result

from benchmarks.harness.clock import Clock
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.peaks.summed_area import SummedAreaTables
from xcorr_app.gpu.runtime.limits import device_limits
from xcorr_app.gpu.tensor.bytes_run import exact_sums
from xcorr_app.gpu.tensor.hankel import hankel_launch
from xcorr_app.gpu.tensor.sums import CentredSums, FrameSums

_TURNS = 4000
_OF_GROUP, _OF_WARP = 16 * 64 * 32 * 16, 16 * 16 * 8 * 16  # multiply-adds of a turn
_LOOPS = {"wgmma, fragments fixed": "groups_fixed", "wgmma, fragments read": "groups_read", "mma.sync": "warps"}
_FRAMES, _SIDE = 512, 512


def main() -> None:
    """Time all, in one run, and write the result."""
    cupy = importlib.import_module("cupy")
    rates = {**_loops(cupy), **_matrix_product(), **_products(cupy)}
    for name, rate in rates.items():
        print(f"{name:45}{rate:8.1f}")
    print(write_result("tensor_rates", {"T_multiply_adds_per_s": rates}))


def _loops(cupy: Any) -> dict[str, float]:
    """One block a multiprocessor."""
    blocks = cupy.cuda.Device().attributes["MultiProcessorCount"]
    module = _module(cupy)
    out = cupy.empty(blocks * 512, np.float32)
    rates = {}
    for name, entry in _LOOPS.items():
        function = module.get_function(entry)
        for threads in (512,) if entry == "warps" else (256, 384, 512):

            def run(turns: int, function: Any = function, threads: int = threads) -> None:
                function((blocks,), (threads,), (out, np.int32(turns)), 32768)

            run(10)
            of_turn = threads // 32 * _OF_WARP if entry == "warps" else threads // 128 * _OF_GROUP
            seconds = _milliseconds(cupy, lambda run=run: run(_TURNS)) / 1e3
            rates[f"{name}, {threads} threads"] = blocks * of_turn * _TURNS / seconds / 1e12
    return rates


def _module(cupy: Any) -> Any:
    nvrtc = cupy.cuda.nvrtc
    path = Path(__file__).with_suffix(".cu")
    program = nvrtc.createProgram(path.read_text(encoding="utf-8"), path.name, (), ())
    nvrtc.compileProgram(program, ("-std=c++17", "-arch=sm_90a"))
    module = cupy.cuda.function.Module()
    module.load(nvrtc.getCUBIN(program))
    return module


def _milliseconds(cupy: Any, run: Any) -> float:
    start, stop = cupy.cuda.Event(), cupy.cuda.Event()
    start.record()
    run()
    stop.record()
    stop.synchronize()
    return float(cupy.cuda.get_elapsed_time(start, stop))


def _matrix_product(size: int = 8192, times: int = 10) -> dict[str, float]:
    try:
        torch = importlib.import_module("torch")
    except ImportError:
        return {}
    a, b = (torch.randn(size, size, device="cuda", dtype=torch.float16) for _ in range(2))
    a @ b
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(times):
        a @ b
    stop.record()
    stop.synchronize()
    return {f"PyTorch, half precision, {size}^3": size**3 * times / start.elapsed_time(stop) / 1e9}


def _products(cupy: Any) -> dict[str, float]:
    """Planes of sums alone: no tables, no search."""
    rng, clock, limits = cupy.random.default_rng(1), Clock(repeats=7, min_seconds=0.01), device_limits(0)
    frames = rng.standard_normal((_FRAMES, _SIDE, _SIDE), dtype=np.float32)
    image = rng.standard_normal((1, _SIDE, _SIDE), dtype=np.float32)
    pixels = rng.integers(0, 256, frames.shape, dtype=np.uint8)
    shape, types = (_SIDE, _SIDE), ("float32", "float32")
    rates = {}
    for side in (17, 32, 33):
        problem = Problem(shape, shape, (-(side // 2),) * 2, (side, side), rights=_FRAMES, rights_per_left=_FRAMES)
        window = SummedAreaTables(problem)
        tables = window.left(image), window.right(frames)
        planes = cupy.empty((_FRAMES, side, side), np.float32)
        for name, sums in (
            (
                "hankel_warpgroup",
                CentredSums(problem, hankel_launch(problem, warpgroup=True, device=limits), window.cells),
            ),
            ("hankel_frames", FrameSums(problem, types, window.cells, limits)),
        ):
            timing = clock.on_device(
                lambda sums=sums, tables=tables, planes=planes: sums(image, frames, tables, planes)
            )
            rates[f"{name}, 512^2, {side} x {side}"] = problem.products / timing.seconds / 1e12
        if side == 32:
            timing = clock.on_device(lambda problem=problem: exact_sums(problem, pixels[:1], pixels))
            rates[f"hankel_bytes, 512^2, {side} x {side}"] = problem.products / timing.seconds / 1e12
    return rates


if __name__ == "__main__":
    main()
