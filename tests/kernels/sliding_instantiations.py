"""Launches of the sliding sums that ship, as the launcher makes them: what must compile everywhere."""

from __future__ import annotations

from xcorr_app.gpu.stencil.cosine_series import EXACT_TOLERANCE, TOLERANCE, gaussian_series, start_table
from xcorr_app.gpu.stencil.sliding import SLIDING_BOUNDARIES, SlidingPass, sliding_launch, sum_type_for


def sliding(image, result, boundary="reflect", sum_for=None):
    """One pass over 64 images of 1024 x 1024, in the sums for results of a type."""
    sum_type = sum_type_for(sum_for or result)
    series = gaussian_series(64.0, EXACT_TOLERANCE if sum_type == "double" else TOLERANCE)
    table = start_table(series, 1024, 1024, boundary)
    types = {"image_type": image, "result_type": result, "sum_type": sum_type}
    return sliding_launch(SlidingPass((1024, 1024), 64, boundary), series, table, 1024, **types)


def launches_of_sliding():
    """Both passes of float32 and of integers, in sums of both types."""
    for image, result in (("float32", "float32"), ("uint8", "float32"), ("float32", "uint8"), ("float32", "uint16")):
        yield sliding(image, result)
    yield sliding("uint16", "float32", sum_for="uint16")


def other_launches_of_sliding():
    """Every boundary, and the first pass of every type."""
    for boundary in SLIDING_BOUNDARIES:
        for image, result in (("float32", "float32"), ("float32", "int16")):
            yield sliding(image, result, boundary)
        for image in ("float32", "uint8", "int16"):
            yield sliding(image, "float32", boundary, "int16")
