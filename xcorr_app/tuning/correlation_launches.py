"""What candidates of correlation compile, so that it can be done beforehand side by side."""

from __future__ import annotations

import math
from collections.abc import Iterable

from xcorr_app.correlation.choice import FUSED
from xcorr_app.gpu.direct.kernels import KERNELS as DIRECT
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.direct.tile_launches import sum_of_segments
from xcorr_app.gpu.peaks.kernels import KERNELS as PEAKS
from xcorr_app.gpu.peaks.near_peak import near_peak_launches
from xcorr_app.gpu.peaks.search import plane_peak_launch
from xcorr_app.gpu.peaks.table_launches import SMALL, small_table_launch, summed_area_launch
from xcorr_app.gpu.runtime.launch import Launch
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.gpu.tensor.hankel_frames import FramesLaunch
from xcorr_app.gpu.tensor.kernels import KERNELS as TENSOR
from xcorr_app.gpu.tensor.planes import uncentre_launch
from xcorr_app.gpu.tensor.small_planes import small_planes_launch
from xcorr_app.gpu.tensor.sums import FP16_ERROR

__all__ = ["launches_of_peaks", "launches_of_planes"]

_TYPES = {"left_type": "float32", "right_type": "float32"}
_FLOATS = (False, False)


def launches_of_planes(problem: Problem, name: str, device: DeviceLimits) -> Iterable[Launch]:
    """List what a candidate for planes of float32 compiles."""
    engine, _, kernel = name.partition(":")
    if engine == "direct":
        yield from _direct(problem, kernel, device)
    elif kernel == "small-planes":
        launch = small_planes_launch(problem, left_type="float32", right_type="float32", device=device, split=2)
        if launch is not None:
            yield launch
    elif engine == "tensor":
        yield from _tables(problem)
        yield from _centred_sums(problem, kernel, device, split=2)
        yield uncentre_launch(problem, _FLOATS)


def launches_of_peaks(problem: Problem, name: str, device: DeviceLimits) -> Iterable[Launch]:
    """List what a candidate for peaks of scores of float32 compiles."""
    engine, _, kernel = name.partition(":")
    if engine == "fft":
        return
    yield from _tables(problem)
    if kernel == FUSED:
        yield PEAKS[FUSED].launch(problem, normalize=True, **_TYPES, device=device)
        return
    centred = _FLOATS if engine == "tensor" else None
    search = plane_peak_launch(problem, normalize=True, device=device, centred=centred)
    if search is not None:
        yield search
    if engine == "direct":
        yield from _direct(problem, kernel, device)
        return
    yield from _centred_sums(problem, kernel, device, split=1)
    yield from near_peak_launches(problem, error=FP16_ERROR, normalize=True, **_TYPES, device=device)


def _direct(problem: Problem, kernel: str, device: DeviceLimits) -> Iterable[Launch]:
    launch = DIRECT[kernel].launch(problem, device=device)
    yield launch
    if launch.segments > 1:
        yield sum_of_segments(launch, problem)


def _centred_sums(problem: Problem, kernel: str, device: DeviceLimits, *, split: int) -> Iterable[Launch]:
    how = {"split": split} if kernel == "hankel" else {}
    found = TENSOR[kernel].launch(problem, device=device, **how)
    if isinstance(found, FramesLaunch):
        yield from (found.expand, found.products, found.sums)
    elif found is not None:
        yield found.launch
        if found.convert is not None:
            yield found.convert


def _tables(problem: Problem) -> Iterable[Launch]:
    for count, shape in ((problem.lefts, problem.left_shape), (problem.rights, problem.right_shape)):
        small = math.prod(shape) <= SMALL
        yield small_table_launch("float32", count) if small else summed_area_launch("float32", count, shape[1], 1)
