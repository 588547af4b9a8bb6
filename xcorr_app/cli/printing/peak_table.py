"""Peaks of correlation planes on the terminal."""

from collections.abc import Sequence

from rich.console import Console
from rich.measure import Measurement
from rich.text import Text

from xcorr_app.batch.correlate.plan import CorrelationPlan
from xcorr_app.batch.correlate.run import PlaneRecord
from xcorr_app.cli.printing.tables import new_table, say
from xcorr_app.io.matrices import MatrixFile

_SHOWN = 20
_WIDEST = 1000


def print_operands(console: Console, plan: CorrelationPlan, note: str | None = None) -> None:
    """What will be correlated, over which shifts, and what the signs mean."""
    window, settings = plan.window, plan.options.settings
    whole = "" if settings.max_shift is not None else ", the full plane"
    zero = f"element [{-window.dy_min}, {-window.dx_min}] of a plane is the zero shift"
    for line in (
        *([note] if note else []),
        f"LEFT   {_described(plan.left, plan.options.channel or 0)}",
        f"RIGHT  {_described(plan.right, plan.options.channel or 0)}",
        f"Form {plan.options.form}, {settings.normalization}, engine {plan.engine}.",
        f"Shifts dy {window.dy_min} .. {window.dy_max}, dx {window.dx_min} .. {window.dx_max} px{whole}; {zero}.",
        "A peak at (dy, dx): LEFT shows RIGHT displaced by dy rows down and dx columns right.",
    ):
        say(console, line)


def print_peaks(console: Console, planes: Sequence[PlaneRecord], *, every: bool, ratio: bool = False) -> None:
    """One line a plane, the first 20 unless `every` is set; `ratio` adds how far the peak stands above the second."""
    shown = planes if every else planes[:_SHOWN]
    heights = ("score", "ratio") if ratio else ("value",)
    table = new_table("left", "right", "peak", "sub-pixel", *heights, last=[""])
    for plane in shown:
        remark = "no peak" if plane.problem else "edge" * plane.on_edge
        numbers = (_number(plane.score, "{:.6g}"), _number(plane.ratio, "{:.3g}"))[: len(heights)]
        table.add_row(
            str(plane.left),
            str(plane.right),
            _pair(plane.peak_dy, plane.peak_dx, 0),
            _pair(plane.dy, plane.dx, 3),
            *numbers,
            Text(remark, style="red" if plane.problem else "yellow"),
        )
    # As wide as it must be: a terminal folds lines that are too long, a table cut to its width would lose digits.
    table.width = Measurement.get(console, console.options.update(max_width=_WIDEST), table).maximum
    console.print(table, crop=False)
    if len(shown) < len(planes):
        say(console, f"... and {len(planes) - len(shown)} more; -v prints every plane")


def failures_of(planes: Sequence[PlaneRecord]) -> list[tuple[str, str]]:
    """Which planes failed, and why."""
    return [(f"left {each.left}, right {each.right}", each.problem) for each in planes if each.problem is not None]


def print_verdict(console: Console, plan: CorrelationPlan, planes: Sequence[PlaneRecord]) -> None:
    """What is wrong, and where the planes are."""
    if edges := sum(plane.on_edge for plane in planes):
        say(console, f"edge ({edges} x): no valid shifts beyond the peak on one side; the true one may be there.")
    failed, total = failures_of(planes), f"{len(planes)} plane{'s' * (len(planes) != 1)}"
    for name, problem in failed[:_SHOWN]:
        say(console, f"{name}: {problem}", style="red")
    if len(failed) > _SHOWN:
        say(console, f"... and {len(failed) - _SHOWN} more planes failed", style="red")
    if failed:
        say(console, f"{len(failed)} of {total} failed.", style="red")
    say(console, f"{'Peaks' if plan.options.peaks else 'Planes'}: {plan.out}")


def _described(file: MatrixFile, channel: str | int) -> str:
    *leading, rows, columns = file.shape
    images = f"{' x '.join(map(str, leading))} images" if leading else "one image"
    of_channels = f", channel {channel} of {file.channels} (counted from 0)" if file.channels > 1 else ""
    return f"{file.path}: {images}, {rows} x {columns} {file.dtype}{of_channels}"


def _number(value: float | None, form: str) -> str:
    return "" if value is None else form.format(value)


def _pair(dy: float | None, dx: float | None, places: int) -> str:
    if dy is None or dx is None:
        return ""
    # Rounded first and zero added, so that a small negative number is not shown as -0.000.
    return f"({round(dy, places) + 0.0:.{places}f}, {round(dx, places) + 0.0:.{places}f})"
