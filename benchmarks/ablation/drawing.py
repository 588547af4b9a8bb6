"""The picture of an ablation, drawn from its record alone: a panel a group, a line a way, case after case.

What is drawn is the time over the case's floor (the products at the device's rate, or one read and one write), on a
logarithmic axis, so that cases of all sizes share it; where memory was measured, a second row of panels has it, over
that of the arrays.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from rich.console import Console

from benchmarks.harness.benchmark import run_suite
from benchmarks.harness.suite import Suite
from xcorr_app.io.writing.atomic import atomic_write_text

Group = dict[str, dict[str, Mapping[str, Any]]]
"""Timings of a group by way and case, both in the order of the record; cases by what follows the group's name."""
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")  # after Okabe and Ito
_MARKERS = "os^Dv*Px"
_MAX_LABELS = 14  # of an axis, so that none overlap


def groups_of(record: Mapping[str, Any]) -> dict[str, Group]:
    """Sort a record's timings by group, way and case."""
    of_case = {case["name"]: case["group"] for case in record["cases"]}
    found: dict[str, Group] = {}
    for timing in record["timings"]:
        group = of_case[timing["case"]]
        ways = found.setdefault(group, {})
        ways.setdefault(timing["what"], {})[timing["case"].removeprefix(f"{group}: ")] = timing
    return found


def draw(record: Mapping[str, Any]) -> Figure:
    """Draw a record, as `python -m benchmarks ablation` writes it."""
    groups, moved = groups_of(record), {case["name"]: case["moved_bytes"] for case in record["cases"]}
    with_memory = any(timing["memory_bytes"] for timing in record["timings"])

    def of_floor(timing: Mapping[str, Any]) -> float | None:
        return None if timing["failure"] else timing["multiple_of_floor"]

    def of_arrays(timing: Mapping[str, Any]) -> float | None:
        return timing["memory_bytes"] / moved[timing["case"]] or None

    rows: list[tuple[str, Callable[[Mapping[str, Any]], float | None]]] = [("time over the floor", of_floor)]
    if with_memory:
        rows.append(("memory of a call over its arrays", of_arrays))
    panels = [(name, group, *row) for name, group in groups.items() for row in rows]
    columns = min(2, len(panels))
    figure = Figure(figsize=(8.5 * columns, 4.4 * math.ceil(len(panels) / columns)), layout="constrained")
    for i, (name, group, label, value) in enumerate(panels):
        axes = figure.add_subplot(math.ceil(len(panels) / columns), columns, i + 1)
        _panel(axes, group, value)
        axes.set_title(name, loc="left", fontsize=10)
        axes.set_ylabel(label)
    device = ", ".join(each["name"] for each in record["environment"]["devices"]) or record["device"]["name"]
    figure.suptitle(f"{record['benchmark']}: {device}, {record['environment']['date']}", fontsize=11)
    return figure


def run_ablation(console: Console, suite: Suite, only: str, path: Path, *, quick: bool) -> None:
    """Measure what a document evaluates, and draw all that its record then holds."""
    run_suite(console, suite, only, path, quick=quick)
    write_drawing(json.loads(path.read_text()), path.with_suffix(".svg"))


def write_drawing(record: Mapping[str, Any], path: Path) -> None:
    """Write the picture of a record as SVG; the same record gives the same bytes."""
    text = io.StringIO()
    with rc_context({"svg.hashsalt": "xcorr", "svg.fonttype": "none"}):
        FigureCanvasSVG(draw(record)).print_svg(text, metadata={"Date": None})
    atomic_write_text(path, text.getvalue())


def _panel(axes: Any, group: Group, value: Callable[[Mapping[str, Any]], float | None]) -> None:
    cases = list(dict.fromkeys(case for timings in group.values() for case in timings))
    for number, (way, timings) in enumerate(group.items()):
        points = [
            (i, found)
            for i, case in enumerate(cases)
            if case in timings and (found := value(timings[case])) is not None
        ]
        if points:
            style = {
                "color": _COLOURS[number % len(_COLOURS)],
                "marker": _MARKERS[number // len(_COLOURS) % len(_MARKERS)],
            }
            axes.plot(*zip(*points, strict=True), label=way, linewidth=0.8, markersize=4, **style)
    axes.set_yscale("log")
    step = max(1, math.ceil(len(cases) / _MAX_LABELS))
    slanted = {"rotation": 25, "ha": "right"} if max(map(len, cases)) > 6 else {}
    axes.set_xticks(range(0, len(cases), step), cases[::step], fontsize=8, **slanted)
    axes.grid(axis="y", color="#e4e4e4")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
