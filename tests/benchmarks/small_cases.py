"""Cases small enough for a plain check: one of every form, window, task and type of the benchmarks."""

from benchmarks.correlation.cases import Case
from benchmarks.filters.cases import FilterCase
from benchmarks.pointwise.cases import PointwiseCase
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


def small_filter(name, **more):
    return FilterCase(name=name, **({"images": 3, "height": 45, "width": 83} | more))


FILTERS = (
    small_filter("3x3", rows=3, columns=3),
    small_filter("even", rows=4, columns=6),
    small_filter("flat, zeros outside", rows=1, columns=9, boundary="constant"),
    small_filter("zeros outside", rows=5, columns=5, boundary="constant"),
    small_filter("even, zeros outside", rows=2, columns=4, boundary="constant"),
    small_filter("larger than the corner", rows=31, columns=31),
    small_filter("uint16", rows=7, columns=7, element="uint16"),
    small_filter("gaussian", sigma=2.0, task="gaussian"),
    small_filter("gaussian of uint16", sigma=1.5, task="gaussian", element="uint16"),
    small_filter("one image", images=1, rows=3, columns=5),
    small_filter("smaller than the corner", height=11, width=13, rows=3, columns=3),
)
"""All of them PyTorch can compute too."""
OTHER_FILTERS = (
    small_filter("long gaussian", sigma=20.0, task="gaussian"),
    small_filter("one of many widths", rows=12, columns=12, group="widths"),
)
MIXTURES = (
    PointwiseCase(name="layer", images=3, channels=5, filters=7, side=9),
    PointwiseCase(name="layer of many channels", images=2, channels=80, filters=50, side=7),
    PointwiseCase(name="unmix", images=2, channels=4, filters=4, side=16, task="unmix"),
    PointwiseCase(
        name="unmix uint16", images=2, channels=3, filters=3, side=15, element="uint16", result="uint16", task="unmix"
    ),
    PointwiseCase(
        name="unmix uint16 to float32", images=2, channels=2, filters=4, side=11, element="uint16", task="unmix"
    ),
)
