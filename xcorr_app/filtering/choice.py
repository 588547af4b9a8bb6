"""The one choice of filters: what computes a request, and why. Pure: limits come in.

`limits` of None stand for the CPU. The rules are those that measurements on an H200 set.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from xcorr_app.decision import Candidate, Decision
from xcorr_app.errors import ArgumentError
from xcorr_app.filtering.engines.choice import chosen_engine
from xcorr_app.filtering.precision import needs_double
from xcorr_app.filtering.request import Request
from xcorr_app.filtering.taps import MAX_TERMS, Filter, Kernel
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.gpu.stencil.kernels import WHY_NOT, FilterTask
from xcorr_app.gpu.stencil.problem import LARGEST_FILTER, FilterProblem
from xcorr_app.gpu.stencil.reuse import reuse_kernel
from xcorr_app.gpu.stencil.separable import fits_one_pass

DENSE_AREA = {1: 42, 2: 42, 4: 49, 8: 49}
"""Taps, by the bytes of a pixel, up to which the copy of the image takes as long as the products, or nearly: the dense
kernel is then the simpler one. Of 7 x 7 over uint16 it takes 20 % longer than one pass along each axis."""
SLIDING_SIGMA = {1: 5.5, 2: 7.25, 4: 8.5}
"""Mean of both axes, in pixels, from which on a Gaussian by sliding sums takes no longer than its taps, by the bytes of
a result: one pass takes in proportion to the taps, as measured at 6, 7 and 8 pixels."""
SMALLEST_SLIDING_SIGMA = 2.0
"""Of the other axis: its taps must reach eight pixels."""
_WORK_OF_SLIDING = 2.5e10
"""Pixels of all images times the cube of the width in pixels from which on sliding sums of 16-bit results, in float64,
take less than taps that fit one pass: what each segment begins with takes longer than all taps of few images."""
_FFT_FRAME, _FFT_PIXEL, _PASS_PRODUCT = 600.0, 1.2e-4, 1.5e-6
"""Microseconds by the FFT, a frame and a pixel of it, and of a product a pixel in passes too long for one launch."""
ENGINES = {"reuse": "reuse", "reuse_wide": "reuse", "exchange": "reuse"}
"""Public engine of each kernel, where it is not ``"separable"`` or the kernel's own name."""


def decide_filter(
    request: Request,
    taps: npt.ArrayLike | Filter,
    image_shape: tuple[int, ...],
    image_type: np.dtype,
    limits: DeviceLimits | None,
    *,
    named: str = "auto",
    finite: bool = True,
) -> Decision:
    """Say what filters images of a shape (..., H, W), and why.

    `named` is a kernel of the filters' table or ``"auto"``; `finite` says whether frames hold neither NaN nor infinity,
    which matters on the CPU.
    Raises ArgumentError for what cannot run there or these taps.
    """
    if limits is None:
        if named != "auto":
            raise ArgumentError(f"kernel {named!r} runs on a GPU: use 'auto'")
        return _on_host(request.kernel, finite=finite)
    kernel = request.kernel
    if named != "auto":
        task = filter_task(request, taps, image_shape, image_type, engine_of(named))
        of_table = reuse_kernel(task.problem, is_double=task.is_double) if named == "reuse" else named
        if refusal := WHY_NOT[of_table](task):
            raise ArgumentError(f"{refusal}: use 'auto'")
        return _decided(of_table, "it was asked for", task)
    sums_are_fast = request.target.itemsize != 2 or limits.has_fast_float64  # of 16 bits they are in float64
    if slides(taps, request, image_type) and sums_are_fast:
        task = filter_task(request, taps, image_shape, image_type, "sliding")
        if not _takes_less_by_taps(task):
            why = "a Gaussian so wide that sliding sums, which take the same for any width, take less than its taps"
            return _decided("sliding", why, task)
    family, why = _family(kernel, image_type.itemsize)
    task = filter_task(request, taps, image_shape, image_type, family)
    if family == "fft":
        return Decision("fft", "", why, _candidates(task, Candidate("fft")))
    if family == "reuse":
        name = reuse_kernel(task.problem, is_double=task.is_double)
        held = "rolling sums fit the registers" if name == "reuse" else "sums of so many rows do not stay in registers"
        return _decided(name, f"{why}; {held}", task)
    if not fits_one_pass(kernel.shape, task.summed_type):
        can = kernel.dense is not None and task.result_type == "float32" and not task.is_double
        if can and _takes_less_by_fft(task):
            why = f"{kernel.shape[0]} x {kernel.shape[1]} taps: so long that the FFT takes less"
            return Decision("fft", "", why, _candidates(task, Candidate("fft")))
        chosen = Candidate("separable", "two_passes")
        reason = f"{why}; too long for one pass"
        return Decision(chosen.engine, chosen.kernel, reason, _candidates(task, chosen))
    return _decided("separable", why, task)


def slides(taps: npt.ArrayLike | Filter, request: Request, image_type: np.dtype) -> bool:
    """Whether sliding sums are made for these taps and exact enough: wide centred Gaussians, with results in range.

    An axis adds an error of at most 4e-6 of the largest magnitude, and of 6e-8 where results are integers of 16 bits.
    """
    sigmas = _sliding_sigmas(taps, request, image_type)
    least = SLIDING_SIGMA[request.target.itemsize] if sigmas else 0.0
    return sigmas is not None and sum(sigmas) >= 2 * least and min(sigmas) >= SMALLEST_SLIDING_SIGMA


