"""From records to what the page shows: pictures as data addresses, their shapes, captions and alternatives."""

import base64
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.report.encoding import ALONE, Room, film, picture_file
from xcorr_app.report.figures import (
    Unit,
    bends_chart,
    error_chart,
    score_chart,
    shift_chart,
    tiles_chart,
    trajectory_chart,
    turn_chart,
)
from xcorr_app.report.pictures import GreyScale, ScaleBar, grey_scale, scale_bar
from xcorr_app.report.records import FrameRow, Pictures, StackReport
from xcorr_app.report.summary import StackSummary, count, grouped

_THINNEST = 30.0  # a picture longer than this many times its width is drawn thicker than it is
_SAME = " No frame was moved: after equals before."
_HIGHEST = 26.0  # height on the page that a picture may take, in units of the text's size


@dataclass(frozen=True)
class Chart:
    """A drawing and its caption, or what is said `instead`."""

    title: str
    svg: str | None
    alt: str
    caption: str
    instead: str = ""


@dataclass(frozen=True)
class Picture:
    """A grey picture: its data, the lengths that give it its shape on the page, and its scale bar."""

    title: str
    source: str
    alt: str
    aspect_ratio: str
    max_width: str
    pixelated: bool
    bar: ScaleBar | None = None


def charts(stack: StackReport, summary: StackSummary, points: int = ALONE.points) -> tuple[Chart, ...]:
    """Draw the charts of a stack that has rows."""
    rows, units = stack.rows, units_of(stack)
    none = "No frame has a measured shift."
    window = f"{stack.max_shift[0]:g} rows and {stack.max_shift[1]:g} columns"
    extent = f"the longest is {summary.largest_shift or 0:.3f} pixels"
    limit, of_errors = _error_limit(stack)
    return (
        Chart(
            "Trajectory",
            trajectory_chart(rows, frozenset() if summary.is_no_better else stack.replaced, units[0], points),
            f"Trajectory of the shift over {count(summary.frames, 'frame')}; {extent}.",
            _trajectory_caption(stack, summary),
            none,
        ),
        Chart(
            "Shift of each frame",
            shift_chart(rows, stack.max_shift, units, points),
            f"Shift in rows and columns against frame number; {extent}.",
            "Shifts are the pixels to add to each frame to land on the reference: rows (dy) down, columns (dx) right. "
            f"Search window: up to {window} either way."
            + (" Dotted: the shifts applied, where they are not those measured." if stack.replaced else ""),
            none,
        ),
        *_turns(stack, points),
        Chart(
            "Score of each frame",
            score_chart(rows, points),
            f"Score against frame number; median {summary.median_score or 0:.3f}.",
            f"Similarity to the reference ({stack.reference}) at the best shift.",
            "No frame has a score.",
        ),
        Chart(
            "Standard error of each shift",
            error_chart(rows, limit, points),
            "Predicted standard error of the shift in rows and columns against frame number, logarithmic.",
            of_errors,
            "No frame has a standard error that is known.",
        ),
        *_tiles(stack),
        *_bends(stack),
    )


def _turns(stack: StackReport, points: int) -> list[Chart]:
    """Angle and scale of each frame, of those that are more than none."""
    found, frames = [], [row.frame for row in stack.rows]
    for place, (name, label, middle) in enumerate((("Angle", "angle (degrees)", 0.0), ("Scale", "scale", 1.0))):
        values = [turn[place] for turn in stack.turns or ()]
        if (drawn := turn_chart(frames, values, label, middle, points) if values else None) is not None:
            known = [value for value in values if math.isfinite(value)]
            extent = f"from {min(known):.4g} to {max(known):.4g}"
            how = "turned, clockwise as displayed," if name == "Angle" else "enlarged"
            caption = f"By how much each frame is {how} to land on the reference: {extent}."
            found.append(Chart(f"{name} of each frame", drawn, f"{name} against frame number, {extent}.", caption, ""))
    return found


def quick_charts(stack: StackReport, points: int = ALONE.points) -> tuple[Chart, ...]:
    """One chart, for a report that must cost nothing to speak of."""
    drawn = shift_chart(stack.rows, stack.max_shift, units_of(stack), points)
    alt = f"Shift in rows and columns of {count(len(stack.rows), 'frame')}."
    return (Chart("Shift of each frame", drawn, alt, "", "No frame has a measured shift."),)


def _trajectory_caption(stack: StackReport, summary: StackSummary) -> str:
    if summary.is_untrusted:
        return "The shifts as measured, most of which could not be trusted."
    words = "The shift that each frame needs; the specimen itself moved the opposite way."
    return words + (" Frames that were not moved as measured are not joined by the line." if stack.replaced else "")


def _error_limit(stack: StackReport) -> tuple[float | None, str]:
    """The limit to draw in the chart of standard errors, and its caption: what all frames share of them flags none."""
    limit, errors = stack.sigma_limit, [(max(row.sigma_y, row.sigma_x), row.is_flagged) for row in stack.rows]
    shared = limit is not None and any(limit < error < math.inf and not flagged for error, flagged in errors)
    caption = "Predicted from how far frame and reference differ." + (
        " Most of it is common to all frames, of which neighbouring parts are off alike: it flags none."
        if shared
        else " Dotted: above it a shift is flagged."
    )
    unknown = sum(math.isinf(error) for error, _ in errors)
    return None if shared else limit, caption + (f" Unknown for {count(unknown, 'frame')}." if unknown else "")


