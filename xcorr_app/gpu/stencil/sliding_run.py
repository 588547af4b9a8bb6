"""Long Gaussians on the device: stack in, filtered stack out, at a cost that is the same for all lengths."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from xcorr_app.gpu.runtime.arrays import dense, empty
from xcorr_app.gpu.runtime.binder import BoundLaunch, as_struct, null_pointer
from xcorr_app.gpu.runtime.constants import constants
from xcorr_app.gpu.runtime.limits import device_limits
from xcorr_app.gpu.runtime.memory import with_second_try
from xcorr_app.gpu.runtime.placement import current_device
from xcorr_app.gpu.stencil.cosine_series import (
    EXACT_TOLERANCE,
    TOLERANCE,
    CosineSeries,
    gaussian_series,
    start_table,
)
from xcorr_app.gpu.stencil.sliding import (
    SlidingPass,
    packed_table,
    segment_rows,
    series_argument,
    sliding_launch,
    sum_type_for,
)

BETWEEN_BYTES = 2**30
"""Memory for what the first pass leaves to the second, in bytes; a larger stack is worked on in parts."""

_WHAT = "A long filter's result and what lies between its axes"


def prepare_sliding(
    problem: SlidingPass, sigmas: tuple[float, float], image_type: str, result_type: str, *, outside: float = 0.0
) -> Callable[[Any, Any, Any], None]:
    """Choose, compile and make tables for the current device, so that every further call costs two launches.

    What is returned takes images, result, and where clipped pixels are counted or None.
    """
    sum_type = sum_type_for(result_type)
    tolerance = EXACT_TOLERANCE if sum_type == "double" else TOLERANCE
    down, along = (gaussian_series(float(sigma), tolerance) for sigma in sigmas)
    height, width = problem.image_shape
    step = max(1, BETWEEN_BYTES // (4 * height * width))

    def bound(part: SlidingPass, series: CosineSeries, elements: tuple[str, str]) -> _BoundPass:
        parts = _bound_parts(current_device(), part, series, *elements, sum_type)
        return _BoundPass(parts, as_struct(series_argument(series, outside, sum_type)))

    stages = []
    for first in range(0, problem.count, step):
        part = problem.with_count(min(step, problem.count - first))
        turned = SlidingPass((width, height), part.count, part.boundary)
        passes = bound(part, down, (image_type, "float32")), bound(turned, along, ("float32", result_type))
        stages.append((first, part.count, passes))

    def two_passes(count: int, passes: tuple[_BoundPass, _BoundPass], images: Any, out: Any, clipped: Any) -> None:
        between = empty((count, width, height), "float32")
        passes[0](images if images.flags.c_contiguous else dense(images), between, null_pointer())
        passes[1](between, out, clipped)

    def run(images: Any, out: Any, clipped: Any) -> None:
        clipped = null_pointer() if clipped is None else clipped
        sources, results = (array if array.ndim == 3 else array.reshape(-1, height, width) for array in (images, out))
        for first, number, passes in stages:
            whole = number == problem.count
            here, there = (x if whole else x[first : first + number] for x in (sources, results))
            with_second_try(two_passes, number, passes, here, there, clipped, what=_WHAT)

    return run


@dataclass(frozen=True)
class _Part:
    """One launch, ready for arrays, over so many images; the tables are on the device."""

    images: int
    launch: BoundLaunch
    tables: tuple[Any, Any, Any]


@dataclass(frozen=True)
class _BoundPass:
    """Launches of a pass, and its series as their argument."""

    parts: tuple[_Part, ...]
    values: Any

    def __call__(self, images: Any, results: Any, clipped: Any) -> None:
        """Start the launches; `clipped` is where clipped pixels are counted, or the null pointer."""
        first = 0
        for part in self.parts:
            arrays = (images[first:], results[first:]) if first else (images, results)
            part.launch(*arrays, clipped, *part.tables, self.values)
            first += part.images


@functools.lru_cache(maxsize=32)
def _bound_parts(
    device: int, problem: SlidingPass, series: CosineSeries, image_type: str, result_type: str, sum_type: str
) -> tuple[_Part, ...]:
    """Choose, compile and make the tables once for a problem: that takes longer than a launch."""
    cupy = sys.modules["cupy"]
    rows = segment_rows(problem, series, sum_type=sum_type, device=device_limits(device))
    table = start_table(series, problem.image_shape[0], rows, problem.boundary)
    of_host = packed_table(table, sum_type), table.first, table.outside
    tables = constants(cupy, lambda: tuple(map(cupy.asarray, of_host)))
    parts, most = [], problem.max_images(rows)
    types: Any = {"image_type": image_type, "result_type": result_type, "sum_type": sum_type}
    for first in range(0, problem.count, most):
        part = problem.with_count(min(most, problem.count - first))
        launch = sliding_launch(part, series, table, rows, **types)
        parts.append(_Part(part.count, BoundLaunch.of(launch, launch.extra), (tables[0], tables[1], tables[2])))
    return tuple(parts)
