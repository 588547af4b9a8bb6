"""Time every variant of the correlation kernels beside batched FFTs, on one GPU, in one run.

    python benchmarks/correlation_kernels.py [--check] [--sweep] [--only TEXT] [--json FILE]

Every variant is first compared with the definition in float64 on odd sizes, with poisoned outputs. Then each case is
timed as replays of a captured graph (no host time), median of several, beside padded batched FFTs through CuPy and
PyTorch. The FP32 FMA rate is measured in the same run; a full plane of HxW counts (HW)^2 FMA, a window
(2 Sy + 1)(2 Sx + 1) HW.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import statistics
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path

import cupy
import numpy as np
from scipy.fft import next_fast_len

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from xcorr_app.gpu.compile import kernel_function
from xcorr_app.gpu.correlation_launch import VARIANTS, launch_of
from xcorr_app.gpu.correlation_problem import Problem
from xcorr_app.gpu.correlation_run import correlate_on_device
from xcorr_app.gpu.device import cuda_status

FMA_SOURCE = r"""
extern "C" __global__ void __launch_bounds__(256) fma_rate(float* out, float a, float b, int rounds) {
    float s[32];
    #pragma unroll
    for (int i = 0; i < 32; ++i) s[i] = threadIdx.x + i;
    for (int r = 0; r < rounds; ++r) {
        #pragma unroll
        for (int k = 0; k < 8; ++k)
            #pragma unroll
            for (int i = 0; i < 32; ++i) s[i] = fmaf(s[i], a, b);
    }
    float t = 0;
    #pragma unroll
    for (int i = 0; i < 32; ++i) t += s[i];
    out[blockIdx.x * 256 + threadIdx.x] = t;
}
"""


@dataclass
class Case:
    """One row of the benchmark: a problem, what it is called and which variants run it."""

    name: str
    problem: Problem
    variants: tuple[str, ...]
    window: bool = False
    target: str = ""

    def fma(self) -> float:
        """Multiply-adds of the whole batch, counted as the documentation says."""
        (left_h, left_w), (right_h, right_w) = self.problem.left_shape, self.problem.right_shape
        if self.window:
            return float(self.problem.pairs) * np.prod(self.problem.plane_shape, dtype=float) * right_h * right_w
        return float(self.problem.pairs) * left_h * left_w * right_h * right_w


@dataclass
class Timing:
    """Result of one variant or peer on one case."""

    case: str
    what: str
    microseconds_a_pair: float
    fraction_of_fma_rate: float
    registers: int = 0
    local_bytes: int = 0
    tuning: dict[str, int] = field(default_factory=dict)


def window(size: int, most: int, **batch: int) -> Problem:
    """Problem of square matrices and a symmetric window of shifts."""
    return Problem((size, size), (size, size), (-most, -most), (2 * most + 1, 2 * most + 1), **batch)


def full(size: int, **batch: int) -> Problem:
    """Problem of square matrices and the full plane."""
    return Problem.full_plane((size, size), (size, size), **batch)


SIMPLE = ("overlap-wise", "warp-shuffle", "warp-shuffle-distributed", "multi-right", "multi-row")
CASES = [
    Case("n-to-m 16x16 256^2", full(256, lefts=16, rights=16, rights_per_left=16),
         ("combined", "row-product"), target="0.75 F"),
    Case("ablation, n-to-m 4x4 256^2", full(256, lefts=4, rights=4, rights_per_left=4),
         (*SIMPLE, "multi-left-right", "combined", "row-product")),
    Case("one-to-many 1x256 256^2", full(256, rights=256, rights_per_left=256),
         ("multi-right", "combined", "row-product"), target="0.70 F"),
    Case("one-to-one 256^2", full(256), (*SIMPLE, "combined", "row-product"), target="0.50 F"),
    Case("one-to-one 16^2", full(16), (*SIMPLE, "shift-per-warp", "combined", "row-product"), target="2.0 us"),
    Case("one-to-one 32^2", full(32), (*SIMPLE, "shift-per-warp", "combined", "row-product"), target="3.5 us"),
    Case("one-to-one 64^2", full(64), (*SIMPLE, "shift-per-warp", "combined", "row-product"), target="8 us"),
    Case("256 frames 512^2 +-8", window(512, 8, lefts=256), ("combined",), window=True, target="0.60 F"),
    Case("n-to-mn 16384 x 32^2", full(32, lefts=16384, rights=16384), ("combined", "row-product"), target="1.8x FFT"),
    Case("n-to-mn 16384 x 64^2 +-16", window(64, 16, lefts=16384, rights=16384), ("combined",), window=True,
         target="1.5x FFT"),
    Case("n-to-mn 4096 x 64^2", full(64, lefts=4096, rights=4096), ("combined", "row-product")),
]  # fmt: skip


def definition(left: np.ndarray, right: np.ndarray, problem: Problem) -> np.ndarray:
    """Plane of one pair in float64, shift by shift."""
    left, right = left.astype(np.float64), right.astype(np.float64)
    plane = np.zeros(problem.plane_shape)
    for iy, ix in np.ndindex(*problem.plane_shape):
        dy, dx = problem.first_shift[0] + iy, problem.first_shift[1] + ix
        y0, y1 = max(0, -dy), min(right.shape[0], left.shape[0] - dy)
        x0, x1 = max(0, -dx), min(right.shape[1], left.shape[1] - dx)
        if y1 > y0 and x1 > x0:
            plane[iy, ix] = np.vdot(left[y0 + dy : y1 + dy, x0 + dx : x1 + dx], right[y0:y1, x0:x1])
    return plane


def check() -> float:
    """Compare every variant with the definition; return the largest relative error, raise above 1e-5."""
    rng = np.random.default_rng(7)
    problems = [
        Problem.full_plane((33, 65), (31, 63), lefts=2, rights=3, rights_per_left=3),
        Problem.full_plane((100, 37), (45, 101)),
        Problem((65, 64), (33, 100), (-9, -120), (40, 222), lefts=3, rights=9, rights_per_left=3),
        Problem((1, 1), (3, 2), (-3, -3), (7, 7)),
    ]
    worst = 0.0
    for problem in problems:
        for dtype in ("float32", "uint8", "uint16", "int16") if problem is problems[0] else ("float32",):
            low = 0 if dtype.startswith("u") else -120
            lefts = rng.integers(low, 250, (problem.lefts, *problem.left_shape)).astype(dtype)
            rights = rng.integers(low, 250, (problem.rights, *problem.right_shape)).astype(dtype)
            if dtype == "float32":
                lefts = (lefts + rng.random(lefts.shape)).astype(dtype)
            expected = np.stack(
                [
                    definition(lefts[k // problem.rights_per_left], rights[k % problem.rights], problem)
                    for k in range(problem.pairs)
                ]
            )
            for variant in VARIANTS:
                if variant == "multi-left-right" and not problem.shared_rights:
                    continue
                out = cupy.full((problem.pairs, *problem.plane_shape), cupy.nan, "float32")
                correlate_on_device(cupy.asarray(lefts), cupy.asarray(rights), problem, variant, out=out)
                error = float(np.linalg.norm(out.get() - expected) / np.linalg.norm(expected))
                assert error < 1e-5, (variant, problem, dtype, error)
                worst = max(worst, error)
    return worst


def replay_seconds(work, *, least_seconds: float = 0.02, replays: int = 9) -> float:
    """Median time of one call of `work`, from replays of a graph that holds several of them."""
    stream = cupy.cuda.Stream(non_blocking=True)
    start, stop = cupy.cuda.Event(), cupy.cuda.Event()

    def timed(run) -> float:
        start.record(stream)
        run()
        stop.record(stream)
        stop.synchronize()
        return cupy.cuda.get_elapsed_time(start, stop) / 1e3

    with stream:
        work()
        stream.synchronize()
        once = timed(work)
        calls = max(1, min(200, int(least_seconds / max(once, 1e-6))))
        stream.begin_capture()
        for _ in range(calls):
            work()
        graph = stream.end_capture()
        graph.launch(stream)
        stream.synchronize()
        times = [timed(lambda: graph.launch(stream)) / calls for _ in range(replays if calls > 1 else 3)]
    return statistics.median(times)


def event_seconds(work, *, replays: int = 9) -> float:
    """Median time of one call of `work` between events, for work that a graph cannot capture."""
    start, stop = cupy.cuda.Event(), cupy.cuda.Event()
    times = []
    for _ in range(replays + 3):
        start.record()
        work()
        stop.record()
        stop.synchronize()
        times.append(cupy.cuda.get_elapsed_time(start, stop) / 1e3)
    return statistics.median(times[3:])


def fma_rate(multiprocessors: int) -> float:
    """FP32 multiply-adds a second, sustained."""
    kernel = cupy.RawKernel(FMA_SOURCE, "fma_rate")
    blocks, rounds = multiprocessors * 8 * 16, 400
    out = cupy.empty(blocks * 256, "float32")
    arguments = (out, cupy.float32(0.999), cupy.float32(0.001), cupy.int32(rounds))
    seconds = event_seconds(lambda: kernel((blocks,), (256,), arguments))
    return blocks * 256 * rounds * 8 * 32 / seconds


def empty_kernel_seconds() -> float:
    """Time of a kernel that does nothing, replayed like the others: the floor of the smallest cases."""
    kernel = cupy.RawKernel('extern "C" __global__ void empty() {}', "empty")
    return replay_seconds(lambda: kernel((64,), (128,), ()))


def matrices(problem: Problem):
    """Random float32 lefts and rights of a problem on the device."""
    rng = cupy.random.default_rng(1)
    lefts = rng.random((problem.lefts, *problem.left_shape), dtype="float32")
    return lefts, rng.random((problem.rights, *problem.right_shape), dtype="float32")


def time_variant(case: Case, variant: str, rate: float, tuning: dict[str, int]) -> Timing:
    """Time one variant on one case."""
    lefts, rights = matrices(case.problem)
    out = cupy.empty((case.problem.pairs, *case.problem.plane_shape), "float32")
    seconds = replay_seconds(lambda: correlate_on_device(lefts, rights, case.problem, variant, tuning=tuning, out=out))
    launch = launch_of(variant, case.problem, tuning=tuning)
    kernel = kernel_function(launch.kernel, launch.defines, launch.shared_bytes)
    fraction = case.fma() / seconds / rate
    pair = seconds * 1e6 / case.problem.pairs
    return Timing(case.name, variant, pair, fraction, kernel.num_regs, kernel.local_size_bytes, dict(tuning))


def torch_graph(torch, work):
    """Twenty calls of `work` as one graph; returns what replays it."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            work()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(20):
            work()
    return graph.replay


