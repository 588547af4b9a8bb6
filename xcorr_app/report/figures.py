"""The charts of one stack: the same rows give the same bytes. A chart is None where there is nothing to draw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import matplotlib as mpl
import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator
from numpy.typing import NDArray

from xcorr_app.report.svg import SIZE, svg

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from xcorr_app.report.records import FrameRow

Vector = NDArray[np.float64]

_DY, _DX, _FFT, _QUIET = "#0072B2", "#D55E00", "#00724F", "#6b6b6b"  # after Okabe and Ito, told apart by all
# Positions of axes in the figure: left, bottom, width, height.
_BETWEEN = (0.13, 0.14, 0.74, 0.7)
_SQUARE = (0.15, 0.14, 0.76 * SIZE[1] / SIZE[0], 0.76)
_COLOURS = (0.80, 0.2, 0.025, 0.64)
_LEAST_SPAN = 0.5  # pixels; a smaller range of shifts is not blown up to fill the chart
_MANY = 800  # frames beyond which marks are drawn as pixels, to keep the file small


@dataclass(frozen=True)
class Units:
    """What a pixel and the step from one frame to the next are, (size, unit); None where unknown or senseless."""

    pixel: tuple[float, str] | None = None
    interval: tuple[float, str] | None = None

    def __post_init__(self) -> None:
        for name in ("pixel", "interval"):
            step = getattr(self, name)
            if step is not None and not (np.isfinite(step[0]) and step[0] > 0):
                object.__setattr__(self, name, None)


def trajectory_chart(rows: Sequence[FrameRow], replaced: AbstractSet[int], units: Units | None = None) -> bytes | None:
    """Draw the shift of each frame in the plane: columns to the right, rows downwards, as in the image."""
    measured = [row for row in rows if np.isfinite(row.dy) and np.isfinite(row.dx)]
    if not measured:
        return None
    moved = [row for row in measured if row.frame not in replaced] or measured
    frame, dy, dx = (_column(moved, name) for name in ("frame", "dy", "dx"))
    rings = [row for row in measured if row.flags]
    ring_dy, ring_dx = _column(rings, "dy"), _column(rings, "dx")
    centre_y, centre_x, half = _square(dy, dx)
    outside = (abs(ring_dy - centre_y) > half) | (abs(ring_dx - centre_x) > half)

    def draw(figure: Figure, axes: Axes) -> None:
        many = len(rows) > _MANY
        axes.plot(dx, dy, color="#b5b5b5", linewidth=0.8, zorder=1, rasterized=many)
        dots = axes.scatter(dx, dy, c=frame, cmap=_colours_of_frames(), s=10 if many else 18, zorder=2, rasterized=many)
        _ring(axes, ring_dx[~outside], ring_dy[~outside], many)
        if outside.any():
            axes.plot([], [], " ", label=f"{int(outside.sum())} flagged beyond this view")
        for index, marker, name in ((0, "s", "start"), (-1, "^", "end")):
            axes.plot(dx[index], dy[index], marker, color="black", markersize=6, zorder=4, label=name)
        axes.set_aspect("equal")
        axes.set_xlim(centre_x - half, centre_x + half)
        axes.set_ylim(centre_y + half, centre_y - half)
        axes.set_xlabel("dx (pixels, to the right)")
        axes.set_ylabel("dy (pixels, downwards)")
        axes.set_position(_SQUARE)
        _second_axis(axes, "y", None if units is None else units.pixel, "dy")
        if len(moved) > 1:
            bar = figure.colorbar(dots, cax=figure.add_axes(_COLOURS), label="frame")
            bar.ax.yaxis.set_major_locator(MaxNLocator(6, integer=True, steps=[1, 2, 5, 10]))
        _legend_above(axes)

    return svg(draw)


def shift_chart(rows: Sequence[FrameRow], max_shift: tuple[float, float], units: Units | None = None) -> bytes | None:
    """Draw dy and dx against the frame, with the edges of the search window where they are near."""
    frame, dy, dx = (_column(rows, name) for name in ("frame", "dy", "dx"))
    if not np.isfinite(dy).any():
        return None

    def draw(_: Figure, axes: Axes) -> None:
        many = len(rows) > _MANY
        for values, color, style, name, window in (
            (dy, _DY, "-", "dy (rows)", max_shift[0]),
            (dx, _DX, "--", "dx (columns)", max_shift[1]),
        ):
            _line(axes, frame, values, color, style, name, many)
            if window > 0 and (abs(values) > 0.7 * window).any():
                for edge in (-window, window):
                    axes.axhline(edge, color=color, linestyle=":", linewidth=1)
        if any(not row.as_measured for row in rows):
            for name, color in (("applied_dy", _DY), ("applied_dx", _DX)):
                axes.plot(frame, _column(rows, name), ":", color=color, linewidth=1.2, rasterized=many)
        flagged = _flagged(rows)
        _ring(axes, np.tile(frame[flagged], 2), np.concatenate([dy[flagged], dx[flagged]]), many)
        _mark_missing(axes, frame, ~np.isfinite(dy))
        _frame_axis(axes, frame)
        low, high = np.nanmin([dy, dx]), np.nanmax([dy, dx])
        if high - low < _LEAST_SPAN:
            axes.set_ylim((low + high - _LEAST_SPAN) / 2, (low + high + _LEAST_SPAN) / 2)
        axes.set_ylabel("shift (pixels)")
        if units is not None and (units.pixel or units.interval):
            axes.set_position(_BETWEEN)
            _second_axis(axes, "y", units.pixel, "shift")
            _second_axis(axes, "x", units.interval, "")
        _legend_above(axes, 1.0 if units is None or units.interval is None else 1.12)

    return svg(draw)


def score_chart(rows: Sequence[FrameRow]) -> bytes | None:
    """Draw the score against the frame."""
    frame, score = _column(rows, "frame"), _column(rows, "score")
    finite = score[np.isfinite(score)]
    if not finite.size:
        return None

    def draw(_: Figure, axes: Axes) -> None:
        many = len(rows) > _MANY
        _line(axes, frame, score, _DY, "-", "score", many)
        _ring(axes, frame[_flagged(rows)], score[_flagged(rows)], many)
        _mark_missing(axes, frame, ~np.isfinite(score))
        if finite.min() >= -1 and finite.max() <= 1 + 1e-6:
            bottom = np.floor(finite.min() * 10 - 0.2) / 10
            axes.set_ylim(bottom, 1 + 0.03 * (1 - bottom))
        _frame_axis(axes, frame)
        axes.set_ylabel("score at the best shift")
        _legend_above(axes)

    return svg(draw)


def error_chart(rows: Sequence[FrameRow]) -> bytes | None:
    """Draw the predicted standard errors against the frame, on a logarithmic scale."""
    frame, sigma_y, sigma_x = (_column(rows, name) for name in ("frame", "sigma_y", "sigma_x"))
    known = [values[np.isfinite(values) & (values > 0)] for values in (sigma_y, sigma_x)]
    if not all(values.size for values in known):
        return None

    def draw(_: Figure, axes: Axes) -> None:
        many = len(rows) > _MANY
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_locator(NullLocator())
        _line(axes, frame, np.where(sigma_y > 0, sigma_y, np.nan), _DY, "-", "of dy", many)
        _line(axes, frame, np.where(sigma_x > 0, sigma_x, np.nan), _DX, "--", "of dx", many)
        uncertain = np.array(["uncertain" in row.flags for row in rows])
        _ring(axes, frame[uncertain], np.fmax(sigma_y, sigma_x)[uncertain], many)
        values = np.concatenate(known)
        # A frame measured against itself has next to no error: it must not flatten the others.
        low, high = max(float(values.min()), float(np.median(values)) / 30), float(values.max())
        axes.set_ylim(10 ** np.floor(np.log10(low) - 0.05), 10 ** np.ceil(np.log10(high) + 0.05))
        _frame_axis(axes, frame)
        axes.set_ylabel("standard error (pixels)")
        _legend_above(axes)

    return svg(draw)


def agreement_chart(rows: Sequence[FrameRow], tolerance: float) -> bytes | None:
    """Draw the distance of each verified shift from the FFT reference's, on a logarithmic scale."""
    frame, difference = _column(rows, "frame"), _column(rows, "difference")
    verified = np.isfinite(difference)
    if not verified.any():
        return None
    shown = [value for value in (*difference[verified & (difference > 0)], tolerance) if value > 0] or [1.0]
    # Differences of zero have no place on a logarithmic scale: they stand on the lowest line, which says so.
    floor = 10.0 ** np.floor(np.log10(max(min(shown), 1e-9)) - 1)

    def draw(_: Figure, axes: Axes) -> None:
        many = len(rows) > _MANY
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_locator(NullLocator())
        heights = np.maximum(difference[verified], floor)
        axes.plot(frame[verified], heights, ".", color=_FFT, markersize=4, rasterized=many, label="difference")
        if tolerance > 0:
            axes.axhline(tolerance, color="black", linestyle="--", linewidth=1, label=f"tolerance {tolerance:g} px")
        beyond = verified & np.array(["disagrees" in row.flags for row in rows])
        _ring(axes, frame[beyond], difference[beyond], many)
        axes.set_ylim(floor * 0.7, max(shown) * 4)
        if (difference[verified] <= floor).any():
            axes.axhline(floor, color=_QUIET, linestyle=":", linewidth=1, label=f"≤ {floor:.0e} px")
        _frame_axis(axes, frame)
        axes.set_ylabel("difference (pixels)")
        _legend_above(axes)

    return svg(draw)


