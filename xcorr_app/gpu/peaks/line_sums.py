"""What lines of images in device memory tell at a glance: one launch and one wait."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import dense, empty
from xcorr_app.gpu.runtime.binder import start
from xcorr_app.gpu.runtime.download import download
from xcorr_app.gpu.runtime.launch import WARP, Launch, ceil_div
from xcorr_app.gpu.runtime.types import INPUT_TYPES, name_of

GROUPS = 16
"""Parts of a line whose means are taken."""
_THREADS = 128


@functools.lru_cache(maxsize=256)
def line_sums_launch(shape: tuple[int, int], pairs: int, element: str) -> Launch:
    """Choose the launch for images of a shape and type, as NumPy names it, and so many odd rows of two of them."""
    blocks = 2 * pairs + ceil_div(GROUPS * sum(shape), _THREADS)
    defines: dict[str, str | int] = {"RIGHT_TYPE": INPUT_TYPES[element]}
    return Launch("peaks/line_sums", defines, blocks, _THREADS, 16 * (_THREADS // WARP))


def line_sums(
    two: tuple[Any, Any], one: Any, first: int, pairs: int
) -> tuple[NDArray[np.float64], tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Sums (2, 2, pairs) of odd rows of two images (h, w), and means (h, 16), (w, 16) of parts of lines of another.

    The sums are, over each second row from `first` + 1 on, of slope times difference and of the slope squared, both of
    the mean of the two rows beside it.
    """
    height, width = one.shape
    images = [dense(each) for each in (*two, one)]
    whole = empty(4 * pairs + GROUPS * (height + width))
    launch = line_sums_launch((height, width), pairs, name_of(one.dtype))
    start(launch, (*images, whole[: 4 * pairs], whole[4 * pairs :]), (height, width, first, pairs))
    host = download(whole)
    means = host[4 * pairs :].reshape(-1, GROUPS)
    return host[: 4 * pairs].reshape(2, pairs, 2).transpose(2, 0, 1), (means[:height], means[height:])