def time_peers(case: Case, rate: float) -> list[Timing]:
    """Time zero-padded batched FFTs on one case: forward of both, product, inverse."""
    problem = case.problem
    lefts, rights = matrices(problem)
    grid = [left + right - 1 for left, right in zip(problem.left_shape, problem.right_shape, strict=True)]
    if case.window:
        grid = [n - first for n, first in zip(problem.left_shape, problem.first_shift, strict=True)]
    grid = [next_fast_len(n, real=True) for n in grid]
    pairing = (problem.lefts, problem.rights // (1 if problem.shared_rights else problem.lefts))

    def planes(library, a, b):
        left, right = library.fft.rfft2(a, s=grid), library.fft.rfft2(b, s=grid)
        left = left[:, None]
        right = right[None] if problem.shared_rights else right.reshape(*pairing, *right.shape[1:])
        return library.fft.irfft2(left * right.conj(), s=grid)

    def timing(name: str, seconds: float) -> Timing:
        return Timing(case.name, name, seconds * 1e6 / problem.pairs, case.fma() / seconds / rate)

    # A pair alone costs more host time than device time: replay a graph there, as for the kernels.
    clock = replay_seconds if problem.pairs == 1 else event_seconds
    results = [timing("cuFFT through CuPy", clock(lambda: planes(cupy, lefts, rights)))]
    cupy.get_default_memory_pool().free_all_blocks()
    try:
        import torch
    except ImportError:
        return results
    a, b = torch.as_tensor(lefts, device="cuda"), torch.as_tensor(rights, device="cuda")
    work = torch_graph(torch, lambda: planes(torch, a, b)) if problem.pairs == 1 else lambda: planes(torch, a, b)
    calls = 20 if problem.pairs == 1 else 1
    start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    times = []
    for _ in range(12):
        start.record()
        work()
        stop.record()
        stop.synchronize()
        times.append(start.elapsed_time(stop) / 1e3 / calls)
    results.append(timing("cuFFT through PyTorch", statistics.median(times[3:])))
    torch.cuda.empty_cache()
    return results


TILE = ("TILE_X", "TILE_Y", "WARPS_X", "WARPS_Y", "WARPS_K", "MIN_BLOCKS", "CHUNK_ROWS", "CHUNK_COLUMNS", "SEGMENTS")
ROW = ("BLOCK", "PAIRS", "SHIFT_ROWS", "CHUNK_ROWS", "MIN_BLOCKS")
SWEEP = {
    "n-to-m 16x16 256^2": ((32, 2, 64, 64, 3), (32, 1, 64, 64, 8), (32, 2, 64, 32, 4), (32, 1, 128, 64, 4)),
    "one-to-one 256^2": ((8, 8, 4, 2, 1, 2, 32, 256, 4), (8, 8, 4, 2, 1, 2, 32, 256, 16)),
    "one-to-one 16^2": ((4, 4, 1, 1, 8, 2, 16, 16, 1), (4, 4, 1, 1, 16, 1, 16, 16, 1), (2, 2, 1, 1, 4, 4, 16, 16, 1)),
    "one-to-one 32^2": ((8, 4, 1, 1, 4, 4, 32, 32, 1), (4, 4, 1, 1, 8, 2, 32, 32, 1)),
    "one-to-one 64^2": ((8, 8, 1, 1, 8, 2, 64, 64, 1), (8, 4, 1, 2, 4, 2, 32, 64, 1)),
    "256 frames 512^2 +-8": (
        (17, 6, 1, 3, 2, 2, 32, 128), (17, 6, 1, 3, 4, 1, 64, 128), (17, 9, 1, 2, 4, 1, 64, 128)),
    "n-to-mn 16384 x 32^2": ((32, 8, 16, 32, 4), (32, 4, 32, 32, 3), (32, 2, 32, 32, 8)),
    "n-to-mn 16384 x 64^2 +-16": (
        (33, 3, 1, 4, 1, 3, 64, 64), (33, 3, 1, 6, 1, 2, 64, 64), (33, 3, 1, 3, 1, 4, 64, 64)),
    "n-to-mn 4096 x 64^2": ((32, 4, 32, 64, 3), (32, 2, 64, 64, 3), (32, 2, 32, 64, 8)),
}  # fmt: skip


def sweep_tunings(case: Case) -> list[tuple[str, dict[str, int]]]:
    """Return the tunings worth a try on a case, the table's own first."""
    tries: list[tuple[str, dict[str, int]]] = [(variant, {}) for variant in case.variants]
    for values in SWEEP.get(case.name, ()):
        variant, names = ("row-product", ROW) if len(values) == len(ROW) else ("combined", TILE)
        tries.append((variant, dict(zip(names, values, strict=False))))
    return tries


def line(timing: Timing) -> str:
    """One row of the printed table."""
    values = " ".join(str(value) for value in timing.tuning.values())
    return (
        f"{timing.case:26} {timing.what:24} {timing.microseconds_a_pair:10.3f} us {timing.fraction_of_fma_rate:6.3f} F "
        f"{timing.registers:4d} regs {timing.local_bytes:3d} local {values}"
    )


def main() -> None:
    """Run the benchmark and print its table; the numbers go into a JSON file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sweep", action="store_true", help="also try the tunings listed in this file")
    parser.add_argument("--only", default="", help="cases whose name contains this text")
    parser.add_argument("--json", type=Path, default=Path(__file__).parent / "results" / "correlation_kernels.json")
    parser.add_argument("--check", action="store_true", help="only compare with the definition (for compute-sanitizer)")
    options = parser.parse_args()
    status = cuda_status()
    assert status.available, status.reason
    if options.check:
        cupy.cuda.set_allocator(None)  # no pool: every array has its own bounds
        print(f"every variant within {check():.1e} of the definition")
        return
    error = check()
    rate = fma_rate(status.multiprocessors)
    empty = empty_kernel_seconds() * 1e6
    print(f"{status.name}: {rate / 1e12:.1f} TFMA/s, empty kernel {empty:.2f} us", flush=True)
    print(f"every variant within {error:.1e} of the definition", flush=True)
    results = []
    for case in CASES:
        if options.only not in case.name:
            continue
        tries = sweep_tunings(case) if options.sweep else [(variant, {}) for variant in case.variants]
        for variant, tuning in tries:
            try:
                results.append(time_variant(case, variant, rate, tuning))
            except Exception as failure:  # noqa: BLE001 - a tuning that does not fit the device is a line of the table
                print(f"{case.name} {variant} {tuning}: {failure}", flush=True)
        cupy.get_default_memory_pool().free_all_blocks()
        results += time_peers(case, rate)
        for timing in results:
            if timing.case == case.name:
                print(line(timing))
        print(f"{case.name:26} target: {case.target or '-'}", flush=True)
    record = {
        "date": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        "device": asdict(status),
        "cupy": cupy.__version__,
        "tfma_per_second": rate / 1e12,
        "empty_kernel_microseconds": empty,
        "largest_relative_error": error,
        "timings": [asdict(timing) for timing in results],
    }
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
