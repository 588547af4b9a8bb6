"""Two files become a file of correlation planes, or of their peaks."""

import math
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np

from xcorr_app.batch.correlate.plan import CorrelationPlan, blocks
from xcorr_app.correlation.find_shifts import find_shifts
from xcorr_app.correlation.forms import Form
from xcorr_app.correlation.plane import check_range, cross_correlate
from xcorr_app.correlation.plane_peaks import PlanePeaks, peaks_of_planes
from xcorr_app.errors import LimitError, XcorrError
from xcorr_app.gpu.runtime.arrays import Array, to_host
from xcorr_app.io.writing.atomic import atomic_write_text, remove_abandoned
from xcorr_app.io.writing.plane_file import Write, plane_writer
from xcorr_app.pipeline.stages import own_version, versions
from xcorr_app.registration.results.frame_table import csv_text
from xcorr_app.registration.stack.passes import Progress

_NO_PEAK = "has no valid shift: every overlap is constant in one image, or below --min-overlap"


class PlaneRecord(NamedTuple):
    """What is known of one plane: the columns of the ``.csv``. What does not exist is None."""

    left: int
    right: int
    """Which images were correlated: their numbers in the files, counted from 0."""
    dy: float | None
    dx: float | None
    score: float | None
    """Or plain sum."""
    ratio: float | None
    """The peak over the highest other local maximum; infinite where none is positive."""
    peak_dy: int | None
    peak_dx: int | None
    """Whole shift."""
    on_edge: int
    """1 or 0."""
    problem: str | None
    """Why the plane counts as failed."""


def run_correlation(plan: CorrelationPlan, progress: Progress | None = None) -> list[PlaneRecord]:
    """Compute and write the planes of a plan; returns one record a plane, in the order of the file."""
    records: list[PlaneRecord] = []
    total = math.prod(plan.shape[:-2])
    report = progress or (lambda _stage, _done, _total: None)
    planes = nullcontext() if plan.options.peaks else plane_writer(plan.out, plan.shape, plan.dtype, _facts(plan))
    try:
        with planes as write:
            lefts = plan.left.read().reshape(plan.left_shape)
            rights = plan.right.read().reshape(plan.right_shape)
            report("correlate", 0, total)
            for some_lefts, some_rights in blocks(plan.left_shape, plan.right_shape, plan.pairs_at_once):
                peaks = _correlate(plan, lefts[some_lefts], rights[some_rights], write)
                records += _records(_numbers(some_lefts, some_rights, plan.right_shape), peaks)
                report("correlate", len(records), total)
    except MemoryError as error:
        if isinstance(error, XcorrError):
            raise
        raise LimitError(
            f"{plan.left.path}, {plan.right.path}: their planes need more memory than there is; "
            "limit the shifts with --max-shift, or use a machine with more"
        ) from None
    if plan.options.peaks:
        remove_abandoned(plan.out)
        atomic_write_text(plan.out, csv_text(PlaneRecord._fields, records))
    return records


def _correlate(plan: CorrelationPlan, left: np.ndarray, right: np.ndarray, write: Write | None) -> PlanePeaks:
    """Write the planes of a block, unless peaks alone are wanted; return their peaks."""
    settings = plan.options.settings
    # One left and one right are the smallest case of every left with every right.
    form: Form = "n-to-mn" if len(plan.right_shape) == 4 else "n-to-m"
    operands: tuple[Array, Array] = (plan.device.xp.asarray(left), plan.device.xp.asarray(right))
    # What was read from the files is finite.
    how: dict[str, Any] = {
        "normalization": settings.normalization,
        "min_overlap": settings.min_overlap,
        "check_finite": False,
        "engine": plan.engine,
        "kernel_options": settings.kernel_options,
    }
    sums = settings.normalization == "none"
    if write is None:
        how |= {"check_finite": sums, "subpixel": settings.subpixel}  # sums of finite values may not fit their type
        return find_shifts(*operands, form, plan.window, **how).flat()
    planes = cross_correlate(*operands, form, plan.window, **how)
    if sums:
        check_range(planes, left, right)
    write(to_host(planes).reshape(-1, *plan.window.shape))
    return peaks_of_planes(planes, plan.window, settings.subpixel)


def _numbers(lefts: slice, rights: tuple[slice, ...], right_shape: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """Numbers of the left and the right image of every pair in a block."""
    own = right_shape[1] if len(right_shape) == 4 else 0
    for i in range(lefts.start, lefts.stop):
        for j in range(rights[-1].start, rights[-1].stop):
            yield i, i * own + j


def _records(numbers: Iterator[tuple[int, int]], peaks: PlanePeaks) -> Iterator[PlaneRecord]:
    """What is known of the planes of a block."""
    none = (None, None)
    for i, pair in enumerate(numbers):
        exists = bool(np.isfinite(peaks.value[i]))
        shift, peak = (peaks.shift[i].tolist(), peaks.peak[i].tolist()) if exists else (none, none)
        heights = (float(peaks.value[i]), float(peaks.ratio[i])) if exists else none
        problem = None if exists else _NO_PEAK
        yield PlaneRecord._make((*pair, *shift, *heights, *peak, int(peaks.on_edge[i]), problem))


def _facts(plan: CorrelationPlan) -> dict[str, Any]:
    """What the file says of its planes."""
    settings, window = plan.options.settings, plan.window
    return {
        "program": f"xcorr correlate {own_version()}",
        "form": plan.options.form,
        "shape": list(plan.shape),
        "dy_min": window.dy_min,
        "dy_max": window.dy_max,
        "dx_min": window.dx_min,
        "dx_max": window.dx_max,
        "normalization": settings.normalization,
        "min_overlap": settings.min_overlap,
        "engine": plan.engine,
        "kernel_options": None if settings.kernel_options is None else asdict(settings.kernel_options),
        "device": plan.device.description,
        "left": str(plan.left.path),
        "right": str(plan.right.path),
        "channel": plan.options.channel,
        "versions": versions(),
    }
