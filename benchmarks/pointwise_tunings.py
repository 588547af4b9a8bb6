"""Try other tiles than the model's for the pointwise layers of networks on one GPU.

    python benchmarks/pointwise_tunings.py [--layers "7^2"] [--batch 1 32] [--seconds 120] [--json FILE]

Every layer takes its automatic choice first, then the tiles that the model thinks best, in its order, so that a short
run is of use too. All are compiled before the first is timed, in as many processes as there are cores; every answer is
checked before it is timed. The table comes last: the automatic choice beside the best five, and the means over all.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.harness.clock import Clock
from benchmarks.harness.contender import Attempt, Contender
from benchmarks.harness.device_rates import DeviceRates, measure_rates
from benchmarks.harness.effort import Effort
from benchmarks.harness.environment import environment
from benchmarks.harness.fastest import Outcome, fastest_of, free_device_memory
from benchmarks.pointwise.cases import BATCHES, CASES, PointwiseCase
from benchmarks.pointwise.data import Expected, MixingData, random_mixing
from benchmarks.work.rotation import rotating
from xcorr_app.gpu.pointwise.kernels import kernel_for, pointwise_launch
from xcorr_app.gpu.pointwise.problem import PointwiseProblem
from xcorr_app.gpu.pointwise.run import pointwise_on_device
from xcorr_app.gpu.pointwise.tile_choice import Choice, modelled_cycles, takes_planes
from xcorr_app.gpu.pointwise.tile_shapes import TILES, ProductTile
from xcorr_app.gpu.pointwise.tiles import stored_matrix, tiled_launch
from xcorr_app.gpu.runtime.compile import kernel_function
from xcorr_app.gpu.runtime.device import require_cuda
from xcorr_app.gpu.runtime.launch import Launch, ceil_div
from xcorr_app.gpu.runtime.limits import DeviceLimits, device_limits
from xcorr_app.gpu.runtime.placement import current_device

KERNEL = "tiled"
EFFORT = Effort(Clock(repeats=3, min_seconds=0.002))
BEYOND_THE_MODEL = (
    ProductTile(8, 2, 2, micro_n=16),  # 128 x 128, 128 sums a thread
    ProductTile(8, 1, 4, micro_n=16),  # 64 x 256
    ProductTile(8, 1, 2, micro_n=16),  # 64 x 128
    ProductTile(8, 1, 7, micro_m=16, micro_n=7),  # 128 x 196: whole planes of 49, 112 sums a thread
    ProductTile(4, 1, 7, micro_m=16, micro_n=7),  # 64 x 392
    ProductTile(16, 1, 4, micro_n=13),  # 128 x 104, of which 98 are used
    ProductTile(4, 1, 1, 16, 4, 4),  # 16 x 32, groups of 16
    ProductTile(2, 1, 1, 16, 4, 4),  # 8 x 64
    ProductTile(1, 1, 1, 8, 8, 2),  # 8 x 64, two columns a thread
    ProductTile(8, 4, 2, micro_m=4, split=True),  # 128 x 64
    ProductTile(8, 1, 2, split=True),  # 64 x 64, two warps
    ProductTile(8, 3, 2, micro_m=4, micro_n=16, split=True),  # 96 x 128
    ProductTile(8, 1, 4, micro_m=4, micro_n=16, split=True),  # 32 x 256
    ProductTile(8, 1, 4, 2, 4, 8, split=True),  # 32 x 128, two groups
    ProductTile(8, 2, 1, micro_m=4, micro_n=14, split=True),  # 64 x 56, of which 49 are used
    ProductTile(8, 2, 1, 2, 4, 14, split=True),  # the same, two groups
    ProductTile(8, 1, 2, 2, 4, 14, split=True),  # 32 x 112, of which 98 are used
)
"""Tiles that are tried beside those that the product chooses from."""
_SEGMENTS = (1, 2, 3, 4, 6, 8, 12)
_DEPTHS = 2  # the largest that a tile may have
_OF_A_TILE = 2  # variants of a tile: depths, buffers, segments
_TOP = 5

Tuning = dict[str, int]


@dataclass(frozen=True)
class Trial:
    """One tuning on one case, empty for the automatic choice: its outcome, and the floor's share of its time."""

    case: str
    tuning: Tuning
    outcome: Outcome
    of_floor: float


def problem_of(case: PointwiseCase) -> PointwiseProblem:
    """Return the product that a case asks for."""
    return PointwiseProblem(case.images, case.channels, case.filters, case.pixels)


def layers_of(text: str, batches: Sequence[int]) -> list[PointwiseCase]:
    """Return the layers of some batches whose name contains a text."""
    return [case for case in CASES if case.task == "layer" and case.images in batches and text in case.name]


