"""What computes on a device: a kernel for dense taps, one for separable terms, sliding sums, or a transform."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from xcorr_app.decision import Decision
from xcorr_app.filtering.choice import origin_of
from xcorr_app.filtering.engines import fourier
from xcorr_app.filtering.engines.task import Task
from xcorr_app.filtering.precision import needs_double
from xcorr_app.filtering.request import Request
from xcorr_app.filtering.rounding import store
from xcorr_app.gpu.runtime.arrays import Array, array_namespace
from xcorr_app.gpu.stencil.problem import LARGEST_FILTER, FilterProblem
from xcorr_app.gpu.stencil.reuse_run import prepare_filter
from xcorr_app.gpu.stencil.separable import SeparableProblem
from xcorr_app.gpu.stencil.separable_run import prepare_separable
from xcorr_app.gpu.stencil.sliding import SlidingPass
from xcorr_app.gpu.stencil.sliding_run import prepare_sliding

Run: TypeAlias = Callable[[Array, Array, Array | None], None]
"""Called with images, dense result and count of clipped pixels or None."""


def made_run(
    decision: Decision,
    request: Request,
    taps: Any,
    shape: tuple[int, ...],
    image_type: np.dtype[Any],
    macros: Mapping[str, int] | None = None,
) -> Run:
    """Prepare what was decided for images of one shape and type on the current device; `macros` are its kernel's."""
    if decision.engine == "sliding":
        return _sliding(request, taps, shape, image_type)
    if decision.engine == "fft":
        return _fourier(request)
    double = needs_double(request, image_type, decision.engine)
    origin, count = origin_of(request), math.prod(shape[:-2])
    problem = FilterProblem((shape[-2], shape[-1]), request.kernel.shape, count, request.mode, origin)
    types: dict[str, Any] = {"image_type": image_type.name, "result_type": request.target.name}
    if decision.engine == "separable":
        return _separable(request, problem, types, decision.kernel, double=double)
    return prepare_filter(
        problem,
        request.kernel.unscaled_taps,
        **types,
        outside=request.cval,
        kernel=decision.kernel,
        double_sums=double,
        tuning=macros,
    )


def _separable(request: Request, problem: FilterProblem, types: dict[str, Any], kernel: str, *, double: bool) -> Run:
    terms = request.kernel.unscaled_terms
    sizes = problem.image_shape, problem.filter_shape, problem.count, problem.boundary, problem.origin
    if double:  # the kernels sum in the type of the images
        types |= {"image_type": "float64"}
    run = prepare_separable(SeparableProblem(*sizes, len(terms)), terms, **types, outside=request.cval, kernel=kernel)
    return (lambda images, out, clipped: run(images.astype(np.float64), out, clipped)) if double else run


def _sliding(request: Request, taps: Any, shape: tuple[int, ...], image_type: np.dtype[Any]) -> Run:
    problem = SlidingPass((shape[-2], shape[-1]), math.prod(shape[:-2]), request.mode)

    @functools.cache
    def prepared() -> Run:  # with the first images: its tables take memory of the device
        types = image_type.name, request.target.name
        return prepare_sliding(problem, taps.sigmas, *types, outside=request.cval)

    return lambda images, out, clipped: prepared()(images, out, clipped)


def _fourier(request: Request) -> Run:
    taps = request.kernel.unscaled_taps
    kernel = replace(request.kernel, dense=taps, exponent=0)
    is_integer = request.target.kind != "f"

    def run(images: Array, out: Array, clipped: Array | None) -> None:
        beyond = 0
        for index in np.ndindex(images.shape[:-2]):
            task = Task(images[index], kernel, request.mode, request.cval, is_integer)
            sums = fourier.run(task) if task.finite else _by_pieces(task.padded(np.float64), taps)
            beyond += store(sums, 0, out[index])
        if clipped is not None:
            clipped += np.uint64(beyond)

    return run


def _by_pieces(frame: Array, taps: npt.NDArray[np.float64]) -> Array:
    """Sum directly over pieces of the taps: a transform would spread what is not finite over the whole frame."""
    height, width = (size - reach + 1 for size, reach in zip(frame.shape, taps.shape, strict=True))
    xp = array_namespace(frame)
    sums, part = xp.zeros((height, width)), xp.empty((height, width))
    for u in range(0, taps.shape[0], LARGEST_FILTER):
        for v in range(0, taps.shape[1], LARGEST_FILTER):
            piece = taps[u : u + LARGEST_FILTER, v : v + LARGEST_FILTER]
            window = frame[u : u + height + piece.shape[0] - 1, v : v + width + piece.shape[1] - 1]
            problem = FilterProblem((window.shape[0], window.shape[1]), piece.shape, 1, "valid")
            prepare_filter(problem, piece, image_type="float64", result_type="float64")(window, part, None)
            sums += part
    return sums
