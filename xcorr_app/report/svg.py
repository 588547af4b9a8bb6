"""Charts as SVG, written as text: the same drawing gives the same bytes, at no cost to speak of.

A chart stands in the page itself: letters are in its font, and every colour is one of its style sheet, which has others
for dark pages. Nothing in it has a name, so that any number of charts can stand in a page. However many values there
are, a chart stays small: no more is written than can be seen.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from html import escape

import numpy as np
from numpy.typing import NDArray

_STEPS = (1, 2, 5, 10)
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Axis:
    """Values from `low` at one end of a chart to `high` at the other, low < high.

    Attributes
    ----------
    is_log : bool
        By their logarithm; both ends are above zero.
    whole : bool
        Only whole numbers are written beside it.
    """

    low: float
    high: float
    label: str
    is_log: bool = False
    whole: bool = False

    def share(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """How far along the axis values are, 0 to 1."""
        if self.is_log:
            with np.errstate(divide="ignore", invalid="ignore"):
                return (np.log10(values) - math.log10(self.low)) / math.log10(self.high / self.low)
        return (values - self.low) / (self.high - self.low)

    def ticks(self, number: int = 7) -> list[tuple[float, str]]:
        """At most so many round values, or some more, and how they are written."""
        if self.is_log:
            return self._decades(number)
        step = round_step((self.high - self.low) / number)
        if self.whole:
            step = max(1.0, step)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        if last - first > 4 * number:
            # Values so large that their distance is lost in rounding.
            return []
        return [(k * step, written(k * step, step)) for k in range(first, last + 1)]

    def _decades(self, number: int) -> list[tuple[float, str]]:
        first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
        every = max(1, -(-(last - first) // number))
        return [(10.0**k, _power(k)) for k in range(first, last + 1, every)]

    def in_units(self, size: float, label: str) -> Axis:
        """The same axis in other units, of which one step of this one has `size`."""
        return Axis(self.low * size, self.high * size, label)


def round_step(least: float) -> float:
    """Smallest of 1, 2 or 5 times a power of ten that is not below `least`."""
    decade = 10.0 ** math.floor(math.log10(least))
    return next(step * decade for step in _STEPS if step * decade >= least * (1 - 1e-9))


def written(value: float, step: float) -> str:
    """A value to as many places as `step` needs."""
    if not 1e-3 <= step < 1e5 or abs(value) >= 1e6:
        return f"{value:.6g}"
    return f"{value:.{max(0, -math.floor(math.log10(step) + 1e-9))}f}".replace("-", "−")


def _power(exponent: int) -> str:
    return f"{10.0**exponent:g}" if -3 < exponent < 5 else "10" + str(exponent).translate(_SUPERSCRIPTS)


Vector = NDArray[np.float64]
Box = tuple[float, float, float, float]
"""Left, top, width, height."""

WIDTH, HEIGHT = 520, 340
WIDE: Box = (70, 40, 434, 250)
BETWEEN: Box = (66, 46, 388, 244)
"""Room for a second axis at the top and at the right."""
SQUARE: Box = (80, 40, 250, 250)
_BAR: Box = (430, 48, 13, 234)
INK, GRID = "currentColor", "var(--line)"
"""Colours of the page."""
_FRAME, _SHADES = "var(--rule)", 24
MAX_POINTS = 1200
"""Of a line, unless less is asked for; of marks less than half as many."""
# matplotlib's viridis at eighths.
_VIRIDIS = ("#440154", "#472d7b", "#3b528b", "#2c728e", "#21918c", "#28ae80", "#5ec962", "#addc30", "#fde725")


class Chart:
    """Axes, and what is drawn on them, in the order in which it is asked for."""

    def __init__(self, x: Axis, y: Axis, box: Box = WIDE, *, downwards: bool = False, points: int = MAX_POINTS) -> None:
        self.points = points
        self._x, self._y, self._box, self._downwards = x, y, box, downwards
        self._drawn: list[str] = []
        self._others: list[str] = []
        self._legend: list[tuple[str, str]] = []
        self._legend_height = box[1] - 14

    def line(self, x: Vector, y: Vector, colour: str, *, width: float, dash: str = "", name: str = "") -> None:
        """Join points in their order, but for those that have no place; a point between two of them is a dot."""
        style = f'stroke="{colour}" stroke-width="{width:g}"' + (f' stroke-dasharray="{dash}"' if dash else "")
        across, down = self._places(x, y)
        path, pen = [], False
        visible = self._visible(across, down)
        for right, low in zip(across[visible].tolist(), down[visible].tolist(), strict=True):
            if not math.isfinite(right + low):
                pen = False
                continue
            path.append(f"L{right:.1f} {low:.1f}" if pen else f"M{right:.1f} {low:.1f}h0")
            pen = True
        self._drawn.append(f'<path class="line" fill="none" stroke-linecap="round" {style} d="{"".join(path)}"/>')
        if name:
            self._legend.append((f'<path fill="none" {style} d="M0 -4h26"/>', name))

    def dots(self, x: Vector, y: Vector, colour: str, size: float) -> None:
        """Mark points of one colour."""
        places = self._marks(x, y)
        path = "".join(f"M{across:.1f} {down:.1f}h0" for across, down in places)
        if path:
            style = f'stroke="{colour}" stroke-width="{size:g}"'
            self._drawn.append(f'<path class="dots" fill="none" stroke-linecap="round" {style} d="{path}"/>')

    def coloured_dots(self, x: Vector, y: Vector, order: Vector, size: float) -> None:
        """Mark points by a colour that goes with `order`, and say so by a bar."""
        low, high = float(order.min()), float(order.max())
        groups = np.rint((order - low) / max(high - low, 1) * 31).astype(int)
        every = -(-len(x) // self.points)
        for group in range(32):
            mine = np.flatnonzero(groups == group)[::every]
            if mine.size:
                self.dots(x[mine], y[mine], colour_of(0.85 * group / 31), size)
        if high > low:
            self.colour_bar(Axis(low, high, "frame", whole=True), 0.85)

    def rings(self, x: Vector, y: Vector, name: str, radius: float = 5.5) -> None:
        """Circles around points."""
        arc = f"a{radius:g} {radius:g} 0 1 1"
        self._symbols("ring", f"m{radius:g} 0{arc} {-2 * radius:g} 0{arc} {2 * radius:g} 0", x, y, name)

    def crosses(self, x: Vector, name: str) -> None:
        """Crosses at the foot of the chart."""
        foot = np.full(x.shape, self._y.low)
        self._symbols("cross", "m-3.5 -3.5l7 7m0 -7l-7 7", x, foot, name)

    def mark(self, x: float, y: float, path: str, name: str) -> None:
        """Draw one filled mark, of a path relative to its place."""
        self._symbols("mark", path, np.array([x]), np.array([y]), name, fill=INK)

    def level(self, y: float, colour: str, name: str = "") -> None:
        """Draw a dotted line across."""
        self.line(np.array([self._x.low, self._x.high]), np.array([y, y]), colour, width=1.4, dash="2 3", name=name)

    def note(self, text: str) -> None:
        """Write a line into the legend."""
        self._legend.append(("", text))

    def tile(self, x: float, y: float, colour: str, size: tuple[float, float] = (1.0, 1.0)) -> None:
        """Fill the rectangle from (x, y) to `size` further on each axis."""
        (left, right), (top, bottom) = self._places(np.array([x, x + size[0]]), np.array([y, y + size[1]]))
        sides = f'width="{right - left:.1f}" height="{bottom - top:.1f}"'
        self._drawn.append(f'<rect class="tile" x="{left:.1f}" y="{top:.1f}" {sides} fill="{colour}"/>')

    def second_axis(self, which: str, axis: Axis) -> None:
        """Write an axis at the right (``y``) or at the top (``x``) as well."""
        left, top, width, height = self._box
        for value, text in axis.ticks(7 if which == "y" else 8):
            share = float(axis.share(np.array(value)))
            share = 1 - share if which == "y" and not self._downwards else share
            if which == "y":
                self._others.append(_text(left + width + 6, top + share * height + 4, text))
            else:
                self._others.append(_text(left + share * width, top - 5, text, "middle"))
        if which == "y":
            self._others.append(_upright(left + width + 52, top + height / 2, axis.label))
        else:
            self._others.append(_text(left + width + 12, top - 5, axis.label))
            self._legend_height = top - 24

    def colour_bar(self, axis: Axis, end: float = 1.0) -> None:
        """Colours from the first to `end` of all, upwards, and the values that they stand for."""
        left, top, width, height = _BAR
        step = height / _SHADES
        for k in range(_SHADES):
            place = f'x="{left}" y="{top + height - (k + 1) * step:.2f}" width="{width}" height="{step + 0.3:.2f}"'
            self._others.append(f'<rect {place} fill="{colour_of(end * k / (_SHADES - 1))}"/>')
        for value, text in axis.ticks(6):
            down = top + (1 - float(axis.share(np.array(value)))) * height
            self._others.append(_text(left + width + 5, down + 4, text))
        self._others.append(_upright(left - 8, top + height / 2, axis.label))

    def svg(self) -> str:
        """The whole chart."""
        left, top, width, height = self._box
        within = [left - 6, top - 6, width + 12, height + 12]
        place = 'x="{}" y="{}" width="{}" height="{}"'.format(*within)
        parts = [
            f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" aria-hidden="true"',
            f' font-size="13" fill="{INK}">',
        ]
        lines = []
        for value, text in self._x.ticks(8):
            x = left + float(self._x.share(np.array(value))) * width
            lines.append(f"M{x:.1f} {top}v{height}")
            parts.append(_text(x, top + height + 17, text, "middle"))
        for value, text in self._y.ticks():
            share = float(self._y.share(np.array(value)))
            y = top + (share if self._downwards else 1 - share) * height
            lines.append(f"M{left} {y:.1f}h{width}")
            parts.append(_text(left - 7, y + 4, text, "end"))
        parts += [
            f'<path fill="none" stroke="{GRID}" d="{"".join(lines)}"/>',
            f'<path fill="none" stroke="{_FRAME}" d="M{left} {top}v{height}h{width}"/>',
            _text(left + width / 2, top + height + 38, self._x.label, "middle"),
            _upright(16, top + height / 2, self._y.label),
            # A drawing within a drawing shows nothing beyond its edges.
            f'<svg {place} viewBox="{" ".join(map(str, within))}">{"".join(self._drawn)}</svg>',
            *self._others,
        ]
        at = left + 6
        for symbol, name in self._legend:
            parts.append(f'<g transform="translate({at:.0f} {self._legend_height})">{symbol}{_text(32, 0, name)}</g>')
            at += 46 + 6.6 * len(name)
        return "".join([*parts, "</svg>"])

    def _symbols(self, name: str, path: str, x: Vector, y: Vector, label: str, fill: str = "none") -> None:
        style = f'fill="{fill}" stroke="{INK}" stroke-width="1.4"'
        drawn = "".join(f"M{across:.1f} {down:.1f}{path}" for across, down in self._marks(x, y))
        self._drawn.append(f'<path class="{name}" {style} d="{drawn}"/>')
        self._legend.append((f'<path {style} d="M18 -4{path}"/>', label))

    def _places(self, x: Vector, y: Vector) -> tuple[Vector, Vector]:
        left, top, width, height = self._box
        down = self._y.share(y)
        # Far outside, a place is no longer looked at; numbers without end are none.
        limits = (-10.0, 11.0)
        down = np.clip(down if self._downwards else 1 - down, *limits)
        return left + np.clip(self._x.share(x), *limits) * width, top + down * height

    def _marks(self, x: Vector, y: Vector) -> list[tuple[float, float]]:
        """Places of marks; of many that lie within two pixels of each other, one."""
        across, down = self._places(x, y)
        known = np.isfinite(across) & np.isfinite(down)
        places = list(zip(across[known].tolist(), down[known].tolist(), strict=True))
        most = max(1, 5 * self.points // 12)
        if len(places) > most:
            places = list({(round(a / 2), round(b / 2)): (a, b) for a, b in places}.values())
        return places[:: -(-len(places) // most)] if places else []

    def _visible(self, across: Vector, down: Vector) -> NDArray[np.intp]:
        """Which of many points are drawn: of each stretch the highest, the lowest and the first without a place."""
        count = len(across)
        if count <= self.points:
            return np.arange(count)
        length = -(-2 * count // self.points)
        places = np.full((-(-count // length), length), np.nan)
        places.ravel()[:count] = np.where(np.isfinite(across), down, np.nan)
        known = np.isfinite(places)
        lowest = np.where(known, places, np.inf).argmin(axis=1)
        highest = np.where(known, places, -np.inf).argmax(axis=1)
        missing = np.where(known.all(axis=1), lowest, known.argmin(axis=1))
        drawn = np.zeros(places.shape, dtype=bool)
        for chosen in (lowest, highest, missing):
            drawn[np.arange(len(places)), chosen] = True
        # The last stretch may reach beyond the points.
        return np.flatnonzero(drawn.ravel()[:count])


@functools.cache
def colour_of(share: float) -> str:
    """Colour of a number from 0 to 1, from dark violet through green to yellow."""
    stops = np.array([[int(stop[i : i + 2], 16) for i in (1, 3, 5)] for stop in _VIRIDIS])
    red, green, blue = (int(round(np.interp(share * 8, range(9), stops[:, i]))) for i in range(3))  # noqa: RUF046
    return f"#{red:02x}{green:02x}{blue:02x}"


def _text(x: float, y: float, text: str, anchor: str = "") -> str:
    place = f' text-anchor="{anchor}"' if anchor else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{place}>{escape(text)}</text>' if text else ""


def _upright(x: float, y: float, text: str) -> str:
    turned = f'transform="translate({x:.1f} {y:.1f}) rotate(-90)" text-anchor="middle"'
    return f"<text {turned}>{escape(text)}</text>" if text else ""
