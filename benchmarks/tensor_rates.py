"""Measure what the tensor cores of a Hopper GPU multiply and add: the ceilings of engine ``tensor``.

    python benchmarks/tensor_rates.py

Prints T multiply-adds/s of loops of ``wgmma`` (fragments of A fixed, and read from shared memory) and ``mma.sync``, and
of a large product of half precision matrices by PyTorch, if that is installed.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np

_TURNS = 4000
_OF_GROUP, _OF_WARP = 16 * 64 * 32 * 16, 16 * 16 * 8 * 16  # multiply-adds of a turn
_LOOPS = [(name, threads) for name in ("groups_fixed", "groups_read") for threads in (256, 384, 512)] + [("warps", 512)]


def main() -> None:
    """Time the loops, one block a multiprocessor, then the product."""
    cupy = importlib.import_module("cupy")
    blocks = cupy.cuda.Device().attributes["MultiProcessorCount"]
    module = _module(cupy)
    out = cupy.empty(blocks * 512, np.float32)
    for name, threads in _LOOPS:
        function = module.get_function(name)

        def run(turns: int, function: Any = function, threads: int = threads) -> None:
            function((blocks,), (threads,), (out, np.int32(turns)), 32768)

        run(10)
        of_turn = threads // 32 * _OF_WARP if name == "warps" else threads // 128 * _OF_GROUP
        rate = blocks * of_turn * _TURNS / _milliseconds(cupy, lambda run=run: run(_TURNS)) / 1e9
        print(f"{name:14}{threads:5} threads{rate:8.1f}")
    _print_matrix_product()


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


def _print_matrix_product(size: int = 8192, times: int = 10) -> None:
    try:
        torch = importlib.import_module("torch")
    except ImportError:
        return
    a, b = (torch.randn(size, size, device="cuda", dtype=torch.float16) for _ in range(2))
    a @ b
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(times):
        a @ b
    stop.record()
    stop.synchronize()
    taken = start.elapsed_time(stop)
    print(f"PyTorch, half precision, {size}^3{size**3 * times / taken / 1e9:8.1f}")


if __name__ == "__main__":
    main()