def _colours_of_frames() -> ListedColormap:
    """Viridis without its brightest part, which is hard to see on white, and inverted on black."""
    return ListedColormap(mpl.colormaps["viridis"](np.linspace(0, 0.85, 256)))


def tiles_chart(tiles: Sequence[Sequence[float]]) -> bytes | None:
    """Draw in which share of the frames each tile of the picture moves otherwise; rows downwards, as in the image."""
    share = np.array(tiles, dtype=np.float64)
    if share.ndim != 2 or not np.isfinite(share).any():
        return None

    def draw(figure: Figure, axes: Axes) -> None:
        axes.grid(visible=False)
        axes.set_facecolor("#e4e4e4")
        drawn = axes.imshow(share, cmap="viridis", vmin=0, vmax=1, interpolation="nearest")
        axes.set_position(_SQUARE)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(MaxNLocator(6, integer=True))
        axes.set_xlabel("column of tiles")
        axes.set_ylabel("row of tiles")
        figure.colorbar(drawn, cax=figure.add_axes(_COLOURS), label="share of frames in which it differs")

    return svg(draw)


def _column(rows: Sequence[FrameRow], name: str) -> Vector:
    values = np.array([getattr(row, name) for row in rows], dtype=np.float64)  # None becomes nan
    values[np.isinf(values)] = np.nan
    return values


