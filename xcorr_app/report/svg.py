"""Drawings as SVG, through matplotlib's object-oriented interface with its default style.

Whatever the user's own configuration says, and whenever it is drawn, the same drawing gives the same bytes. Nothing is
drawn behind it, so that it can stand on a light page or a dark one.
"""

from __future__ import annotations

import io
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import matplotlib.style
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from matplotlib.axes import Axes

SIZE = (5.2, 3.4)  # inches
# Position of the axes: left, bottom, width, height. Fixed, since laying them out costs as much as drawing.
_WIDE = (0.15, 0.14, 0.81, 0.76)
_STYLE: dict[str, Any] = {
    "svg.fonttype": "path",
    "svg.hashsalt": "xcorr",
    "font.size": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#555555",
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "grid.color": "#e4e4e4",
    "legend.frameon": False,
    "legend.fontsize": 8.5,
}
_lock = threading.Lock()  # matplotlib's settings are global; they are ours only inside this lock


def svg(draw: Callable[[Figure, Axes], None]) -> bytes:
    """Draw on empty axes and return what that gives."""
    buffer = io.BytesIO()
    with _own_style():
        figure = Figure(figsize=SIZE, dpi=120)  # the resolution of what is drawn as pixels
        axes = figure.add_axes(_WIDE)
        axes.ticklabel_format(scilimits=(-3, 5))
        draw(figure, axes)
        # The canvas is asked directly, because `savefig` draws everything twice. Neither date nor version is
        # written: the same rows give the same bytes.
        canvas: Any = FigureCanvasSVG(figure)
        canvas.print_svg(buffer, metadata={"Date": None, "Creator": None})
    return buffer.getvalue()


@contextmanager
def _own_style() -> Iterator[None]:
    with _lock, matplotlib.style.context(["default", _STYLE]):
        yield
