"""Rms errors of drifting spots and speckle, noise and nothing else, beside other programs and the Cramer-Rao bounds.

    python -m benchmarks.accuracy [--snr X ...] [--frames N] [--seeds N] [--first-seed N] [--no-peers] [--name NAME]

The error of a frame is the difference between the shift found and the true one. The table has the rms error per axis
over both axes, without the frames that are off by more than 2 pixels on either, which are counted in brackets; the
record has the figures of the board of cases. Frames of a series share the noise of one reference, so that many seeds
say more than many frames. Written to results/accuracy.json, or results/accuracy_NAME.json.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import xcorr_app as xc
from benchmarks._peers import PEERS, UPSAMPLE, Method, check_sign
from benchmarks.board.measure import Found, figures, judged
from benchmarks.conditions import Series, make_series
from benchmarks.harness.record import write_result
from benchmarks.scenes import SCENES, SNRS

LARGEST = 24
OURS = "xcorr"


def of_peer(series: Series, peer: Method) -> Found:
    """Run a peer over the series, each frame against the first; it says no more than a shift."""
    reference = series.frames[0]
    error = np.array([peer(reference, frame, LARGEST) for frame in series.frames[1:]]) - series.shifts[1:]
    nothing = np.zeros(len(error), bool)
    return Found(error, error, np.full_like(error, np.nan), nothing, nothing, np.full(len(error), np.inf))


def measure(arguments: argparse.Namespace, peers: dict[str, Method]) -> Iterator[dict[str, Any]]:
    """Measure every method; one record for each scene and SNR."""
    for scene, snr in ((scene, snr) for scene in SCENES for snr in arguments.snr):
        bounds, parts = [], {name: list[Found]() for name in (OURS, *peers)}
        for seed in range(arguments.first_seed, arguments.first_seed + arguments.seeds):
            series = make_series(scene, snr, arguments.frames, seed)
            bounds.append((series.bound_known_scene, series.bound))
            parts[OURS].append(judged(series, xc.estimate_shifts(series.frames, max_shift=LARGEST)))
            for name, peer in peers.items():
                parts[name].append(of_peer(series, peer))
        known, noisy = np.sqrt(np.mean(np.square(bounds), axis=0))
        found = {name: figures(Found.pooled(of_method)) for name, of_method in parts.items()}
        yield {
            "scene": scene,
            "condition": "plain",
            "snr": snr,
            "bound": float(known),
            "bound_noisy_reference": float(noisy),
            "methods": found,
        }


def table(records: list[dict[str, Any]]) -> Table:
    """Lay the errors out, a scene and method a row and an SNR a column."""
    out = Table(title="rms error per axis in pixels (gross failures)")
    out.add_column("scene, SNR", no_wrap=True)
    for snr in dict.fromkeys(record["snr"] for record in records):
        out.add_column(f"{snr:g}", justify="right", no_wrap=True)
    for scene in SCENES:
        of_scene = [record for record in records if record["scene"] == scene]
        for name in ("bound", "bound_noisy_reference"):
            out.add_row(f"{scene}, {name.replace('_', ' ')}", *(f"{record[name]:.4f}" for record in of_scene))
        for name in of_scene[0]["methods"]:
            of_method = [record["methods"][name] for record in of_scene]
            cells = (f"{each['rms']:.4f}" + f" ({each['gross']})" * bool(each["gross"]) for each in of_method)
            out.add_row(f"{scene}, {name}", *cells)
    return out


def parse_arguments(words: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Accuracy on synthetic series, against peers and bounds.")
    parser.add_argument("--snr", nargs="+", type=float, default=[*SNRS])
    parser.add_argument("--frames", type=int, default=12, help="frames beside the reference")
    parser.add_argument("--seeds", type=int, default=1, help="series of each scene and SNR")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--name", help="write results/accuracy_NAME.json")
    parser.add_argument("--no-peers", action="store_true", help="measure this project alone")
    return parser.parse_args(words)


def main() -> None:
    """Run the comparison, print the table and write the record."""
    arguments = parse_arguments()
    peers = {} if arguments.no_peers else PEERS
    for name, method in peers.items():
        check_sign(name, method)
    records = list(measure(arguments, peers))
    Console(width=180).print(table(records))
    chosen = {"frames": arguments.frames, "first_seed": arguments.first_seed, "seeds": arguments.seeds}
    fixed = {"max_shift": LARGEST, "scikit-image upsample_factor": UPSAMPLE}
    name = f"accuracy_{arguments.name}" if arguments.name else "accuracy"
    write_result(name, {"parameters": chosen | fixed, "records": records})


if __name__ == "__main__":
    main()
