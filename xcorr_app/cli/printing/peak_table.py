"""Peaks of correlation planes on the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from xcorr_app.batch.correlate.peaks_file import PlaneRecord
from xcorr_app.batch.correlate.plan import CorrelationPlan
from xcorr_app.batch.correlate.run import CorrelationResult
from xcorr_app.cli.printing.tables import say
from xcorr_app.io.matrices import MatrixFile

_SHOWN = 20
_WIDEST = 1000


def print_operands(console: Console, plan: CorrelationPlan, note: str | None = None) -> None:
    """What will be correlated, over which shifts, and what the signs mean."""
    window, settings = plan.window, plan.options.settings
    if note:
        say(console, note)
    for side, file in (("LEFT ", plan.left), ("RIGHT", plan.right)):
        say(console, f"{side}  {_described(file, plan.options.channel or 0)}")
    whole = "" if settings.max_shift is not None else ", the full plane"
    say(console, f"Form {plan.options.form}, {settings.normalization}, engine {plan.engine}.")
    say(
        console,
        f"Shifts dy {window.dy_min} .. {window.dy_max}, dx {window.dx_min} .. {window.dx_max} px{whole}; "
        f"element [{-window.dy_min}, {-window.dx_min}] of a plane is the zero shift.",
    )
    say(console, "A peak at (dy, dx): LEFT shows RIGHT displaced by dy rows down and dx columns right.")


def print_peaks(console: Console, result: CorrelationResult, *, every: bool, ratio: bool = False) -> None:
    """One line a plane, the first 20 unless `every` is set; `ratio` adds how far the peak stands above the second."""
    shown = result.planes if every else result.planes[:_SHOWN]
    table = Table(box=None, pad_edge=False, header_style="bold")
    headings = ("left", "right", "peak", "sub-pixel", *(("score", "ratio") if ratio else ("value",)))
    headings += ("FFT reference", "difference")
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for plane in shown:
        table.add_row(
            str(plane.left),
            str(plane.right),
            "" if plane.peak is None else f"({plane.peak[0]}, {plane.peak[1]})",
            _shift(plane.shift),
            *_heights(plane, ratio=ratio),
            _shift(plane.reference),
            "" if plane.difference is None else f"{plane.difference:.1e} px",
            _remark(plane),
        )
    # As wide as it must be: a terminal folds lines that are too long, a table cut to its width would lose digits.
    table.width = Measurement.get(console, console.options.update(max_width=_WIDEST), table).maximum
    console.print(table, crop=False)
    if len(shown) < len(result.planes):
        say(console, f"... and {len(result.planes) - len(shown)} more; -v prints every plane")


def failures_of(result: CorrelationResult) -> list[tuple[str, str]]:
    """Which planes failed, and why."""
    return [(f"left {plane.left}, right {plane.right}", plane.problem or "") for plane in result.problems]


def print_verdict(console: Console, plan: CorrelationPlan, result: CorrelationResult) -> None:
    """What is wrong, what agrees, and where the planes are."""
    edges = sum(plane.on_edge for plane in result.planes)
    if edges:
        say(console, f"edge ({edges} x): no valid shifts beyond the peak on one side; the true one may be there.")
    problems = result.problems
    for plane in problems[:_SHOWN]:
        say(console, f"left {plane.left}, right {plane.right}: {plane.problem}", style="red")
    if len(problems) > _SHOWN:
        say(console, f"... and {len(problems) - _SHOWN} more planes failed", style="red")
    total = f"{len(result.planes)} plane{'' if len(result.planes) == 1 else 's'}"
    if problems:
        say(console, f"{len(problems)} of {total} failed.", style="red")
    elif plan.options.verify:
        largest = max(plane.difference for plane in result.planes if plane.difference is not None)
        say(console, f"{total} checked against the float64 FFT: largest difference {largest:.1e} px.", style="green")
    else:
        say(console, f"{total}, not checked against the FFT.")
    say(console, f"{'Peaks' if plan.options.peaks else 'Planes'}: {plan.out}")


def _described(file: MatrixFile, channel: str | int) -> str:
    *leading, rows, columns = file.shape
    images = f"{' x '.join(map(str, leading))} images" if leading else "one image"
    of_channels = f", channel {channel} of {file.channels} (counted from 0)" if file.channels > 1 else ""
    return f"{file.path}: {images}, {rows} x {columns} {file.dtype}{of_channels}"


def _shift(shift: tuple[float, float] | None) -> str:
    if shift is None:
        return ""
    # Rounded first and zero added, so that a small negative number is not shown as -0.000.
    dy, dx = (round(along, 3) + 0.0 for along in shift)
    return f"({dy:.3f}, {dx:.3f})"


def _heights(plane: PlaneRecord, *, ratio: bool) -> tuple[str, ...]:
    texts = (f"{plane.value:.6g}", f"{plane.ratio:.3g}")[: 1 + ratio]
    return texts if plane.peak is not None else ("",) * len(texts)


def _remark(plane: PlaneRecord) -> Text:
    if plane.problem is not None:
        return Text("no peak" if plane.peak is None else "disagrees", style="red")
    return Text("edge" if plane.on_edge else "", style="yellow")
