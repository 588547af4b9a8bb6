"""Cases small enough for the definition, one of every form, window and task of the benchmark."""

from __future__ import annotations

from benchmarks.correlation.cases import Case
from xcorr_app.gpu.direct.problem import Problem

PLANES = (
    Case(name="one-to-one", problem=Problem.full_plane((9, 12), (9, 12))),
    Case(name="unequal", problem=Problem.full_plane((10, 7), (5, 11))),
    Case(name="one-to-many", problem=Problem((16, 15), (16, 15), (-3, -2), (7, 5), rights=5, rights_per_left=5)),
    Case(name="n-to-mn", problem=Problem((8, 9), (8, 9), (-4, -1), (6, 7), lefts=7, rights=7)),
    Case(
        name="n-to-mn, two each", problem=Problem((8, 9), (7, 9), (1, 2), (3, 4), lefts=3, rights=6, rights_per_left=2)
    ),
    Case(name="n-to-m", problem=Problem((8, 9), (12, 6), (-20, -4), (25, 9), lefts=3, rights=4, rights_per_left=4)),
    Case(name="many lefts, one right", problem=Problem((8, 9), (8, 9), (-2, -2), (5, 5), lefts=6)),
)
PEAKS = (
    Case(name="pairs, window", problem=Problem((24, 26), (24, 26), (-6, -8), (13, 17), lefts=7, rights=7), task="peak"),
    Case(name="pairs, full", problem=Problem.full_plane((20, 22), (20, 22), lefts=6, rights=6), task="peak"),
    Case(
        name="frames of uint16",
        problem=Problem((40, 36), (40, 36), (-6, -5), (13, 11), rights=9, rights_per_left=9),
        task="peak",
        right_type="uint16",
    ),
)
REGISTRATIONS = (
    Case(
        name="even",
        problem=Problem((40, 36), (40, 36), (-6, -5), (13, 11), rights=9, rights_per_left=9),
        task="zncc-peak",
    ),
    Case(
        name="askew",
        problem=Problem((33, 47), (33, 47), (-5, -1), (8, 12), rights=6, rights_per_left=6),
        task="zncc-peak",
    ),
    Case(
        name="scores of uint16",
        problem=Problem((40, 36), (40, 36), (-8, -8), (16, 16), rights=5, rights_per_left=5),
        task="zncc-peak",
        right_type="uint16",
    ),
    Case(name="one frame", problem=Problem((40, 36), (40, 36), (-8, -8), (16, 16)), task="zncc-peak"),
)
