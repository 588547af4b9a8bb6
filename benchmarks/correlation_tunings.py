"""Try other tunings of the correlation kernels than the tables' on one GPU.

    python benchmarks/correlation_tunings.py [--only TEXT]

Times the tables' tunings and those listed here, as ``python -m benchmarks correlation`` times the product.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import cupy

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.correlation.cases import Case, cases_named
from benchmarks.correlation.data import random_data
from benchmarks.correlation.own_kernels import LEADING, timed_variant, variants_of
from benchmarks.harness.clock import Clock
from benchmarks.harness.device_rates import measure_rates
from xcorr_app.gpu.runtime.device import require_cuda
from xcorr_app.gpu.runtime.limits import device_limits
from xcorr_app.gpu.runtime.placement import current_device

TILE = ("TILE_X", "TILE_Y", "WARPS_X", "WARPS_Y", "WARPS_K", "MIN_BLOCKS", "CHUNK_ROWS", "CHUNK_COLUMNS", "SEGMENTS")
ROW = ("BLOCK", "PAIRS", "SHIFT_ROWS", "CHUNK_ROWS", "MIN_BLOCKS")
SWEEP = {
    "n-to-m 16 x 16 256^2 full": (
        (32, 2, 64, 64, 3), (32, 1, 64, 64, 8), (32, 2, 64, 32, 4), (32, 1, 128, 64, 4)),
    "one-to-one 256^2 full": ((8, 8, 4, 2, 1, 2, 32, 256, 4), (8, 8, 4, 2, 1, 2, 32, 256, 16)),
    "one-to-one 16^2 full": (
        (4, 4, 1, 1, 8, 2, 16, 16, 1), (4, 4, 1, 1, 16, 1, 16, 16, 1), (2, 2, 1, 1, 4, 4, 16, 16, 1)),
    "one-to-one 32^2 full": ((8, 4, 1, 1, 4, 4, 32, 32, 1), (4, 4, 1, 1, 8, 2, 32, 32, 1)),
    "one-to-one 64^2 full": ((8, 8, 1, 1, 8, 2, 64, 64, 1), (8, 4, 1, 2, 4, 2, 32, 64, 1)),
    "one-to-many 256 frames 512^2 +-8 plane": (
        (17, 6, 1, 3, 2, 2, 32, 128), (17, 6, 1, 3, 4, 1, 64, 128), (17, 9, 1, 2, 4, 1, 64, 128)),
    "n-to-mn 16384 x 32^2 full plane": ((32, 8, 16, 32, 4), (32, 4, 32, 32, 3), (32, 2, 32, 32, 8)),
    "n-to-mn 16384 x 64^2 +-16 plane": (
        (33, 3, 1, 4, 1, 3, 64, 64), (33, 3, 1, 6, 1, 2, 64, 64), (33, 3, 1, 3, 1, 4, 64, 64)),
    "n-to-mn 4096 x 64^2 full": ((32, 4, 32, 64, 3), (32, 2, 64, 64, 3), (32, 2, 32, 64, 8)),
}  # fmt: skip


def tunings(case: Case) -> list[tuple[str, dict[str, int]]]:
    """Return the tunings worth a try on a case, the table's own first."""
    tries: list[tuple[str, dict[str, int]]] = [
        (variant, {}) for variant in variants_of(case, device_limits(current_device())) if variant in LEADING
    ]
    for values in SWEEP[case.name]:
        variant, names = ("row-product", ROW) if len(values) == len(ROW) else ("combined", TILE)
        tries.append((variant, dict(zip(names, values, strict=False))))
    return tries


def sweep(only: str) -> None:
    """Print a line for every tuning of the cases whose name contains a text."""
    clock = Clock()
    rates = measure_rates(clock, require_cuda().multiprocessors)
    print(f"{rates.fma / 1e12:.1f} TFMA/s, empty kernel {rates.empty * 1e6:.2f} us", flush=True)
    for case in cases_named(only):
        if case.name not in SWEEP:
            continue
        data = random_data(case, cupy)
        for variant, tuning in tunings(case):
            values = " ".join(map(str, tuning.values()))
            try:
                attempt = timed_variant(case, data, variant, tuning)
                seconds = clock.on_device(attempt.run).seconds
            except Exception as failure:  # noqa: BLE001 - a tuning that does not fit the device is a line of the table
                print(f"{case.name:40} {variant:14} {values}: {failure}", flush=True)
                continue
            pair, fraction = seconds * 1e6 / case.problem.pairs, case.fma / seconds / rates.fma
            print(
                f"{case.name:40} {variant:14} {pair:10.3f} us {fraction:6.3f} F "
                f"{attempt.registers:4d} regs {attempt.local_bytes:3d} local {values}",
                flush=True,
            )


def main() -> None:
    """Sweep the cases asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="cases whose name contains this text")
    require_cuda()
    sweep(parser.parse_args().only)


if __name__ == "__main__":
    main()