def candidates(problem: PointwiseProblem, limits: DeviceLimits, most: int) -> list[Tuning]:
    """Return tunings in the order of the model's time, a few of every tile."""
    plane = problem.inner if takes_planes(problem, 16) else 0
    ranked: list[tuple[float, Choice]] = []
    for tile in (*TILES, *BEYOND_THE_MODEL):
        if not tile.takes(plane) or (tile.split and not limits.has_tensor_cores):
            continue
        of_tile = [
            (modelled_cycles(problem, limits, choice, plane), choice)
            for depth in tile.depths()[-_DEPTHS:]
            for segments in _SEGMENTS
            for buffers in ((2, 3) if tile.warps_k == 1 and not tile.split else (3, 4))
            if is_possible(problem, limits, choice := Choice(tile, depth, buffers, segments), plane)
        ]
        ranked += sorted(of_tile, key=lambda pair: pair[0])[:_OF_A_TILE]
    ranked.sort(key=lambda pair: pair[0])
    return [tuning_of(choice) for _, choice in ranked[:most]]


def tuning_of(choice: Choice) -> Tuning:
    """Return the macros of a choice."""
    further = {"TILE_K": choice.depth, "BUFFERS": choice.buffers, "SEGMENTS": choice.segments}
    return {**choice.tile.defines(), **further}


def is_possible(problem: PointwiseProblem, limits: DeviceLimits, choice: Choice, plane: int) -> bool:
    """Whether a choice fits a block, and leaves none of its segments empty."""
    steps = ceil_div(problem.channels, choice.depth)
    none_empty = ceil_div(steps, ceil_div(steps, choice.segments)) == choice.segments
    shared_bytes = 4 * choice.tile.shared_floats(choice.depth, choice.buffers, plane)
    return none_empty and shared_bytes <= limits.shared_bytes


def compile_ahead(launches: Sequence[Launch], processes: int) -> None:
    """Compile kernels into the cache on disk: the run-time compiler takes one at a time in each process."""
    distinct = {(launch.kernel, tuple(sorted(launch.defines.items()))): launch for launch in launches}
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        done = pool.map(compile_one, distinct.values(), chunksize=1)
        print(f"{len(list(done))} kernels compiled", flush=True)


def compile_one(launch: Launch) -> None:
    """Compile one kernel; what is refused says so where it is timed."""
    with suppress(Exception):
        kernel_function(launch.kernel, launch.defines, launch.shared_bytes)


@dataclass(frozen=True)
class Bench:
    """A case's arrays, made once for all its tunings."""

    case: PointwiseCase
    data: MixingData
    matrices: list[Any]
    results: list[Any]
    expected: Expected

    @classmethod
    def of(cls, case: PointwiseCase, xp: Any) -> Bench:
        """Make copies enough that none is still in the cache when its turn comes."""
        data = random_mixing(case, xp, case.copies)
        shape = (case.images, case.filters, case.side, case.side)
        results = [xp.empty(shape, xp.float32) for _ in data.stacks]
        return cls(case, data, [stored_matrix(each, xp) for each in data.matrices], results, Expected(case, data))

    def attempts(self, tuning: Tuning, *_: Any) -> Iterator[Attempt]:
        """Yield the attempt of a tuning, its first result poisoned."""
        kernel = KERNEL if tuning or kernel_for(problem_of(self.case)) == "mix" else "auto"
        self.results[0].fill(math.nan)
        yield rotating(
            [
                partial(pointwise_on_device, stack, matrix, 1, out=result, kernel=kernel, tuning=tuning)
                for stack, matrix, result in zip(self.data.stacks, self.matrices, self.results, strict=True)
            ],
            Expected.read_planar,
        )

    def timed(self, tuning: Tuning, rates: DeviceRates) -> Trial:
        """Check a tuning and time it."""
        contender = Contender("tuning", partial(self.attempts, tuning), choice="tuning")
        outcome = fastest_of(contender, self.case, self.data, self.expected, EFFORT)
        return Trial(self.case.name, tuning, outcome, self.case.floor_seconds(rates) / outcome.seconds)


def sweep(case: PointwiseCase, tunings: Sequence[Tuning], rates: DeviceRates, until: float, xp: Any) -> Iterator[Trial]:
    """Yield trials until a time of the monotonic clock has come, that of the automatic choice in any case."""
    bench = Bench.of(case, xp)
    for tuning in ({}, *tunings):
        if tuning and time.monotonic() > until:
            return
        yield bench.timed(tuning, rates)


def shape_of(tuning: Tuning) -> str:
    """Return a tuning in a few letters: tile, groups, sums of a thread, depth, buffers, segments."""
    tile = ProductTile.of(tuning)
    lanes = "tensor" if tile.split else tile.lanes_m
    form = f"{tile.filters}x{tile.columns}k{tile.warps_k}({lanes}:{tile.micro_m}x{tile.micro_n})"
    return f"{form}d{tuning['TILE_K']}b{tuning['BUFFERS']}s{tuning['SEGMENTS']}"


