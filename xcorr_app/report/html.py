"""The report: one HTML file that holds everything it shows and asks the network for nothing."""

import base64
import functools
import hashlib
import math
import os
import threading
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from xcorr_app.report.encoding import ALONE, MAX_SECTIONS, Room, room_for
from xcorr_app.report.quality import figures
from xcorr_app.report.records import FLAG_MEANINGS, RunReport, StackReport
from xcorr_app.report.summary import count, grouped, summarise, verdict
from xcorr_app.report.views import (
    agreement,
    charts,
    means,
    preview,
    quick_charts,
    thumbnails,
)

MANY = 12  # stacks beyond which those that are not good come first
_NEXT = {
    "good": "play the movie and look at the mean; where nothing is blurred, use the aligned stack.",
    "doubtful": "look at the flagged frames; what each flag means, and what helps, stands beside it.",
    "failed": "do not use these results as they are; what to try stands with each stack.",
}
_CONTROLS = (*range(0x09), *range(0x0B, 0x0D), *range(0x0E, 0x20), *range(0x7F, 0xA0))
_DIRECTIONS = (0x061C, 0x200B, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A), 0xFEFF)
_UNSEEN = {chr(code): f"\\u{code:04x}" for code in (*_CONTROLS, *_DIRECTIONS)}
"""Controls, marks of writing direction, spaces without width."""
_PLAIN = bytes(range(0x20, 0x7F))
_making = threading.Lock()


def render_report(run: RunReport, sections: Mapping[str, str] | None = None) -> str:
    r"""Write the page as text; the same records give the same text.

    `sections` are those that `render_section` made before, by the names of their stacks; the others are made here.
    Of very many stacks there is the table alone, which leads to their own pages.

    Everything from outside, such as file names, is escaped. Bytes of a file name that are not valid text
    appear as escapes such as ``\udc80``, so that the text can always be written as UTF-8; so do characters that are not
    seen and change how others are, such as U+202E, which turns a name around.
    """
    known, room, shown = sections or {}, room_for(len(run.stacks)), len(run.stacks) <= MAX_SECTIONS
    is_alone = len(run.stacks) == 1
    drawn = [known.get(stack.name) or render_section(stack, room, is_alone=is_alone) for stack in run.stacks if shown]
    summaries = [summarise(stack) for stack in run.stacks]
    if len(summaries) > MANY:
        summaries.sort(key=lambda summary: ("failed", "doubtful", "good").index(summary.level))
    level, sentence = verdict(summaries)
    first, _, rest = sentence.removesuffix(".").partition("; ")
    script = load_template("report.js").render()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    named = {
        "run": run,
        "summaries": summaries,
        "sections": drawn,
        "level": level,
        "verdict": first,
        "details": f"{rest[:1].upper()}{rest[1:]}." if rest else "",
        "next": _NEXT,
        "script": script,
        "script_hash": f"sha256-{digest}",
    }
    return _visible(load_template("report.html.j2").render(named))


def render_section(
    stack: StackReport, room: Room = ALONE, page: str = "", base: str = "", *, is_alone: bool = False
) -> str:
    """Draw the section of a stack on a page where it has this much `room`, and a `page` of its own besides.

    `base` is the address of the folder of its results; `is_alone` where the page shows no other stack.
    """
    summary, flagged = summarise(stack), tuple(row for row in stack.rows if row.is_flagged)
    words = dict.fromkeys(flag for row in flagged for flag in row.flags)
    pictures = None if stack.pictures is None or stack.is_quick else stack.pictures.shrunk(room.side)
    is_plain = stack.is_quick or not (stack.rows or pictures)
    # A chart of one frame beside another says no more than their table.
    is_brief = is_plain or room.is_brief or len(stack.rows) < 3
    drawn = quick_charts(stack, room.points) if is_brief else charts(stack, summary, room.points)
    shown = {
        "stack": stack,
        "summary": summary,
        "flagged": flagged,
        "room": room,
        "is_alone": is_alone,
        "own_address": page,
        "base": base,
        "meanings": [(word, FLAG_MEANINGS.get(word, "")) for word in words],
        "charts": drawn if stack.rows else (),
        "means": None if pictures is None else means(stack, pictures, room),
        "movie": None if pictures is None else preview(stack, pictures, room.movie),
        "thumbnails": () if pictures is None else thumbnails(flagged, pictures, room),
        "figures": () if is_plain else figures(stack, summary),
        "agreement": "" if is_plain or not stack.rows else agreement(stack, summary),
    }
    return _visible(load_template("stack.html.j2").render(shown))


def address(name: str) -> str:
    """Name of a file or a folder as links have it."""
    return quote(os.fsencode(name))


def _visible(text: str) -> str:
    encoded = text.encode("utf-8", "backslashreplace")
    # Pictures make the page long, and all of them are plain letters: what else there is decides what is replaced.
    unseen = _UNSEEN.keys() & set(encoded.translate(None, _PLAIN).decode("utf-8"))
    text = encoded.decode("utf-8")
    for letter in unseen:
        text = text.replace(letter, _UNSEEN[letter])
    return text


def load_template(name: str) -> Any:
    """What is to be filled in; made once, if need be by another thread while stacks are computed."""
    with _making:
        return _environment().get_template(name)


@functools.cache
def _environment() -> Any:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("xcorr_app.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        auto_reload=False,  # or every section asks the disk whether its template is a new one
    )
    known = {"decimals": _decimals, "error": _error, "scientific": _scientific, "count": count, "grouped": grouped}
    environment.filters |= known | {"address": address}
    return environment


def _decimals(value: float | None, places: int) -> str:
    """Write a number with so many decimals, or a dash where there is none."""
    if value is None or math.isnan(value):
        return "–"
    return f"{round(value, places) + 0.0:.{places}f}".replace("-", "−")  # no minus before a zero


def _error(value: float) -> str:
    """Write a standard error, rounded up to what is written; an infinite one says that nothing is known."""
    return "unknown" if math.isinf(value) else "0.001" if 0 < value < 0.001 else _decimals(value, 3)


def _scientific(value: float | None) -> str:
    """Write a small number to two digits, or a dash where there is none."""
    return "–" if value is None or math.isnan(value) else f"{value:.2g}".replace("-", "−")
