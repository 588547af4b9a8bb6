"""Rms error and gross failures of this project and its peers on synthetic series, beside the Cramer-Rao bound.

    python benchmarks/accuracy.py [--scene NAME|both] [--frames N] [--seed N] [--ours KEY=VALUE ...] [--no-peers]

The error of a frame is the difference between the shift found and the true one; a gross failure is an error above 2
pixels on either axis.  The table gives the rms error per axis over both axes of the frames that are no gross failures,
and counts the gross ones in brackets.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from _environment import write_result
from _peers import PEERS, UPSAMPLE, check_sign
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scenes import SCENES, SNRS, Series, make_series

GROSS = 2.0
LARGEST = 24
OURS = "xcorr"

Array = NDArray[np.float64]


def ours(series: Series, options: dict[str, Any]) -> Array:
    """Run this project with its default options, but for those given; shape (T - 1, 2)."""
    from xcorr_app import estimate_shifts

    result = estimate_shifts(series.frames, **{"reference": "first", "max_shift": LARGEST, **options})
    return np.asarray(result.shifts)[1:]


def peer(series: Series, name: str) -> Array:
    """Run one peer over the series, each frame against the first; shape (T - 1, 2)."""
    reference = series.frames[0]
    return np.array([PEERS[name](reference, frame, LARGEST) for frame in series.frames[1:]])


def score(found: Array, series: Series) -> dict[str, float | int]:
    """Return the rms error per axis in pixels and the number of gross failures.

    Both axes together (`rms`), and each (`rms_rows`, `rms_columns`); gross failures take no part in them.
    """
    error = found - series.shifts[1:]
    gross = np.abs(error).max(axis=1) > GROSS
    kept = error[~gross]
    rows, columns = np.sqrt(np.mean(kept**2, axis=0)) if kept.size else (np.nan, np.nan)
    rms = float(np.sqrt((rows**2 + columns**2) / 2))
    return {"rms": rms, "rms_rows": float(rows), "rms_columns": float(columns), "gross": int(gross.sum())}


def measure(scene: str, frames: int, seed: int, options: dict[str, Any], *, peers: bool) -> list[dict[str, Any]]:
    """Measure every method on one scene at every SNR; one record per SNR."""
    records = []
    for snr in SNRS:
        series = make_series(scene, snr, frames, seed)
        methods = {OURS: score(ours(series, options), series)}
        if peers:
            methods |= {name: score(peer(series, name), series) for name in PEERS}
        bound = {"bound": series.bound_known_scene, "bound_noisy_reference": series.bound_noisy_reference}
        records.append({"scene": scene, "snr": snr, **bound, "methods": methods})
    return records


def table(scene: str, records: list[dict[str, Any]]) -> Table:
    """Lay the records of one scene out, a method a row and an SNR a column."""
    out = Table(title=f"{scene}: rms error per axis in pixels (gross failures)")
    out.add_column("SNR", no_wrap=True)
    for record in records:
        out.add_column(f"{record['snr']:g}", justify="right")
    out.add_row("bound, known scene", *(f"{r['bound']:.4f}" for r in records))
    out.add_row("bound, noisy reference", *(f"{r['bound_noisy_reference']:.4f}" for r in records))
    out.add_section()
    for name in records[0]["methods"]:
        out.add_row(name, *(_cell(r["methods"][name]) for r in records))
    if len(records[0]["methods"]) > 1:
        out.add_section()
        out.add_row("best peer", *(f"{best_peer(r):.4f}" for r in records))
        out.add_row(f"{OURS} / best peer", *(f"{r['methods'][OURS]['rms'] / best_peer(r):.2f}" for r in records))
    return out


def _cell(result: dict[str, float | int]) -> str:
    return f"{result['rms']:.4f}" + (f" ({result['gross']})" if result["gross"] else "")


def best_peer(record: dict[str, Any]) -> float:
    """Return the smallest rms error among the peers with the fewest gross failures."""
    results = [result for name, result in record["methods"].items() if name != OURS]
    best = min(results, key=lambda result: (result["gross"], result["rms"]))
    return float(best["rms"])


def parse_options(pairs: list[str]) -> dict[str, Any]:
    """Turn KEY=VALUE into keyword arguments; a value that reads as a number is one."""
    options: dict[str, Any] = {}
    for pair in pairs:
        key, _, value = pair.partition("=")
        try:
            number = float(value)
        except ValueError:
            options[key] = value
        else:
            options[key] = int(number) if number.is_integer() else number
    return options


def main() -> None:
    """Run the comparison, print one table a scene and write results/accuracy.json."""
    parser = argparse.ArgumentParser(description="Accuracy on synthetic series, against peers and the bound.")
    parser.add_argument("--scene", choices=[*SCENES, "both"], default="both")
    parser.add_argument("--frames", type=int, default=20, help="frames beside the reference")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--ours", metavar="KEY=VALUE", nargs="*", default=[], help="options of estimate_shifts")
    parser.add_argument("--no-peers", action="store_true", help="measure this project alone; writes no result")
    arguments = parser.parse_args()
    options = parse_options(arguments.ours)
    for name, method in PEERS.items():
        check_sign(name, method)

    console = Console(width=120)
    records = []
    for scene in SCENES if arguments.scene == "both" else [arguments.scene]:
        rows = measure(scene, arguments.frames, arguments.seed, options, peers=not arguments.no_peers)
        console.print(table(scene, rows))
        records += rows
    if not arguments.no_peers:
        chosen = {"frames": arguments.frames, "seed": arguments.seed, "ours": options}
        fixed = {"max_shift": LARGEST, "scikit-image upsample_factor": UPSAMPLE}
        write_result("accuracy", {"parameters": chosen | fixed, "records": records})


if __name__ == "__main__":
    main()