def ranked(trials: Sequence[Trial]) -> list[Trial]:
    """Return the trials of tunings that gave a time, the fastest first."""
    right = [trial for trial in trials if trial.tuning and not trial.outcome.failure]
    return sorted(right, key=lambda trial: trial.outcome.seconds)


def line_of(trials: Sequence[Trial], automatic: str) -> str:
    """Return the line of a case: floor's share and time of the automatic choice, then the best tunings."""
    own = trials[0]
    found = own.outcome.failure or f"{own.outcome.seconds * 1e6:7.2f} us {own.of_floor:5.3f}"
    best = [f"{trial.outcome.seconds * 1e6:.2f} {shape_of(trial.tuning)}" for trial in ranked(trials)[:_TOP]]
    return f"{own.case}: {found} {automatic} | {' | '.join(best)}"


def automatic_choice(problem: PointwiseProblem, limits: DeviceLimits) -> tuple[str, Launch]:
    """Return what the product chooses by itself, in a few letters, and its launch."""
    kernel = kernel_for(problem)
    launch = pointwise_launch(problem, KERNEL if kernel == "mix" else kernel, limits=limits)
    if kernel != KERNEL:
        return kernel, launch
    macros = {name: int(value) for name, value in launch.defines.items() if isinstance(value, int)}
    return shape_of({**macros, "SEGMENTS": launch.segments}), launch


def means(trials: Sequence[Sequence[Trial]], batch: int) -> str:
    """Return the geometric means of floor / time of a batch: the automatic choice's, and the best of each layer."""
    pairs = [
        (each[0].of_floor, max(trial.of_floor for trial in (each[0], *ranked(each))))
        for each in trials
        if each[0].case.startswith(f"batch {batch}:") and not each[0].outcome.failure
    ]
    if not pairs:
        return f"batch {batch}: nothing timed"
    own, best = (math.exp(sum(math.log(pair[i]) for pair in pairs) / len(pairs)) for i in (0, 1))
    return f"batch {batch}: floor / time {own:.3f} automatic, {best:.3f} best of each, {len(pairs)} layers"


def main() -> None:
    """Sweep the layers asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", default="", help="layers whose name contains this text, such as '7^2' or '512 ->'")
    parser.add_argument("--batch", type=int, nargs="+", default=list(BATCHES), choices=list(BATCHES))
    parser.add_argument("--seconds", type=float, default=120.0, help="time for all layers together (default: 120)")
    parser.add_argument("--most", type=int, default=20, help="tunings of a layer (default: 20)")
    parser.add_argument("--json", type=Path, help="also write every trial to this file")
    given = parser.parse_args()
    cases = layers_of(given.layers, given.batch)
    if not cases:
        parser.error(f"no layer has a name that contains {given.layers!r}")
    began = time.monotonic()
    status = require_cuda()
    import cupy

    limits = device_limits(current_device())
    tunings = {case: candidates(problem_of(case), limits, given.most) for case in cases}
    automatic = {case: automatic_choice(problem_of(case), limits) for case in cases}
    launches = [tiled_launch(problem_of(case), limits, tuning=each) for case in cases for each in tunings[case]]
    compile_ahead([*(launch for _, launch in automatic.values()), *launches], os.cpu_count() or 1)
    rates = measure_rates(EFFORT.clock, status.multiprocessors)
    print(f"{status.name}: {rates.fma / 1e12:.1f} TFMA/s, copy {rates.copy / 1e12:.2f} TB/s", flush=True)
    everything: list[list[Trial]] = []
    for number, case in enumerate(cases):
        now = time.monotonic()
        share = (began + given.seconds - now) / (len(cases) - number)
        everything.append(list(sweep(case, tunings[case], rates, now + share, cupy)))
        free_device_memory()
    if given.json:
        record = {
            "environment": environment(),
            "kernel": KERNEL,
            "trials": [recorded(trial) for each in everything for trial in each],
        }
        given.json.write_text(json.dumps(record, indent=1) + "\n")
    print(*(line_of(each, automatic[case][0]) for case, each in zip(cases, everything, strict=True)), sep="\n")
    print(*(means(everything, batch) for batch in given.batch), sep="\n")


def recorded(trial: Trial) -> dict[str, Any]:
    """Return a trial as it is kept."""
    microseconds = None if trial.outcome.failure else trial.outcome.seconds * 1e6
    return {
        "case": trial.case,
        "tuning": trial.tuning,
        "microseconds": microseconds,
        "failure": trial.outcome.failure,
    }


if __name__ == "__main__":
    main()
