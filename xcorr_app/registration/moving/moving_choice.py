"""The one choice of moving: what moves the frames of a stack, on a device of given limits, and why."""

from __future__ import annotations

import functools

from xcorr_app.decision import Candidate, Decision
from xcorr_app.gpu.resample.problem import TranslationProblem
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.registration.moving.interpolation import METHODS, Order, check_order


@functools.lru_cache(maxsize=256)
def decide_moving(
    frame_shape: tuple[int, int], count: int, dtype: str, order: Order, limits: DeviceLimits | None
) -> Decision:
    """Decide what moves so many frames of a type (NumPy's name) by an order; `limits` None is the CPU.

    Every order is one definition, and each has one engine on a device and one on the CPU.

    Examples
    --------
    >>> print(decide_moving((512, 512), 512, "uint16", 3, None).described())
    opencv: order 3, cubic, has 4 taps along each axis: OpenCV's separable filter, frames shared among threads
      not modelled  opencv
    """
    check_order(order)
    if order == "fourier":
        return Decision("fft", "", "Fourier interpolation reaches over the whole frame", (Candidate("fft"),))
    method = METHODS[order]
    taps = TranslationProblem(frame_shape, count, dtype, method).taps
    what = f"order {order}, {method}, has {taps} tap{'s' if taps > 1 else ''} along each axis"
    if limits is None:
        engine, how = ("opencv", "OpenCV's separable filter") if taps > 1 else ("numpy", "pixels are copied")
        return Decision(engine, reason=f"{what}: {how}, frames shared among threads", candidates=(Candidate(engine),))
    return Decision("resample", method, f"{what}: all frames in one launch", (Candidate("resample", method),))
