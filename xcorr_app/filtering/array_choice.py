"""The one choice of filter banks and of channel mixing: what computes them, and why. Pure: limits come in.

What is expected is the time of a call among many: the root of the sum of squares of the device's time and of the host's
to start the work. The terms are fitted to the calls of `benchmarks/results/auto_fit.json`, of one H200, without the
copies of banks and matrices that those calls still repeated.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from xcorr_app.decision import Candidate, Decision
from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.im2win.bank import LARGEST_KEPT, PADDED_BYTES, BankProblem
from xcorr_app.gpu.im2win.kernels import KERNELS as BANK_KERNELS
from xcorr_app.gpu.im2win.kernels import form_for
from xcorr_app.gpu.pointwise.kernels import KERNELS as MIXING_KERNELS
from xcorr_app.gpu.pointwise.kernels import MixingTask, kernel_for
from xcorr_app.gpu.pointwise.mix import MIX_CHANNELS
from xcorr_app.gpu.pointwise.problem import LARGEST_KEPT as LARGEST_KEPT_MATRIX
from xcorr_app.gpu.pointwise.problem import MAX_CHANNELS, MAX_ELEMENTS, POINTWISE_TYPES, PointwiseProblem
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.gpu.stencil.costs import reuse_cost
from xcorr_app.gpu.stencil.problem import FilterProblem

__all__ = ["LARGEST_DIRECT", "decide_bank", "decide_mixing", "has_kernel", "is_wide"]

_IMPLICIT, _SHALLOW, _FILTERS = (9.7, 1.33), (5.8, 1.08), (4.3, 2.3)
"""Microseconds besides the models' of the kernels of a bank, and time over the models'; of one filter after the other
the same for each filter and channel. Fitted to half of 60 banks in turn, they choose right for the other half."""
_HOST, _HOST_OF_MATRIX = 20.0, 130.0
"""Microseconds of the host for a call, two launches and what is looked up, counted from those measured; and where a
bank or matrix is so large that it is uploaded at every call, which is measured."""
_HOST_OF_FILTER, _HOST_OF_CHANNEL, _HOST_OF_FLOATS = 43.0, 67.0, 36.0
"""Of each filter of one channel; of each filter and channel where channels are added up; and to look for what is not
finite. Measured."""
LARGEST_DIRECT = 100
"""Taps of a filter (one channel) up to which the CPU takes the sums directly."""
_COPY = 3.985e6
"""Bytes that the device reads and writes in a microsecond."""


@functools.lru_cache(maxsize=512)
def decide_bank(
    shape: tuple[int, int, int, int],
    image_type: np.dtype,
    bank_shape: tuple[int, int, int, int],
    limits: DeviceLimits | None,
    mode: str = "reflect",
    stride: int = 1,
    method: str = "auto",
) -> Decision:
    """Say what correlates images (N, C_i, H, W) with a bank (C_o, C_i, F_h, F_w), and why.

    `method` is a kernel of the table of banks by name; raises ArgumentError where it cannot run there.
    """
    filters, channels, rows, columns = bank_shape
    if limits is None:
        if method != "auto":
            raise ArgumentError(f"method {method!r} runs on a GPU: use 'auto'")
        direct = rows * columns <= LARGEST_DIRECT
        reason = f"{rows} x {columns} taps: " + ("OpenCV's sums" if direct else "one spectrum serves all filters")
        return Decision("opencv" if direct else "fft", "", reason, (Candidate("opencv"), Candidate("fft")))
    apart = _one_by_one(shape, image_type, bank_shape, limits, mode)
    if is_wide(image_type):
        if method != "auto":
            raise ArgumentError(f"method {method!r} sums in float32, images of {image_type} in float64: use 'auto'")
        return Decision("filters", "", "sums are float64: one filter after the other", (apart,))
    problem = BankProblem(*shape, filters, rows, columns, mode, stride)
    part = next(problem.parts(PADDED_BYTES // 4))
    layer = problem.convolution(part)
    whole = part.rows == problem.result_shape[0]
    # Bands of rows of one image leave gaps between the planes of a result, which the other kernel writes.
    kernel = "shallow" if whole and form_for(layer) == "shallow" else "implicit"
    share = shape[0] * problem.result_shape[0] / (part.images * part.rows)
    padding = 2 * 4 * share * math.prod(problem.padded_shape(part.rows)) * part.images / _COPY
    host = _HOST if math.prod(bank_shape) <= LARGEST_KEPT else _HOST_OF_MATRIX
    found = {}
    for name, (fixed, times) in {"implicit": _IMPLICIT, "shallow": _SHALLOW}.items():
        cost = BANK_KERNELS[name].cost
        if cost is not None and (name == "implicit" or kernel == "shallow"):
            expected = math.hypot(fixed + times * (padding + share * cost(layer, limits)), host)
            found[name] = Candidate("im2win", name, expected)
    if method != "auto":
        refusal = BANK_KERNELS[method].accepts(layer, limits)
        if method == "shallow" and not whole:
            refusal = "shallow writes whole planes, and one of these images fills a part of the memory"
        if refusal:
            raise ArgumentError(f"{refusal}: use 'auto'")
        others = tuple(candidate for name, candidate in found.items() if name != method)
        asked = found.get(method, Candidate("im2win", method))
        return Decision("im2win", method, "it was asked for", (asked, *others, apart))
    together = found[kernel]
    candidates = (*found.values(), apart)
    if (apart.microseconds or 0.0) < (together.microseconds or math.inf):
        return Decision("filters", "", f"{filters} filters leave most of a tile of filters empty", candidates)
    reasons = {
        "shallow": f"{layer.depth} products a result: all values stay in registers",
        "implicit": f"{filters} filters of {channels} channels share what is read of the images",
    }
    return Decision("im2win", kernel, reasons[kernel], candidates)


def is_wide(dtype: np.dtype) -> bool:
    """Whether images of a type are summed in float64 and their results float64."""
    return bool(dtype.newbyteorder("=") == np.float64) or (dtype.kind in "iu" and dtype.itemsize > 2)


@functools.lru_cache(maxsize=512)
def decide_mixing(
    source: np.dtype,
    target: np.dtype,
    shape: tuple[int, int],
    outer: int,
    inner: int,
    limits: DeviceLimits | None,
    *,
    density: bool = False,
    clip: bool = False,
    alignment: int = 16,
    named: str = "auto",
) -> Decision:
    """Say what multiplies the channels of a stack ``[outer][channels][inner]`` by a matrix of a shape, and why.

    `named` is a kernel of the table of mixing; raises ArgumentError where it cannot run there.
    """
    filters, channels = shape
    library = Candidate("matmul")
    if named != "auto" and limits is None:
        raise ArgumentError(f"kernel {named!r} runs on a GPU: use 'auto'")
    if named != "auto" and not has_kernel(source, target, shape, inner):
        raise ArgumentError(f"no kernel mixes {channels} channels of {source} into {filters} of {target}: use 'auto'")
    if limits is None or not has_kernel(source, target, shape, inner):
        no_kernel = f"no kernel mixes {channels} channels of {source} into {filters} of {target}"
        why = "on the CPU the library multiplies strips" if limits is None else no_kernel
        return Decision("matmul", "", why, (library,))
    problem = PointwiseProblem(outer, channels, filters, inner, source.name, target.name, density, clip)
    task, reason = MixingTask(problem, alignment), "it was asked for"
    if named == "auto":
        kernel = kernel_for(problem, alignment=alignment, limits=limits)
        reason = _why_mixing(kernel, problem)
    elif refusal := MIXING_KERNELS[named].accepts(task, limits):
        raise ArgumentError(f"{refusal}: use 'auto'")
    else:
        kernel = named
    able = [name for name, entry in MIXING_KERNELS.items() if entry.accepts(task, limits) is None]
    kept = math.prod(shape) <= LARGEST_KEPT_MATRIX
    host, candidates = _HOST if kept else _HOST_OF_MATRIX, []
    for name in able:
        cost = MIXING_KERNELS[name].cost
        candidates.append(Candidate("pointwise", name, None if cost is None else math.hypot(cost(task, limits), host)))
    return Decision("pointwise", kernel, reason, (*candidates, library))


def has_kernel(source: np.dtype, target: np.dtype, shape: tuple[int, ...], pixels: int) -> bool:
    """Whether the kernels mix channels of one type into another on a device, planes of so many pixels; else CuPy does.

    Integer results of many channels are left to its matrix product, since it sums them in float64.
    """
    if source.name not in POINTWISE_TYPES or target.name not in POINTWISE_TYPES:
        return False
    few, most = MIX_CHANNELS, MAX_CHANNELS
    return max(shape) <= few or (
        bool(target == np.float32) and max(shape) <= most and max(shape) * pixels <= MAX_ELEMENTS
    )


def _why_mixing(kernel: str, problem: PointwiseProblem) -> str:
    size = f"{problem.channels} to {problem.filters} channels"
    reasons = {
        "mix": "a thread keeps all results of its pixels, at the rate of the copy",
        "mix_bytes": "exact products of bytes on tensor cores",
        "mix_split": "products in split TF32 on tensor cores, at the rate of the copy",
        "shallow": "all channels of a few pixels stay in registers",
        "tiled": "tiles by a model of the time",
        "blocking": "other types than float32, or densities, of many channels: blocked as planned",
    }
    return f"{size}: {reasons[kernel]}"


def _one_by_one(
    shape: tuple[int, ...], image_type: np.dtype, bank_shape: tuple[int, ...], limits: DeviceLimits, mode: str
) -> Candidate:
    """A pass for each filter and channel, and one to put its result into place."""
    types = ("float64",) * 2 if is_wide(image_type) else (image_type.name.replace("int8", "int16"), "float32")
    if image_type.name == "uint8":
        types = ("uint8", "float32")
    problem = FilterProblem((shape[-2], shape[-1]), (bank_shape[-2], bank_shape[-1]), shape[0], mode)
    one = reuse_cost(problem, *types, is_double=is_wide(image_type), limits=limits)
    read = math.prod(shape[-2:]) * np.dtype(types[0]).itemsize
    written = math.prod(problem.result_shape) * np.dtype(types[1]).itemsize
    # A channel is copied out of its images, and its sums are added to those of the others.
    moves = (2 * written) if bank_shape[1] == 1 else (2 * read + 5 * written)
    (fixed, times), passes, is_single = _FILTERS, bank_shape[0] * bank_shape[1], bank_shape[1] == 1
    device = passes * (fixed + times * (one + shape[0] * moves / _COPY))
    host = passes * (_HOST_OF_FILTER if is_single else _HOST_OF_CHANNEL)
    host += _HOST_OF_FLOATS if image_type.kind == "f" else 0.0
    return Candidate("filters", "", math.hypot(device, host))
