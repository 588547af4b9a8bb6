"""Rms error, gross failures and calibration on synthetic series under many conditions, beside peers and limits.

    python -m benchmarks.accuracy [--quick] [--scenes NAME ...] [--conditions NAME ...] [--snr X ...] [--frames N]
                                  [--seeds N] [--first-seed N] [--drift PX ...] [--no-peers] [--name NAME]
                                  [--jobs N]

The error of a frame is the difference between the shift found and the true one; a gross failure is an error above 2
pixels on either axis.  The first table gives the rms error per axis over both axes of the frames that are no gross
failures, counts the gross ones in brackets, and marks what is above its limit.  The second says how far the predicted
standard errors and the flags of this project can be trusted: the share of the errors of unflagged frames within one
and two standard errors (68 and 95 % of normal errors), the share of good frames (both errors below 0.5 pixels) that
are flagged as doubtful, and the share of bad frames that are.  Frames of a series share the noise of one reference, so
that many seeds say more than many frames.  Both go to results/accuracy.json, or results/accuracy_NAME.json.
"""

from __future__ import annotations

import argparse
import functools
import multiprocessing
import re
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from benchmarks.conditions import CONDITIONS, OF_SPOTS_ALONE, OTHERS, Series, make_series
from benchmarks.harness.record import write_result
from benchmarks.scenes import LARGEST_DRIFT, SCENES, SNRS

GROSS = 2.0
GOOD = 0.5
LARGEST = 24
OURS = "xcorr"
_QUICK = {"frames": 6, "snr": [20.0, 1.0, 0.2]}

LIMITS: dict[tuple[str, str], dict[float, float]] = {
    ("spots", "plain"): dict(zip(SNRS, (0.0012, 0.0034, 0.009, 0.0145, 0.029, 0.071), strict=True)),
    ("spots", "pattern"): dict(zip(SNRS, (0.006, 0.008, 0.015, 0.025, 0.04, 0.078), strict=True)),
    ("spots", "foreground"): dict(zip(SNRS, (0.006, 0.008, 0.015, 0.03, 0.06, 0.13), strict=True)),
    ("speckle", "pattern"): {20.0: 0.005},
    ("speckle", "foreground"): {20.0: 0.004},
}
"""Largest rms error per axis in pixels."""
TIMES_PLAIN = {"gradient": 1.5, "blinking": 1.5, "brightness": 1.5, "hot": 1.5, "flickering": 1.5, "lattice": 2.0}
"""Of the other conditions, over that of the same scene with nothing else."""

Array = NDArray[np.float64]