def agreement(stack: StackReport, summary: StackSummary) -> str:
    """How the shifts agree with the FFT reference, in a line."""
    if not summary.verified:
        return "Not verified: no frame of this stack was compared with the FFT reference."
    return (
        f"Agreement with the FFT reference: {grouped(summary.verified)} of {count(summary.frames, 'frame')} verified "
        f"by a float64 FFT; largest difference {summary.max_difference or 0:.2g} px, tolerance {stack.tolerance:g} px."
    )


def units_of(stack: StackReport) -> tuple[Unit | None, Unit | None]:
    """What a pixel and an interval are, where the file says so; pixels that are not square have no one size."""
    square = stack.pixel_size is not None and math.isclose(*stack.pixel_size, rel_tol=1e-3)
    pixel = (stack.pixel_size[1], stack.unit) if stack.pixel_size is not None and stack.unit and square else None
    first, second = (step if step and 0 < step[0] < math.inf else None for step in (pixel, stack.interval))
    return first, second


def preview(stack: StackReport, pictures: Pictures, limit: int = ALONE.movie) -> dict[str, Any] | None:
    """The looping movie of a few frames, before at the left and after at the right, in `limit` bytes."""
    if pictures.preview is None or len(pictures.preview) < 2 or not limit:
        return None
    made = film(pictures.preview, limit)
    shown = f"{made.frames} of {count(len(stack.rows), 'frame')}"
    height, width = made.shape
    return {
        "source": _data_address("image/jpeg", made.data),
        "alt": f"{stack.name}: looping movie of {shown}, before registration at the left, after at the right",
        "caption": f"{shown}, before (left) and after (right)." + (_SAME if stack.unmoved else ""),
        "aspect_ratio": f"{width} / {height}",
        "max_width": f"{_HIGHEST * width / height:.2f}em",
        "frames": made.frames,
        "seconds": f"{made.seconds:g}s",
    }


def _tiles(stack: StackReport) -> tuple[Chart, ...]:
    """Chart of the parts that move otherwise, where there are any."""
    if stack.tiles is None:
        return ()
    caption = "Tiles of the picture that do not move like the rest; grey where there is too little to see."
    chart = Chart("Parts that move otherwise", tiles_chart(stack.tiles), caption, caption, "No tile can tell.")
    return (chart,)


def _bends(stack: StackReport) -> tuple[Chart, ...]:
    """Chart of the fields of frames that bend, where they were measured."""
    if stack.bends is None:
        return ()
    caption = (
        "Colours: median over the trusted frames of how far each place moves from the mean shift of its frame. Arrows: "
        f"how the frame that bends most, {stack.bends.frame}, is moved beyond its mean shift, enlarged."
    )
    return (Chart("Fields of displacement", bends_chart(stack.bends), caption, caption, "No frame has a field."),)


def means(stack: StackReport, pictures: Pictures, room: Room = ALONE) -> dict[str, Any]:
    """The mean of all frames, before and after."""
    before, after = pictures.mean_before, pictures.mean_after
    scale = grey_scale(before, after)
    caption = f"Both from {scale.black:.5g} (black) to {scale.white:.5g} (white)."
    if not (np.isfinite(before).all() and np.isfinite(after).all()):
        caption += " Hatched: no data."
    if stack.unmoved:
        caption += _SAME
    pixel_width = None if stack.pixel_size is None else stack.pixel_size[1] * pictures.reduction

    def side(name: str, image: NDArray[Any]) -> Picture:
        alt = f"{stack.name}: mean of all frames {name} registration"
        bar = None if pixel_width is None else scale_bar(image.shape[1], pixel_width, stack.unit)
        return _picture(name, alt, image, scale, room.picture, bar)

    return {"before": side("before", before), "after": side("after", after), "caption": caption}


def thumbnails(flagged: Sequence[FrameRow], pictures: Pictures, room: Room = ALONE) -> list[tuple[FrameRow, Picture]]:
    """Take the first flagged frames of which there is a small picture, each on its own grey scale."""
    shown: list[tuple[FrameRow, Picture]] = []
    for row in flagged:
        image = pictures.thumbnails.get(row.frame)
        if image is not None and len(shown) < room.thumbnails:
            alt = f"Frame {row.frame}, flagged {', '.join(row.flags)}"
            shown.append((row, _picture(f"frame {row.frame}", alt, image, grey_scale(image), room.picture)))
    return shown


def _picture(
    title: str,
    alt: str,
    image: NDArray[Any],
    scale: GreyScale,
    limit: int,
    bar: ScaleBar | None = None,
) -> Picture:
    height, width = image.shape
    aspect = width / height
    shown = min(max(aspect, 1 / _THINNEST), _THINNEST)
    return Picture(
        title=title,
        source=_data_address(*picture_file(image, scale, limit)),
        alt=alt,
        aspect_ratio=f"{shown:.4f}",
        max_width=f"{_HIGHEST * shown:.2f}em",
        pixelated=max(height, width) <= 256,
        bar=bar if math.isclose(shown, aspect) else None,
    )


def _data_address(kind: str, data: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode('ascii')}"
