"""Launches of the sliding sums that ship, as the launcher makes them: what must compile everywhere."""

from __future__ import annotations

from xcorr_app.gpu.stencil.cosine_series import EXACT_TOLERANCE, box_series, gaussian_series, start_table
from xcorr_app.gpu.stencil.sliding import SLIDING_BOUNDARIES, SlidingPass, sliding_launch

_SUMS = {"double": ("double", "float"), "float": ("float", "float"), "exact": ("double", "double")}


def sliding(series, image="float32", result="float32", sums="double", boundary="reflect", **tuning):
    """One pass over 64 images of 1024 x 1024."""
    table = start_table(series, 1024, 1024, boundary)
    types = dict(zip(("sum_type", "start_type"), _SUMS[sums], strict=True), image_type=image, result_type=result)
    return sliding_launch(SlidingPass((1024, 1024), 64, boundary), series, table, 1024, **types, tuning=tuning)


def launches_of_sliding():
    """Both passes of float32 and of integers, in sums of both types, and the box."""
    series = gaussian_series(64.0)
    for sums in ("double", "float"):
        for image, result in (("float32", "float32"), ("uint8", "float32"), ("float32", "uint8")):
            yield sliding(series, image, result, sums)
        yield sliding(box_series(31), sums=sums)
    exact = gaussian_series(64.0, tolerance=EXACT_TOLERANCE)
    for image, result in (("uint16", "float32"), ("float32", "uint16")):
        yield sliding(exact, image, result, "exact")


def other_launches_of_sliding():
    """Every boundary, images of float64, and as many terms as there can be."""
    many = gaussian_series(20.0, 6.0)
    for boundary in SLIDING_BOUNDARIES:
        for sums in _SUMS:
            yield sliding(gaussian_series(64.0), sums=sums, boundary=boundary)
            yield sliding(many, "float32", "int16", sums, boundary)
        yield sliding(gaussian_series(64.0, tolerance=EXACT_TOLERANCE), "float32", "uint16", "exact", boundary)
        yield sliding(gaussian_series(64.0), "float64", "float64", "exact", boundary)
        yield sliding(gaussian_series(64.0), "float32", "float64", "double", boundary)
