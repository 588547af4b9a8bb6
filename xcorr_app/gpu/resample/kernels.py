"""The family's kernels: what each takes, how it is launched, and what it costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from xcorr_app.gpu.resample import translation, warping
from xcorr_app.gpu.resample.fourier import FourierProblem, fourier_launches
from xcorr_app.gpu.resample.problem import TranslationProblem, sum_type
from xcorr_app.gpu.resample.splines import spline_launch
from xcorr_app.gpu.resample.translation import translation_launch
from xcorr_app.gpu.resample.warping import WarpProblem, warp_launch
from xcorr_app.gpu.runtime.kernel_table import KernelEntry
from xcorr_app.gpu.runtime.launch import Launch
from xcorr_app.gpu.runtime.limits import KNOWN_DEVICES, DeviceLimits

_COPY = 4.1e6
"""Bytes that an H200 reads and writes in a microsecond."""
_FMA = 30e6
"""Multiply-adds of float32 that it does in a microsecond; half as many of float64."""
_LAUNCH = 2.5
_OTHER_WORK = 8
"""Instructions of a pixel besides its taps': loads, conversion, rounding, addresses."""


def translation_cost(problem: TranslationProblem, limits: DeviceLimits) -> float:
    """Microseconds: the copy or the instructions, whichever takes longer: a floor, no fit."""
    pixels = problem.moved_bytes / 2 / problem.itemsize
    weight = 2 if problem.dtype in ("int32", "uint32", "float64") else 1
    work = pixels * (2 * problem.taps * weight + _OTHER_WORK) / _FMA
    share = KNOWN_DEVICES["h200"].multiprocessors / limits.multiprocessors
    return _LAUNCH + max(problem.moved_bytes / _COPY, work) * share


def fourier_cost(problem: FourierProblem, limits: DeviceLimits) -> float:
    """Microseconds of what its launches and FFTs read and write, by the share of an H200: a floor, no fit."""
    height, width = problem.frame_shape
    pixel, kept = np.dtype(problem.dtype).itemsize, 8 if sum_type(problem.dtype) == "double" else 4
    moved = problem.count * height * width * (2 * pixel + 24 * kept)
    return 9 * _LAUNCH + moved / _COPY * KNOWN_DEVICES["h200"].multiprocessors / limits.multiprocessors


def _takes(method: str) -> Callable[[TranslationProblem, DeviceLimits], str | None]:
    def accepts(problem: TranslationProblem, _: DeviceLimits) -> str | None:
        return None if problem.method == method else f"it computes {method}, not {problem.method}"

    return accepts


def _launch(
    problem: TranslationProblem, limits: DeviceLimits, tuning: Mapping[str, int] | None = None, **options: Any
) -> Launch:
    return translation_launch(problem, limits, tuning=tuning, **options)


def _warp(
    problem: WarpProblem, limits: DeviceLimits, tuning: Mapping[str, int] | None = None, **options: Any
) -> Launch:
    return warp_launch(problem, limits, tuning=tuning, **options)


_DOCUMENTS = {
    "nearest": "copies of the nearest pixels",
    "linear": "linear interpolation along both axes",
    "cubic": "Keys (1981), doi:10.1109/TASSP.1981.1163711: cubic convolution",
    "lanczos": "Duchon (1979), doi:10.1175/1520-0450(1979)018<1016:LFIOAT>2.0.CO;2: Lanczos filtering, radius 4",
}

KERNELS: Mapping[str, KernelEntry[TranslationProblem]] = {
    method: KernelEntry(
        method, ("resample/translate",), _takes(method), _launch, translation_cost, translation.TUNABLES, document
    )
    for method, document in _DOCUMENTS.items()
}
"""Kernels that move frames, by the name of their interpolation."""

FOURIER: Mapping[str, KernelEntry[FourierProblem]] = {
    "fourier": KernelEntry(
        "fourier",
        ("resample/fourier_lines", "resample/fourier_shift", "resample/fourier_store"),
        lambda _problem, _limits: None,
        fourier_launches,
        fourier_cost,
        document="Makhoul (1980), doi:10.1109/TASSP.1980.1163351: cosine transforms by real FFTs of their length",
    )
}
"""What moves frames by Fourier interpolation, between batched FFTs."""

WARPS: Mapping[str, KernelEntry[WarpProblem]] = {
    "warp": KernelEntry(
        "warp",
        ("resample/warp_frames",),
        lambda _problem, _limits: None,
        _warp,
        tunables=warping.TUNABLES,
        document="Unser (1999), doi:10.1109/79.799930: splines; frames seen through matrices or fields",
    )
}
"""Kernels that see frames through more than a shift."""

SPLINES: Mapping[str, KernelEntry[tuple[int, int]]] = {
    "splines": KernelEntry(
        "splines",
        ("resample/spline_frames",),
        lambda _shape, _limits: None,
        spline_launch,
        document="Unser (1999), doi:10.1109/79.799930: coefficients of splines",
    )
}
"""What frames are seen through splines by."""
