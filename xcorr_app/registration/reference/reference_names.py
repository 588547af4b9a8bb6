"""References that have a name, and those with a number: ``pairs:K``."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from xcorr_app.errors import ArgumentError

REFERENCES = ("first", "last", "mean", "previous", "template")
NUMBERED_REFERENCES = ("pairs",)
_MAX_NUMBER = 1000
"""Frames before each that it may be compared with."""


def parse_reference(text: str) -> tuple[str, int]:
    """Name and number of a reference, 0 where it has none; raises ArgumentError where there is no such reference."""
    name, colon, number = text.partition(":")
    if not colon and name in REFERENCES:
        return name, 0
    if name in NUMBERED_REFERENCES:
        if number.isdecimal() and 1 <= int(number) <= _MAX_NUMBER:
            return name, int(number)
        raise ArgumentError(f"reference {text!r}: write {name}:N with a number of frames from 1 to {_MAX_NUMBER}")
    raise ArgumentError(
        f"unknown reference {text!r}: use {', '.join((*REFERENCES, *(f'{each}:N' for each in NUMBERED_REFERENCES)))}"
        ", a frame number or an image; median is template or mean now, rolling:N is pairs:N"
    )


def by_frames(reference: Any) -> bool:
    """Whether frames are compared with each other, and not with an image of the user's."""
    return isinstance(reference, (str, int, np.integer))


def compares_neighbours(reference: Any) -> bool:
    """Whether frames are compared with frames shortly before them, not with one image of the whole stack."""
    return isinstance(reference, str) and reference.partition(":")[0] in ("previous", *NUMBERED_REFERENCES)


def reference_frame(reference: Any, described: str) -> int | None:
    """Frame that is its own reference, by what was asked for and how a result describes it; None where none is."""
    if compares_neighbours(reference):
        return 0
    single = re.fullmatch(r"(?:.*frame|first|last) \((\d+)\)", described)
    return None if single is None or reference == "template" else int(single[1])


def frame_number(reference: Any, count: int) -> int | None:
    """Which of so many frames all others are compared with; None where that is none of them."""
    if isinstance(reference, str):
        return {"first": 0, "last": count - 1}.get(reference)
    return int(reference) % count if isinstance(reference, (int, np.integer)) else None