def _sliding_sigmas(taps: npt.ArrayLike | Filter, request: Request, image_type: np.dtype) -> tuple[float, float] | None:
    """Widths of a Gaussian that sliding sums can be made for, exact enough; None for everything else."""
    if not isinstance(taps, Filter) or taps.sigmas is None or request.mode == "valid":
        return None
    if image_type == np.float64 or request.target == np.float64:
        return None
    if request.target.kind != "f":
        limits, outside = np.iinfo(request.target), request.cval if request.mode == "constant" else 0
        if not limits.min <= outside <= limits.max:
            return None
    return taps.sigmas if request.kernel.centre == (taps.shape[0] // 2, taps.shape[1] // 2) else None


def is_cheaper_apart(shape: tuple[int, int], rank: int, pixel_bytes: int = 4) -> bool:
    """Whether passes along either axis cost less than all taps: products a pixel, where the copy does not hide them."""
    height, width = shape
    dense = DENSE_AREA[pixel_bytes if rank == 1 else 4]
    return height * width > dense and rank * (height + width) < height * width


def engine_of(kernel: str) -> str:
    """Return the public engine that a kernel of the table belongs to."""
    return ENGINES.get(kernel, "sliding" if kernel == "sliding" else "separable")


def origin_of(request: Request) -> tuple[int, int]:
    """Rows and columns by which the taps' centre is off ``size // 2``."""
    if request.mode == "valid":
        return 0, 0
    rows, columns = (at - size // 2 for at, size in zip(request.kernel.centre, request.kernel.shape, strict=True))
    return rows, columns


def _has_terms(kernel: Kernel) -> bool:
    return 0 < len(kernel.terms) <= MAX_TERMS


def _family(kernel: Kernel, pixel_bytes: int) -> tuple[str, str]:
    """Return ``reuse``, ``separable`` or ``fft``, and why."""
    (height, width), rank = kernel.shape, len(kernel.terms)
    size, fits = f"{height} x {width} taps", max(kernel.shape) <= LARGEST_FILTER
    if _has_terms(kernel) and (not fits or is_cheaper_apart(kernel.shape, rank, pixel_bytes)):
        return "separable", f"{size} of rank {rank}: {rank * (height + width)} products a pixel for {height * width}"
    if not fits:
        return "fft", f"{size} of rank above {MAX_TERMS} are more than {LARGEST_FILTER} a side"
    if height * width <= DENSE_AREA[pixel_bytes]:
        return "reuse", f"{size} take about as long as the copy of the image"
    return "reuse", f"{size} of rank above {MAX_TERMS}" if not _has_terms(kernel) else f"{size} cost no more at once"


def _takes_less_by_taps(task: FilterTask) -> bool:
    """Whether a stack is so small that what each segment of sliding sums begins with takes longer than all taps."""
    if task.result_type not in ("uint16", "int16") or not fits_one_pass(task.problem.filter_shape, task.summed_type):
        return False
    pixels, width = task.problem.count * math.prod(task.problem.image_shape), sum(task.sigmas or ()) / 2
    return pixels * width**3 < _WORK_OF_SLIDING


def _takes_less_by_fft(task: FilterTask) -> bool:
    """Whether two passes too long for one launch take longer than the FFT."""
    frame = math.prod(task.problem.image_shape)
    by_passes = frame * max(1, len(task.terms)) * sum(task.problem.filter_shape) * _PASS_PRODUCT
    return _FFT_FRAME + frame * _FFT_PIXEL < by_passes


def filter_task(
    request: Request, taps: npt.ArrayLike | Filter, image_shape: tuple[int, ...], image_type: np.dtype, engine: str
) -> FilterTask:
    """Return what the filters' table is asked, where sums are as exact as the engine needs them."""
    kernel = request.kernel
    height, width = image_shape[-2:]
    problem = FilterProblem(
        (height, width), kernel.shape, math.prod(image_shape[:-2]), request.mode, origin_of(request)
    )
    double = needs_double(request, image_type, engine)
    terms = kernel.unscaled_terms if _has_terms(kernel) else ()
    sigmas = _sliding_sigmas(taps, request, image_type)
    return FilterTask(problem, image_type.name, request.target.name, double, terms, sigmas)


def _decided(kernel: str, reason: str, task: FilterTask) -> Decision:
    chosen = Candidate(engine_of(kernel), kernel)
    return Decision(chosen.engine, kernel, reason, _candidates(task, chosen))


def _candidates(task: FilterTask, chosen: Candidate) -> tuple[Candidate, ...]:
    """All that could run the task on the device, the chosen one among them."""
    found = [
        Candidate(engine_of(name), name)
        for name, why_not in WHY_NOT.items()
        if name != chosen.kernel and why_not(task) is None
    ]
    fft = [] if chosen.engine == "fft" else [Candidate("fft")]
    return (chosen, *found, *fft)


def _on_host(kernel: Kernel, *, finite: bool) -> Decision:
    able = [name for name, can in (("separable", bool(kernel.terms)), ("opencv", kernel.dense is not None)) if can]
    able += ["fft"] * (kernel.dense is not None and finite)
    chosen = chosen_engine(kernel, finite=finite)
    height, width = kernel.shape
    reasons = {
        "separable": f"{height} x {width} taps of rank {len(kernel.terms)}: one pass along each axis",
        "fft": f"{height} x {width} taps of full rank: one transform of the frame",
        "opencv": f"{height} x {width} taps: OpenCV's direct or block-wise sums",
    }
    return Decision(chosen, "", reasons[chosen], tuple(Candidate(name) for name in dict.fromkeys((chosen, *able))))
