"""Measure which engine is the fastest for which problem, and make the table by which ``auto`` chooses.

    python benchmarks/engine_choice.py [--seconds N] [--off-grid N]   # on a GPU: measure, write table and results
    python benchmarks/engine_choice.py --from FILE                    # anywhere: make the table of earlier measurements

Every problem (plain sums of random float32 matrices, `_choice_cases.py`) is computed by the product's own FFT engine
and by the kernels that may win it, timed as replays of a graph, medians. The grid's times become
``xcorr_app/gpu/direct/costs.json``, and what the model misses there ``costs.npz`` beside it; the problems off the grid
only check what follows from it. Printed at the end: how far the choice is from the best of what was measured, on the
grid and off it.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import asdict, astuple, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from _choice_cases import MAX_PRODUCTS, Case, cases
from _choice_fit import behind_best, table_of
from _environment import RESULTS

from benchmarks.harness.clock import Clock
from benchmarks.harness.environment import environment
from xcorr_app.gpu.direct.costs import CostTable
from xcorr_app.gpu.direct.kernel_work import KERNEL_WORK, competes
from xcorr_app.gpu.direct.kernels import KERNELS
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.tuning.measure import compile_ahead

TABLE = Path(__file__).resolve().parent.parent / "xcorr_app" / "gpu" / "direct" / "costs.json"
GOOD_ENOUGH = 1.1

Row = dict[str, Any]


def kernels_for(problem: Problem, device: DeviceLimits) -> tuple[str, ...]:
    """Variants that are worth timing on a problem."""
    if problem.products > MAX_PRODUCTS:
        return ()
    return tuple(name for name in KERNEL_WORK if competes(name, problem, device))


def measure(problem: Problem, device: DeviceLimits, numbers: Any, clock: Clock) -> dict[str, float]:
    """Microseconds of the whole batch by the FFT engine and by each kernel worth timing."""
    import cupy

    from xcorr_app.correlation.engines import ENGINES
    from xcorr_app.correlation.problem import window_of
    from xcorr_app.gpu.direct.run import correlate_on_device

    def matrices(count: int, shape: tuple[int, int], start: int) -> Any:
        return numbers[start : start + count * shape[0] * shape[1]].reshape(count, *shape)

    lefts = matrices(problem.lefts, problem.left_shape, 0)
    rights = matrices(problem.rights, problem.right_shape, 4096)
    correlator = ENGINES["fft"].bind(problem.left_shape, problem.right_shape, window_of(problem), cupy)
    sets = 1 if problem.shared_rights else problem.lefts
    right_sets = rights.reshape(sets, problem.rights_per_left, *problem.right_shape)

    def by_fft() -> None:
        correlator.sums(correlator.left(lefts[:, None]), correlator.right(right_sets))

    found = {"fft": clock.on_device(by_fft).seconds * 1e6}
    cupy.fft.config.get_plan_cache().clear()
    planes = cupy.empty((problem.pairs, *problem.plane_shape), "float32")
    for variant in kernels_for(problem, device):
        run = lambda variant=variant: correlate_on_device(lefts, rights, problem, variant, out=planes)  # noqa: E731
        found[variant] = clock.on_device(run).seconds * 1e6
    return {name: float(f"{microseconds:.4g}") for name, microseconds in found.items()}


def measure_all(problems: list[Case], device: DeviceLimits, seconds: float) -> list[Row]:
    """Measure until the time is up."""
    import cupy

    began = time.monotonic()
    compile_ahead(
        KERNELS[name].launch(case.problem, device=device)
        for case in problems
        for name in kernels_for(case.problem, device)
    )
    print(f"compiled in {time.monotonic() - began:.0f} s", flush=True)
    numbers = cupy.random.default_rng(1).random(int(4.2e8), dtype="float32")
    clock = Clock(repeats=5, min_seconds=0.002)
    rows: list[Row] = []
    for case in problems:
        if time.monotonic() - began > seconds:
            break
        flat = list(
            chain.from_iterable(value if isinstance(value, tuple) else (value,) for value in astuple(case.problem))
        )
        rows.append({"problem": flat, "on_grid": case.on_grid, "us": measure(case.problem, device, numbers, clock)})
        cupy.get_default_memory_pool().free_all_blocks()
    print(f"measured {len(rows)} of {len(problems)} problems in {time.monotonic() - began:.0f} s", flush=True)
    return rows


def write_lines(path: Path, payload: dict[str, Any]) -> None:
    """Write JSON with one entry of a list a line: small, and still to be read and compared."""
    parts = []
    for key, value in payload.items():
        if isinstance(value, list):
            text = "[\n" + ",\n".join(json.dumps(item, separators=(",", ":")) for item in value) + "\n]"
        else:
            text = json.dumps(value)
        parts.append(f"{json.dumps(key)}: {text}")
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n")


def write_misses(path: Path, table: CostTable) -> None:
    """Keep what is derived from the table, so that no process derives it again."""
    arrays = {f"{name}.coordinates": misses.coordinates for name, misses in table.misses.items()}
    arrays |= {f"{name}.missed": misses.missed for name, misses in table.misses.items()}
    np.savez_compressed(path, **arrays)


def report(rows: list[Row], table: CostTable) -> dict[str, Any]:
    """Print and return how far the choice is from the best measured."""
    quality = {}
    for name, on_grid in (("on the grid", True), ("off the grid", False)):
        ranked = behind_best([row for row in rows if row["on_grid"] is on_grid], table)
        missed = [item for item in ranked if item[0] > GOOD_ENOUGH]
        quality[name] = {"problems": len(ranked), "worst": round(ranked[0][0], 3), "behind by over 10 %": len(missed)}
        print(f"{name}: {len(ranked)} problems, auto at most {ranked[0][0]:.3f} x the best, {len(missed)} over 1.1")
        for ratio, choice, row in ranked[:5]:
            print(f"    {ratio:.3f} x by {choice}: {row['problem']} {row['us']}")
    return quality


def main() -> None:
    """Measure or read, write the table, and say how good the choice is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=120, help="time to measure in")
    parser.add_argument("--off-grid", type=int, default=200, help="problems drawn at random")
    parser.add_argument("--from", dest="source", type=Path, help="earlier results")
    parser.add_argument("--results", type=Path, default=RESULTS / "engine_choice.json")
    parser.add_argument("--table", type=Path, default=TABLE)
    arguments = parser.parse_args()
    if arguments.source:
        earlier = json.loads(arguments.source.read_text())
        rows, where, limits = earlier["rows"], earlier["environment"], DeviceLimits(**earlier["device"])
    else:
        from xcorr_app.gpu.runtime.limits import device_limits

        where, limits = environment(), device_limits(0)
        rows = measure_all(cases(arguments.off_grid), limits, arguments.seconds)
    table = table_of(rows, limits, {"date": where["date"], "devices": where["devices"], "versions": where["versions"]})
    write_lines(arguments.table, table)
    write_misses(arguments.table.with_suffix(".npz"), CostTable(table))
    quality = report(rows, CostTable(table))
    results = {"environment": where, "device": asdict(replace(limits, tuned=None)), "choice": quality, "rows": rows}
    write_lines(arguments.results, results)


if __name__ == "__main__":
    main()
