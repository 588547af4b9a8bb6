"""When peaks are found sooner on tensor cores: a model of the time, with constants measured on one H200.

Three ways lead from matrices to the records of peaks: tensor cores (sums in half precision, their search, the values
around each peak anew), the kernels of single precision (which search as they sum, or search the planes they write), and
the FFT. Their sums are counted work over a rate; what a way does besides takes a constant, and a time for an element or
a shift. Tables of rectangle sums count where one way alone needs them.
"""

from __future__ import annotations

import math

from xcorr_app.gpu.direct.costs import costs
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.peaks.search import peak_launch
from xcorr_app.gpu.runtime.launch import ceil_div
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.gpu.tensor.hankel import slides_left
from xcorr_app.gpu.tensor.hankel_frames import frames_launch, takes_frames
from xcorr_app.gpu.tensor.run import chosen_launch
from xcorr_app.gpu.tensor.small_hankel import small_hankel_launch

__all__ = ["peak_costs", "small_peak_cost", "tensor_cores_are_faster", "tensor_peak_cost"]

_MULTIPROCESSORS = 132
"""Of the device measured."""
_RATES = {"hankel_frames": 3e8, "hankel_warpgroup": 2.5e8, "hankel_pieces": 2.5e8, "hankel": 1.2e8}
"""Products of halves a microsecond, over whole tiles of shifts, where all multiprocessors have blocks."""
_TOGETHER = {"hankel_frames": 64, "hankel_warpgroup": 4}
"""Matrices that a product is always made for."""
_LATENCY = 27.0
"""Microseconds of a launch each of sums, search and neighbourhoods, with nothing to do."""
_NEIGHBOURHOOD = 1.1e-6
"""Microseconds an element that the sums around a peak take in single precision."""
_SEARCH = 1e-5
"""Microseconds a shift of the search of planes in memory, where every multiprocessor searches one."""

_SMALL_LATENCY = 6.2
"""Microseconds of the launch that does all of a pair in one block, of a pair alone."""
_SMALL_PRODUCTS = 2e8
"""Products of halves a microsecond in that launch."""
_SMALL_ELEMENT, _SMALL_SHIFT, _SMALL_PAIR = 1e-6, 4e-6, 0.006
"""Microseconds there: an element of either matrix (tables, halves), a shift (its centre, search), a pair."""

_ADDING = 7e-4
"""Microseconds a sum that a pair's last block adds up, where the kernel that searches as it sums cuts pairs."""
_ARRAYS, _ARRAYS_LATENCY = 6e-5, 6e3
"""Microseconds an element, and at least, of the array operations that normalise and search what the FFT made."""


def tensor_peak_cost(problem: Problem, device: DeviceLimits | None = None) -> float:
    """Return the expected time of sums, search and neighbourhoods, by several launches.

    Parameters
    ----------
    problem : Problem
        Any.
    device : DeviceLimits, optional
        One with products of four warps (compute capability 9.0).

    Returns
    -------
    float
        Microseconds of the whole batch, without the tables of rectangle sums.
    """
    device = device or DeviceLimits()
    if takes_frames(problem, device):
        launch = frames_launch(problem, device=device).products
        tile = int(launch.defines["N_TILES"]) * 8 * int(launch.defines["EX_TILES"])
    else:
        launch = chosen_launch(problem, groups=True, device=device).launch
        tile = 8 * int(launch.defines["N_TILES"]) * 16 * int(launch.defines["M_TILES"])
    kernel = launch.entry
    shifts = tile * launch.extra[0] * launch.extra[1]
    pairs = problem.pairs
    if kernel in _TOGETHER:
        plains, slid = (1, pairs) if slides_left(problem) else (problem.lefts, problem.rights_per_left)
        pairs = plains * ceil_div(slid, _TOGETHER[kernel]) * _TOGETHER[kernel]
    busy = min(device.multiprocessors, launch.blocks) / _MULTIPROCESSORS
    pixels = math.prod(problem.right_shape)
    sums = pairs * pixels * shifts / (_RATES[kernel] * busy)
    return _LATENCY + sums + problem.pairs * pixels * _NEIGHBOURHOOD + _search(problem, device)


def small_peak_cost(problem: Problem, device: DeviceLimits | None = None) -> float | None:
    """Return the expected time of the launch that finds peaks of plain sums of small matrices.

    Parameters
    ----------
    problem : Problem
        Any.
    device : DeviceLimits, optional
        Whose shared memory holds a pair.

    Returns
    -------
    float or None
        Microseconds of the whole batch; None where that kernel does not take the problem.
    """
    device = device or DeviceLimits()
    if small_hankel_launch(problem, left_type="float32", right_type="float32", device=device) is None:
        return None
    elements = math.prod(problem.left_shape) + math.prod(problem.right_shape)
    shifts = math.prod(problem.plane_shape)
    products = problem.products / problem.pairs / _SMALL_PRODUCTS
    pair = _SMALL_PAIR + products + elements * _SMALL_ELEMENT + shifts * _SMALL_SHIFT
    return _SMALL_LATENCY + _at_once(problem, device) * pair


def peak_costs(problem: Problem, device: DeviceLimits | None = None, *, normalize: bool = True) -> dict[str, float]:
    """Return the expected time of every way to the records of peaks.

    Parameters
    ----------
    problem : Problem
        Any.
    device : DeviceLimits, optional
        One of compute capability 9.0.
    normalize : bool, optional
        Whether scores are sought, or plain sums: these on tensor cores only of small matrices, by the kernel that marks
        what half precision does not decide.

    Returns
    -------
    dict
        ``"fft"``, ``"warp-shuffle"`` and, where it finds such peaks, ``"tensor"`` -> microseconds of the whole batch.
    """
    device = device or DeviceLimits()
    kernels = costs(problem, device)
    fft = kernels.pop("fft") + _search(problem, device)
    if normalize:
        fft += max(_ARRAYS_LATENCY, _ARRAYS * problem.pairs * math.prod(problem.right_shape))
    fused = peak_launch(problem, normalize=normalize, left_type="float32", right_type="float32", device=device)
    searching = math.inf
    if fused is not None and "combined" in kernels:
        adding = fused.segments * math.prod(problem.plane_shape) * _ADDING if fused.segments > 1 else 0.0
        searching = kernels.pop("combined") + adding
    single = min(searching, min(kernels.values(), default=math.inf) + _search(problem, device))
    found = {"fft": fft, "warp-shuffle": single}
    tensor = tensor_peak_cost(problem, device) if normalize else small_peak_cost(problem, device)
    return found if tensor is None else {**found, "tensor": tensor}


def tensor_cores_are_faster(problem: Problem, device: DeviceLimits | None = None, *, normalize: bool = True) -> bool:
    """Whether they find peaks sooner than the FFT and the other kernels.

    Parameters
    ----------
    problem, device, normalize
        As for `peak_costs`.

    Returns
    -------
    bool
        By the model and the table of measurements.
    """
    expected = peak_costs(problem, device, normalize=normalize)
    return min(expected, key=expected.__getitem__) == "tensor"


def _search(problem: Problem, device: DeviceLimits) -> float:
    return _SEARCH * _at_once(problem, device) * math.prod(problem.plane_shape)


def _at_once(problem: Problem, device: DeviceLimits) -> float:
    """Return the pairs that the measured device has done in the time that this one takes, a block each."""
    return _MULTIPROCESSORS * max(1.0, problem.pairs / device.multiprocessors)