def _flagged(rows: Sequence[FrameRow]) -> NDArray[np.bool_]:
    return np.array([bool(row.flags) for row in rows])


def _square(dy: Vector, dx: Vector) -> tuple[float, float, float]:
    """Centre and half side of a square around all shifts, with a margin."""
    centres = [(values.max() + values.min()) / 2 for values in (dy, dx)]
    half = 0.56 * max(np.ptp(dy), np.ptp(dx), _LEAST_SPAN)
    return float(centres[0]), float(centres[1]), float(half)


def _line(axes: Axes, x: Vector, y: Vector, color: str, style: str, name: str, many: bool) -> None:
    # The small marks show a frame whose neighbours were not measured, which a line alone would not.
    width, mark = (0.5, 1.2) if many else (1.1, 3.0)
    axes.plot(x, y, style, color=color, linewidth=width, marker=".", markersize=mark, label=name, rasterized=many)


def _ring(axes: Axes, x: Vector, y: Vector, many: bool) -> None:
    if np.isfinite(y).any():
        ring: dict[str, Any] = {
            "markerfacecolor": "none",
            "markeredgecolor": "black",
            "markersize": 5 if many else 8,
            "markeredgewidth": 0.7 if many else 1.1,
        }
        axes.plot(x, y, "o", label="flagged", zorder=5, rasterized=many, **ring)


def _mark_missing(axes: Axes, frame: Vector, missing: NDArray[np.bool_]) -> None:
    if missing.any():
        x = frame[missing]
        axes.plot(
            x,
            np.full(x.shape, 0.02),
            "x",
            color="black",
            markersize=5,
            transform=axes.get_xaxis_transform(),
            clip_on=False,
            label="not measured",
            rasterized=len(frame) > _MANY,
        )


def _frame_axis(axes: Axes, frame: Vector) -> None:
    margin = max(0.5, 0.02 * float(np.ptp(frame)))
    axes.set_xlim(frame.min() - margin, frame.max() + margin)
    axes.ticklabel_format(axis="x", style="plain")
    axes.xaxis.set_major_locator(MaxNLocator(8, integer=True, steps=[1, 2, 5, 10]))
    axes.set_xlabel("frame")


def _second_axis(axes: Axes, which: Literal["x", "y"], step: tuple[float, str] | None, label: str) -> None:
    """Repeat an axis at the other side in physical units, where they are known."""
    if step is None:
        return
    size, unit = step
    both = (lambda value: value * size, lambda value: value / size)
    if which == "y":
        other = axes.secondary_yaxis("right", functions=both)
        other.set_ylabel(f"{label} ({unit})" if label else unit)
    else:
        other = axes.secondary_xaxis("top", functions=both)
        other.set_xlabel(unit, loc="right", labelpad=1)
    other.spines[:].set_visible(False)
    other.tick_params(length=2, labelsize=8.5, pad=2)


def _legend_above(axes: Axes, height: float = 1.0) -> None:
    axes.legend(loc="lower left", bbox_to_anchor=(0.05, height), ncols=4, handlelength=1.6, columnspacing=0.9)
