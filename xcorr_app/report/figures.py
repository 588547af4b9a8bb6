"""The charts of one stack: the same rows give the same bytes. A chart is None where there is nothing to draw."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

import numpy as np
from numpy.typing import NDArray

from xcorr_app.registration.results.frame_table import array_of
from xcorr_app.report.records import Bends, FrameRow
from xcorr_app.report.svg import BETWEEN, GRID, INK, MAX_POINTS, SQUARE, WIDE, Axis, Box, Chart, Vector, colour_of

_DY, _DX = "var(--rows)", "var(--columns)"  # told apart by all
_MIN_SPAN = 0.5  # pixels; a smaller range of shifts is not blown up to fill the chart
_MANY = 800  # frames beyond which marks and lines are thin
_STILL = 1e-4  # degrees or shares by which nothing is seen to turn or grow
_MAX_ARROWS = 12  # along a side
_SQUARE_MARK, _TRIANGLE = "m-3.5 -3.5h7v7h-7z", "m-4 3.5h8l-4 -7z"


Unit = tuple[float, str]
"""Size of a pixel, or of the step from one frame to the next, and its unit."""


def trajectory_chart(
    rows: Sequence[FrameRow], replaced: AbstractSet[int], pixel: Unit | None = None, points: int = MAX_POINTS
) -> str | None:
    """Draw the shift of each frame in the plane: columns to the right, rows downwards, as in the image."""
    measured = [row for row in rows if np.isfinite(row.dy) and np.isfinite(row.dx)]
    if not measured:
        return None
    moved = [row for row in measured if row.frame not in replaced] or measured
    frame, dy, dx = (_column(moved, name) for name in ("frame", "dy", "dx"))
    rings = [row for row in measured if row.is_flagged]
    ring_dy, ring_dx = _column(rings, "dy"), _column(rings, "dx")
    centre_y, centre_x, half = _square(dy, dx)
    outside = (abs(ring_dy - centre_y) > half) | (abs(ring_dx - centre_x) > half)
    down = Axis(centre_y - half, centre_y + half, "dy (pixels, downwards)")
    across = Axis(centre_x - half, centre_x + half, "dx (pixels, to the right)")
    chart = Chart(across, down, SQUARE, downwards=True, points=points)
    chart.line(dx, dy, "#b5b5b5", width=1.1)
    chart.coloured_dots(dx, dy, frame, 4 if len(rows) > _MANY else 6)
    if rings and not outside.all():
        _ring(chart, ring_dx[~outside], ring_dy[~outside], len(rows))
    if outside.any():
        chart.note(f"{int(outside.sum())} flagged beyond this view")
    for index, mark, name in ((0, _SQUARE_MARK, "start"), (-1, _TRIANGLE, "end")):
        chart.mark(dx[index], dy[index], mark, name)
    if pixel is not None:
        chart.second_axis("y", down.in_units(pixel[0], f"dy ({pixel[1]})"))
    return chart.svg()


def shift_chart(
    rows: Sequence[FrameRow],
    max_shift: tuple[float, float],
    units: tuple[Unit | None, Unit | None] = (None, None),
    points: int = MAX_POINTS,
) -> str | None:
    """Draw dy and dx against the frame, with the edges of the search window where they are near.

    `units` are those of a pixel and of the step from one frame to the next, where they are known.
    """
    frame, dy, dx = (_column(rows, name) for name in ("frame", "dy", "dx"))
    if not np.isfinite(dy).any():
        return None
    near = [
        (edge, colour)
        for values, colour, window in ((dy, _DY, max_shift[0]), (dx, _DX, max_shift[1]))
        for edge in (-window, window)
        if window > 0 and (abs(values) > 0.7 * window).any()
    ]
    replaced = any(not row.as_measured for row in rows)
    applied = [_column(rows, name) for name in ("applied_dy", "applied_dx")] if replaced else []
    y, (pixel, interval) = _spanned("shift (pixels)", dy, dx, *applied, np.array([edge for edge, _ in near])), units
    lines = {"dy (rows)": dy, "dx (columns)": dx}
    chart = _over_frames(frame, y, lines, _flagged(rows), points, BETWEEN if pixel or interval else WIDE)
    for number, (edge, colour) in enumerate(near):
        chart.level(edge, colour, "" if number else "window")
    for values, colour in zip(applied, (_DY, _DX), strict=False):
        chart.line(frame, values, colour, width=1.6, dash="1.5 3")
    if pixel is not None:
        chart.second_axis("y", y.in_units(pixel[0], f"shift ({pixel[1]})"))
    if interval is not None:
        chart.second_axis("x", _frames(frame).in_units(*interval))
    return chart.svg()


def score_chart(rows: Sequence[FrameRow], points: int = MAX_POINTS) -> str | None:
    """Draw the score against the frame."""
    frame, score = _column(rows, "frame"), _column(rows, "score")
    finite = score[np.isfinite(score)]
    if not finite.size:
        return None
    y = _spanned("score at the best shift", score)
    if finite.min() >= -1 and finite.max() <= 1 + 1e-6:
        bottom = float(np.floor(finite.min() * 10 - 0.2) / 10)
        y = Axis(bottom, 1 + 0.03 * (1 - bottom), y.label)
    return _over_frames(frame, y, {"score": score}, _flagged(rows), points).svg()


def turn_chart(
    frames: Sequence[int], values: Sequence[float], label: str, middle: float, points: int = MAX_POINTS
) -> str | None:
    """Draw the angle, or the scale, of each frame; of one that stays at its `middle` there is nothing to draw."""
    frame, value = np.array(frames, dtype=np.float64), np.array(values, dtype=np.float64)
    finite = value[np.isfinite(value)]
    if not finite.size or np.abs(finite - middle).max() < _STILL:
        return None
    margin = 0.06 * max(float(np.ptp(finite)), 10 * _STILL)
    y = Axis(float(finite.min()) - margin, float(finite.max()) + margin, label)
    return _over_frames(frame, y, {label.partition(" ")[0]: value}, np.zeros(len(frame), bool), points).svg()


def error_chart(rows: Sequence[FrameRow], limit: float | None = None, points: int = MAX_POINTS) -> str | None:
    """Draw the predicted standard errors against the frame, on a logarithmic scale."""
    lines = {name: _column(rows, column) for name, column in (("of dy", "sigma_y"), ("of dx", "sigma_x"))}
    lines = {name: np.where(values > 0, values, np.nan) for name, values in lines.items()}
    if not all(np.isfinite(values).any() for values in lines.values()):
        return None
    values = np.concatenate([values[np.isfinite(values)] for values in lines.values()])
    # A frame measured against itself has next to no error: it must not flatten the others.
    low, high = max(float(values.min()), float(np.median(values)) / 30), max(float(values.max()), limit or 0.0)
    ends = 10 ** np.floor(np.log10(low) - 0.05), 10 ** np.ceil(np.log10(high) + 0.05)
    y = Axis(float(ends[0]), float(ends[1]), "standard error (pixels)", is_log=True)
    uncertain = np.array(["uncertain" in row.flags for row in rows])
    chart = _over_frames(_column(rows, "frame"), y, lines, uncertain, points, crossed=False)
    if limit:
        chart.level(limit, INK, "flagged above")
    return chart.svg()


def tiles_chart(tiles: Sequence[Sequence[float]]) -> str | None:
    """Draw in which share of the frames each tile of the picture moves otherwise; rows downwards, as in the image."""
    share = np.array(tiles, dtype=np.float64)
    if share.ndim != 2 or not np.isfinite(share).any():
        return None
    height, width = share.shape
    chart = _map(Axis(0, width, "column of tiles", whole=True), Axis(0, height, "row of tiles", whole=True))
    for (row, column), value in np.ndenumerate(share):
        chart.tile(column, row, colour_of(float(value)) if np.isfinite(value) else GRID)
    chart.colour_bar(Axis(0, 1, "share of frames in which it differs"))
    return chart.svg()


def bends_chart(bends: Bends) -> str | None:
    """Draw by how much parts of frames move otherwise: tiles for all frames, arrows for the one that bends most."""
    size, arrows = np.array(bends.size, dtype=np.float64), np.array(bends.arrows, dtype=np.float64)
    rows, columns = np.array(bends.rows, dtype=np.float64), np.array(bends.columns, dtype=np.float64)
    if not np.isfinite(size).any() or not np.isfinite(arrows).all():
        return None
    edges = [np.concatenate([axis[:1], (axis[1:] + axis[:-1]) / 2, axis[-1:]]) for axis in (rows, columns)]
    height, width = (max(float(np.ptp(axis)), 1.0) for axis in (rows, columns))
    chart = _map(
        Axis(columns[0], columns[0] + width, "column (pixels)"), Axis(rows[0], rows[0] + height, "row (pixels)")
    )
    most = max(float(size.max()), 1e-6)
    for (i, j), value in np.ndenumerate(size):
        sides = float(edges[1][j + 1] - edges[1][j]), float(edges[0][i + 1] - edges[0][i])
        chart.tile(float(edges[1][j]), float(edges[0][i]), colour_of(float(value) / most), sides)
    chart.colour_bar(Axis(0, most, "median distance from the mean shift (pixels)"))
    every = -(-max(size.shape) // _MAX_ARROWS)
    rows, columns, arrows = rows[::every], columns[::every], arrows[::every, ::every]
    # The longest arrow spans the gap between two of them.
    longest = max(float(np.hypot(arrows[..., 0], arrows[..., 1]).max()), 1e-6)
    gap = max(height / max(rows.size - 1, 1), width / max(columns.size - 1, 1))
    along = arrows * (0.9 * gap / longest)
    y, x = np.meshgrid(rows, columns, indexing="ij")
    heads = [(1.0, 0.0), (0.7, 0.2), (1.0, 0.0), (0.7, -0.2)]
    points = [(0.0, 0.0), *heads, (np.nan, np.nan)]
    across = np.stack([x + forth * along[..., 1] - aside * along[..., 0] for forth, aside in points], axis=-1)
    down = np.stack([y + forth * along[..., 0] + aside * along[..., 1] for forth, aside in points], axis=-1)
    chart.line(across.ravel(), down.ravel(), "#ffffff", width=1.4)
    chart.note(f"longest arrow: {longest:.2g} pixels, frame {bends.frame}")
    return chart.svg()


def _map(across: Axis, down: Axis) -> Chart:
    """A chart of places in the picture, whose two axes have one scale."""
    left, top, side, _ = SQUARE
    scale = side / max(across.high - across.low, down.high - down.low)
    box = left, top, (across.high - across.low) * scale, (down.high - down.low) * scale
    return Chart(across, down, box, downwards=True)


def _column(rows: Sequence[FrameRow], name: str) -> Vector:
    values: Vector = array_of(rows, name)[:, 0]
    values[np.isinf(values)] = np.nan
    return values


def _flagged(rows: Sequence[FrameRow]) -> NDArray[np.bool_]:
    return np.array([row.is_flagged for row in rows])


def _square(dy: Vector, dx: Vector) -> tuple[float, float, float]:
    """Centre and half side of a square around all shifts, with a margin."""
    centres = [(values.max() + values.min()) / 2 for values in (dy, dx)]
    half = 0.56 * max(np.ptp(dy), np.ptp(dx), _MIN_SPAN)
    return float(centres[0]), float(centres[1]), float(half)


def _frames(frame: Vector) -> Axis:
    margin = max(0.5, 0.02 * float(np.ptp(frame)))
    return Axis(float(frame.min()) - margin, float(frame.max()) + margin, "frame", whole=True)


def _spanned(label: str, *columns: Vector) -> Axis:
    """An axis that has room for all values, and a margin."""
    values = np.concatenate(columns)
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    middle, half = (low + high) / 2, 0.55 * max(high - low, _MIN_SPAN)
    return Axis(middle - half, middle + half, label)


def _over_frames(
    frame: Vector,
    y: Axis,
    lines: Mapping[str, Vector],
    ringed: NDArray[np.bool_],
    points: int,
    box: Box = WIDE,
    *,
    crossed: bool = True,
) -> Chart:
    """A chart of values against the frame: one line or two, rings around some, crosses where the first is not known."""
    chart, many = Chart(_frames(frame), y, box, points=points), len(frame) > min(_MANY, points)
    for (name, values), (colour, dash) in zip(lines.items(), ((_DY, ""), (_DX, "6 3")), strict=False):
        chart.line(frame, values, colour, width=0.8 if many else 1.6, dash=dash, name=name)
        if not many:
            chart.dots(frame, values, colour, 3.6)
    _ring(
        chart, np.tile(frame[ringed], len(lines)), np.concatenate([each[ringed] for each in lines.values()]), len(frame)
    )
    missing = ~np.isfinite(next(iter(lines.values())))
    if crossed and missing.any():
        chart.crosses(frame[missing], "not measured")
    return chart


def _ring(chart: Chart, x: Vector, y: Vector, frames: int) -> None:
    if np.isfinite(y).any():
        chart.rings(x, y, "flagged", 3 if frames > _MANY else 5.5)