@dataclass
class Found:
    """What one method found of all series of a scene, condition and SNR; one entry a frame."""

    error: Array
    """(n, 2) pixels."""
    sigma: Array = field(default_factory=lambda: np.empty((0, 2)))
    """(n, 2) predicted standard errors; empty for a peer, as are the flags."""
    trusted: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, bool))
    flags: list[tuple[str, ...]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """Of all series, what they begin with, numbers left out."""


def ours(series: Series, options: dict[str, Any]) -> Found:
    """Run this project with its default options, but for those given."""
    from xcorr_app import estimate_shifts

    result = estimate_shifts(series.frames, **{"reference": "first", "max_shift": LARGEST, **options})
    error = np.asarray(result.shifts)[1:] - series.shifts[1:]
    notes = [re.sub(r"\d[\d.,]*", "#", re.split("[:(]", note)[0]).strip() for note in result.notes]
    return Found(error, result.sigma[1:], result.trusted[1:], list(result.flags[1:]), notes)


def peer(series: Series, name: str) -> Found:
    """Run one peer over the series, each frame against the first."""
    from benchmarks._peers import PEERS

    reference = series.frames[0]
    found = np.array([PEERS[name](reference, frame, LARGEST) for frame in series.frames[1:]])
    return Found(found - series.shifts[1:])


def pooled(parts: list[Found]) -> Found:
    """Join what was found of several series."""
    flags, notes = [words for part in parts for words in part.flags], [note for part in parts for note in part.notes]
    columns = (np.concatenate([getattr(part, name) for part in parts]) for name in ("error", "sigma", "trusted"))
    return Found(*columns, flags, notes)


def score(found: Found) -> dict[str, float | int]:
    """Return the rms error per axis in pixels and the number of gross failures.

    Both axes together (`rms`), and each (`rms_rows`, `rms_columns`); gross failures take no part in them.
    """
    gross = ~(np.abs(found.error).max(axis=1) <= GROSS)
    kept = found.error[~gross]
    rows, columns = np.sqrt(np.mean(kept**2, axis=0)) if kept.size else (np.nan, np.nan)
    rms = float(np.sqrt((rows**2 + columns**2) / 2))
    return {"rms": rms, "rms_rows": float(rows), "rms_columns": float(columns), "gross": int(gross.sum())}


def trust(found: Found) -> dict[str, Any]:
    """Return how far standard errors and flags can be trusted: counts, so that conditions can be added up."""
    error = np.abs(found.error)
    bad = ~(error.max(axis=1) <= GOOD)
    known = found.trusted & np.isfinite(found.sigma).all(axis=1)
    with np.errstate(invalid="ignore"):
        ratio = error[known] / found.sigma[known]
    words = sorted({word for flags in found.flags for word in flags})
    return {
        "errors": int(ratio.size),
        "within_1": int((ratio <= 1).sum()),
        "within_2": int((ratio <= 2).sum()),
        "good": int((~bad).sum()),
        "good_flagged": int((~bad & ~found.trusted).sum()),
        "bad": int(bad.sum()),
        "bad_flagged": int((bad & ~found.trusted).sum()),
        "sigma": float(np.median(found.sigma)) if found.sigma.size else np.nan,
        "flags": {word: sum(word in flags for flags in found.flags) for word in words},
    }


def added(records: list[dict[str, Any]]) -> dict[str, Any]:
    """Add up the counts of several records."""
    names = ("errors", "within_1", "within_2", "good", "good_flagged", "bad", "bad_flagged")
    return {name: sum(record["trust"][name] for record in records) for name in names}


def of_series(
    case: tuple[str, str, float, float, int], methods: list[str], frames: int, options: dict[str, Any]
) -> tuple[tuple[float, float], dict[str, Found]]:
    """Return the bounds of one series (scene, condition, drift, SNR, seed), and what each method found of it."""
    scene, condition, largest, snr, seed = case
    series = make_series(scene, snr, frames, seed, largest, condition)
    found = {name: ours(series, options) if name == OURS else peer(series, name) for name in methods}
    return (series.bound_known_scene, series.bound_noisy_reference), found


def measure(arguments: argparse.Namespace, options: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Measure every method; one record per scene, condition, drift and SNR."""
    methods = [OURS, *([] if arguments.no_peers else checked_peers())]
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    places = [(*case, px) for case in cases(arguments.scenes, arguments.conditions) for px in arguments.drift]
    task = functools.partial(of_series, methods=methods, frames=arguments.frames, options=options)
    wanted = [(*place, snr, seed) for place in places for snr in arguments.snr for seed in seeds]
    with ProcessPoolExecutor(arguments.jobs, multiprocessing.get_context("spawn")) as pool:
        # One thread a process: as many series at once as there are processes, whose errors do not depend on either.
        found = dict(zip(wanted, pool.map(task, wanted) if arguments.jobs > 1 else map(task, wanted), strict=True))
    for scene, condition, largest in places:
        for snr in arguments.snr:
            of_seeds = [found[scene, condition, largest, snr, seed] for seed in seeds]
            known, noisy = np.sqrt(np.mean(np.square([bounds for bounds, _ in of_seeds]), axis=0))
            parts = {name: pooled([by_method[name] for _, by_method in of_seeds]) for name in methods}
            yield {
                "scene": scene,
                "condition": condition,
                "drift": largest,
                "snr": snr,
                "bound": None if np.isnan(known) else float(known),
                "bound_noisy_reference": None if np.isnan(noisy) else float(noisy),
                "methods": {name: score(parts[name]) for name in methods},
                "trust": trust(parts[OURS]),
                "notes": dict(Counter(parts[OURS].notes)),
            }


def checked_peers() -> list[str]:
    """Names of the other programs, whose signs were seen to be ours."""
    from benchmarks._peers import PEERS, check_sign

    for name, method in PEERS.items():
        check_sign(name, method)
    return [*PEERS]


def cases(scenes: list[str], conditions: list[str]) -> list[tuple[str, str]]:
    """Scenes with the conditions that apply to them."""
    return [(s, c) for s in scenes for c in conditions if s == "spots" or c not in OF_SPOTS_ALONE]


def limit(record: dict[str, Any], records: list[dict[str, Any]]) -> float | None:
    """Return the largest rms error allowed; of speckle a multiple of what was measured with nothing else."""
    scene, condition, snr = record["scene"], record["condition"], record["snr"]
    if record["drift"] != LARGEST_DRIFT:
        return None
    if condition not in TIMES_PLAIN:
        return LIMITS.get((scene, condition), {}).get(snr)
    plain = LIMITS.get((scene, "plain"), {}).get(snr)
    for other in records:
        if plain is None and (other["scene"], other["condition"], other["snr"]) == (scene, "plain", snr):
            plain = other["methods"][OURS]["rms"]
    return None if plain is None else TIMES_PLAIN[condition] * plain


def error_table(scene: str, records: list[dict[str, Any]]) -> Table:
    """Lay the errors of one scene out, a condition and method a row and an SNR a column."""
    out = Table(title=f"{scene}: rms error per axis in pixels (gross failures) / limit")
    out.add_column("SNR", no_wrap=True)
    of_scene = [record for record in records if record["scene"] == scene]
    for snr in dict.fromkeys(record["snr"] for record in of_scene):
        out.add_column(f"{snr:g}", justify="right", no_wrap=True)
    for condition, px in dict.fromkeys((record["condition"], record["drift"]) for record in of_scene):
        row = [record for record in of_scene if (record["condition"], record["drift"]) == (condition, px)]
        if row[0]["bound"] is not None:
            out.add_row("bound, known scene", *(f"{r['bound']:.4f}" for r in row))
            out.add_row("bound, noisy reference", *(f"{r['bound_noisy_reference']:.4f}" for r in row))
            out.add_section()
        out.add_row(
            f"[bold]{condition}[/bold], {px:g} px", *(_cell(r["methods"][OURS], limit(r, records)) for r in row)
        )
        for name in row[0]["methods"]:
            if name != OURS:
                out.add_row(f"  {name}", *(_cell(r["methods"][name]) for r in row))
        if len(row[0]["methods"]) > 1:
            out.add_row(f"  {OURS} / best peer", *(f"{r['methods'][OURS]['rms'] / best_peer(r):.2f}" for r in row))
            out.add_section()
    return out


def trust_table(records: list[dict[str, Any]]) -> Table:
    """Lay out how far standard errors and flags can be trusted, a record a row, and added up by SNR and in all."""
    out = Table(title="standard errors and flags of unflagged, good (error < 0.5 px) and bad frames")
    for name in ("scene, condition", "SNR", "within 1", "within 2", "median sigma", "good flagged", "bad flagged"):
        out.add_column(name, justify="left" if name == "scene, condition" else "right", no_wrap=True)
    out.add_column("flags")
    for record in records:
        counts = record["trust"]
        flags = ", ".join(f"{word} {number}" for word, number in counts["flags"].items())
        of_series = f"{record['scene']} {record['condition']}, {record['drift']:g} px"
        out.add_row(of_series, *_shares(record["snr"], counts), flags)
    out.add_section()
    for snr in dict.fromkeys(record["snr"] for record in records):
        out.add_row("all", *_shares(snr, added([record for record in records if record["snr"] == snr])), "")
    out.add_row("all", *_shares("all", added(records)), "")
    return out


def _shares(snr: float | str, counts: dict[str, Any]) -> list[str]:
    def share(part: str, whole: str) -> str:
        return f"{100 * counts[part] / counts[whole]:.0f} %" if counts[whole] else "-"

    within = [share("within_1", "errors"), share("within_2", "errors")]
    sigma = f"{counts['sigma']:.4f}" if "sigma" in counts else ""
    flagged = [f"{share(f'{kind}_flagged', kind)} of {counts[kind]}" for kind in ("good", "bad")]
    return [snr if isinstance(snr, str) else f"{snr:g}", *within, sigma, *flagged]


def _cell(result: dict[str, float | int], largest: float | None = None) -> str:
    text = f"{result['rms']:.4f}" + (f" ({result['gross']})" if result["gross"] else "")
    if largest is None:
        return text
    met = result["rms"] <= largest
    return f"{text} / {largest:.4f}" if met else f"[red]{text} > {largest:.4f}[/red]"


def best_peer(record: dict[str, Any]) -> float:
    """Return the smallest rms error among the peers with the fewest gross failures."""
    results = [result for name, result in record["methods"].items() if name != OURS]
    best = min(results, key=lambda result: (result["gross"], result["rms"]))
    return float(best["rms"])


def parse_arguments(words: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Accuracy on synthetic series, against peers, bounds and limits.")
    parser.add_argument("--scenes", nargs="+", choices=[*SCENES], default=[*SCENES])
    parser.add_argument("--conditions", nargs="+", choices=(*CONDITIONS, *OTHERS), default=[*CONDITIONS])
    parser.add_argument("--snr", nargs="+", type=float, default=[*SNRS])
    parser.add_argument("--frames", type=int, default=12, help="frames beside the reference")
    parser.add_argument("--seeds", type=int, default=1, help="series of each scene, condition and SNR")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--drift", metavar="PX", nargs="+", type=float, default=[LARGEST_DRIFT], help="largest shifts")
    parser.add_argument("--name", help="write results/accuracy_NAME.json, with or without peers")
    parser.add_argument("--no-peers", action="store_true", help="measure this project alone; no result but a named one")
    parser.add_argument("--jobs", type=int, default=1, help="series at once, a process each")
    parser.add_argument("--quick", action="store_true", help="6 frames, 3 SNRs, no peers; writes no result")
    arguments = parser.parse_args(words)
    if arguments.quick:
        arguments.frames, arguments.snr, arguments.no_peers = _QUICK["frames"], _QUICK["snr"], True
    return arguments


def main() -> None:
    """Run the comparison, print the tables and write results/accuracy.json."""
    arguments = parse_arguments()
    records = list(measure(arguments, {}))
    console = Console(width=180)
    for scene in arguments.scenes:
        console.print(error_table(scene, records))
    console.print(trust_table(records))
    if arguments.name or not arguments.no_peers:
        chosen = {"frames": arguments.frames, "first_seed": arguments.first_seed, "seeds": arguments.seeds}
        fixed: dict[str, Any] = {"max_shift": LARGEST}
        if not arguments.no_peers:
            from benchmarks._peers import UPSAMPLE

            fixed["scikit-image upsample_factor"] = UPSAMPLE
        records = [record | {"limit": limit(record, records)} for record in records]
        name = f"accuracy_{arguments.name}" if arguments.name else "accuracy"
        write_result(name, {"parameters": chosen | fixed, "records": records})


if __name__ == "__main__":
    main()
