"""The one choice of registration: what compares frames with their reference, on a device of given limits, and why."""

from __future__ import annotations

from dataclasses import replace

from xcorr_app.correlation.choice import decide_peaks, decide_planes
from xcorr_app.correlation.problem import problem_of
from xcorr_app.correlation.subpixel import radius_of
from xcorr_app.decision import Decision
from xcorr_app.gpu.peaks.search import finds_peaks
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.gpu.runtime.types import INPUT_TYPES
from xcorr_app.registration.settings import Settings


def decide_registration(
    frame_shape: tuple[int, int],
    dtype: str,
    frames: int,
    settings: Settings,
    limits: DeviceLimits | None,
    *,
    weighted: bool = False,
    shared_reference: bool = True,
) -> Decision:
    """Decide engine and kernel for so many frames at a time; `limits` None is the CPU.

    `dtype` is the frames' type as NumPy names it; `weighted` says that frequencies are weighted, which is known once
    frames have been read; `shared_reference` that all frames are compared with one image.
    """
    shape = settings.measured_shape(frame_shape)
    window = settings.window(frame_shape)
    if settings.normalization == "phase":
        return Decision("fft", reason="phase correlation is computed by the FFT alone")
    batch = (1, frames, frames) if shared_reference else (frames, frames, 1)
    problem = problem_of(shape, shape, window, *batch)
    engine, options = settings.engine, settings.kernel_options
    if limits is None:
        return decide_planes(problem, engine=engine, options=options, limits=None)
    needed = why_planes(settings, window.shape, limits, weighted=weighted)
    if needed is None and dtype not in INPUT_TYPES:
        needed = f"the kernels that find peaks read {', '.join(INPUT_TYPES)}, not {dtype}"
    if needed is not None:
        # Frames are standardised before: in float32.
        decided = decide_planes(problem, engine=engine, options=options, limits=limits)
        return replace(decided, reason=f"{decided.reason}; whole planes, as {needed}")
    if engine == "auto" and not shared_reference and (options is None or options.asks_nothing):
        decided = decide_peaks(problem, dtypes=("float32", dtype), engine="direct", limits=limits)
        planes = decide_planes(problem, limits=limits)
        return planes if planes.engine == "fft" else decided
    return decide_peaks(problem, dtypes=("float32", dtype), engine=engine, options=options, limits=limits)


def why_planes(settings: Settings, plane_shape: tuple[int, int], limits: DeviceLimits, *, weighted: bool) -> str | None:
    """Why these settings need whole planes; None where peaks can be found without."""
    options = settings.kernel_options
    if options is not None and options.precision not in (None, "fp16"):
        return f"precision {options.precision} is that of planes"
    if settings.normalization != "zncc":
        return f"normalization is {settings.normalization}"
    if weighted:
        return "frequencies are weighted"
    if radius_of(settings.of_peak) > 1:
        return f"sub-pixel method {settings.subpixel} looks farther than the nearest shifts"
    if not finds_peaks(plane_shape, limits):
        return "the window's scores do not fit the shared memory of a block"
    return None
