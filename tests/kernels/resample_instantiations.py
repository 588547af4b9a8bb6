"""Launches of the kernels that move and sum up frames, as the launchers make them: what must compile everywhere."""

from __future__ import annotations

import numpy as np

from xcorr_app.gpu.resample.fourier import FourierProblem, fourier_launches
from xcorr_app.gpu.resample.problem import PIXEL_TYPES, TAPS, TranslationProblem
from xcorr_app.gpu.resample.splines import READ, spline_launch
from xcorr_app.gpu.resample.translation import translation_launch
from xcorr_app.gpu.resample.warping import WarpProblem, warp_launch


def translation(dtype, method, shape=(512, 512), count=512, *, counts=True, **options):
    return translation_launch(TranslationProblem(shape, count, dtype, method, counts=counts), **options)


def launches_of_resample():
    """Camera frames by every method, counted or not."""
    for dtype in ("uint8", "uint16", "float32"):
        for method in TAPS:
            for counts in (False, True):
                yield translation(dtype, method, counts=counts)
        for method in ("linear", "cubic"):
            for grid in (None, (9, 9)):
                yield warp_launch(WarpProblem((512, 512), 64, dtype, method, grid))
        yield from fourier_launches(FourierProblem((512, 512), 64, dtype, counts=True))
        yield spline_launch((512, 512), 64, dtype)


def other_launches_of_resample():
    """Other types, widths and addresses that allow no vectors, small frames."""
    for dtype in READ:
        yield spline_launch((511, 513), 64, dtype)
    for dtype in PIXEL_TYPES:
        for method in TAPS:
            yield translation(dtype, method)
            yield translation(dtype, method, (511, 513))
            yield translation(dtype, method, (33, 18), 1, alignment=np.dtype(dtype).itemsize)
        for method in ("nearest", "linear", "cubic"):
            for grid in (None, (9, 9)):
                yield warp_launch(WarpProblem((511, 513), 64, dtype, method, grid))
        for counts in (False, True):
            yield from fourier_launches(FourierProblem((33, 65), 3, dtype, counts=counts))
