"""How much of a page a stack may take: a page of many stacks must stay one that a browser opens, or a mail takes."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Room:
    """What the section of one stack may hold."""

    side: int
    """Pixels along the longer side of a picture, at most."""
    picture: int
    """Bytes of a picture."""
    movie: int
    """Bytes of the movie; 0 for none."""
    points: int
    """Places along a line of a chart."""
    rows: int
    """Frames that are listed: the first ones."""
    flagged: int
    """Flagged frames that are listed."""
    thumbnails: int
    """Small pictures of flagged frames."""
    is_brief: bool = False
    """Only the means, the shifts and the figures; the rest is on a page of the stack's own."""


ALONE = Room(side=512, picture=90_000, movie=200_000, points=1200, rows=2000, flagged=50, thumbnails=24)
"""Nothing is left out: on a page of its own, or with one or two others."""
_SHARED = Room(side=256, picture=5_000, movie=10_000, points=80, rows=24, flagged=8, thumbnails=2)
"""Of ten, or some more."""
_BRIEF = Room(side=128, picture=3_000, movie=0, points=60, rows=0, flagged=5, thumbnails=0, is_brief=True)
MAX_UNREDUCED, MAX_WITH_PICTURES, MAX_SECTIONS = 3, 20, 500
"""Stacks of a page until it says less of each."""


def room_for(stacks: int) -> Room:
    """What each stack of a page of so many may take: 1 MB for ten of them, 10 MB for 500."""
    if stacks <= MAX_UNREDUCED:
        return ALONE
    if stacks > MAX_WITH_PICTURES:
        return _BRIEF
    fewer = max(1.0, 10 / stacks)
    return replace(_SHARED, picture=int(_SHARED.picture * fewer), movie=int(_SHARED.movie * fewer))
