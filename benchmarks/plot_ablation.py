"""Draw what each step of the kernels' design brings: microseconds a pair, fraction of the FMA rate, registers.

    python benchmarks/plot_ablation.py [RESULTS.json] [-o docs/correlation_ablation.png]

Reads the timings of the case whose name begins with "ablation" from a file that
``python -m benchmarks correlation --json`` wrote.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

ROOT = Path(__file__).resolve().parent.parent
STEPS = {
    "overlap-wise": "overlap-wise: a thread sums one shift",
    "row-per-warp": "row per warp: warps share the rows of 32 shifts",
    "warp-shuffle": "warp shuffle",
    "warp-shuffle-distributed": "+ work distribution",
    "multi-right": "+ several rights a thread",
    "multi-row": "+ several rows a thread",
    "multi-left-right": "+ several lefts and rights a thread",
    "combined": "combined: tiles in registers",
    "row-product": "row product: no zeros multiplied",
    "band-product": "band product: only what the window asks for",
}
"""Variants in the order of the design, and what each adds."""
_TIME, _RATE, _QUIET = "#0072B2", "#D55E00", "#555555"  # after Okabe and Ito, told apart by all


@dataclass(frozen=True)
class Step:
    """One bar: a variant and what was measured of it."""

    label: str
    microseconds: float
    fraction: float
    registers: int


def read_steps(path: Path) -> list[Step]:
    """Take the ablation's timings out of a file of results, in the order of the design.

    Parameters
    ----------
    path : pathlib.Path
        JSON with a list ``timings``.

    Returns
    -------
    list of Step
        One for each variant that was timed.

    Raises
    ------
    ValueError
        Where the file holds none.
    """
    timings = {
        timing["what"]: timing
        for timing in json.loads(path.read_text())["timings"]
        if timing["case"].startswith("ablation") and timing["microseconds_a_pair"] is not None
    }
    steps = [
        Step(
            label,
            timings[variant]["microseconds_a_pair"],
            timings[variant]["fraction_of_fma_rate"],
            timings[variant]["registers"],
        )
        for variant, label in STEPS.items()
        if variant in timings
    ]
    if not steps:
        raise ValueError(
            f"{path}: holds no timings of an ablation; write one with python -m benchmarks correlation --json"
        )
    return steps


def draw(steps: list[Step]) -> Figure:
    """Draw two panels that share their rows: time on a logarithmic axis, and fraction of the FMA rate."""
    figure = Figure(figsize=(10, 0.52 * len(steps) + 1.5), dpi=150, layout="constrained")
    times, rates = figure.subplots(1, 2, sharey=True, width_ratios=(3, 2))
    rows = range(len(steps))
    # Points, since a logarithmic axis has no zero for a bar to begin at.
    times.plot([step.microseconds for step in steps], rows, "o", color=_TIME, markersize=9)
    rates.barh(rows, [step.fraction for step in steps], color=_RATE, height=0.62)
    times.set_xscale("log")
    times.set_xlim(0.6 * min(step.microseconds for step in steps), 6 * max(step.microseconds for step in steps))
    times.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    times.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    times.xaxis.set_minor_locator(NullLocator())
    rates.set_xlim(0, 1)
    times.set_yticks(rows, [step.label for step in steps])
    times.invert_yaxis()
    for row, step in enumerate(steps):
        label = f"   {step.microseconds:.0f} us, {step.registers} registers"
        times.text(step.microseconds, row, label, va="center", color=_QUIET)
        rates.text(step.fraction, row, f" {step.fraction:.2f}", va="center", color=_QUIET)
    times.set_xlabel("microseconds a pair (less is better)")
    rates.set_xlabel("fraction of the FP32 rate F")
    title = "4 lefts x 4 rights of 256 x 256, full plane; each + is added to the warp shuffle alone"
    figure.suptitle(title, fontsize=11)
    for axes in (times, rates):
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="x", color="#e4e4e4")
        axes.set_axisbelow(True)
    return figure


def main() -> None:
    """Read, draw, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = ROOT / "benchmarks" / "results" / "correlation_bench.json"
    parser.add_argument("results", type=Path, nargs="?", default=default, metavar="RESULTS.json")
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "docs" / "correlation_ablation.png")
    options = parser.parse_args()
    figure = draw(read_steps(options.results))
    FigureCanvasAgg(figure).print_png(options.output)
    print(f"wrote {options.output}")


if __name__ == "__main__":
    main()
