"""What lies outside an image: the five boundary modes of ``scipy.ndimage``, and ``valid``.

Padding is written once, here, so every engine that works on a padded frame knows every mode, every origin and
frames smaller than the filter. The outside of a row ``a b c d``, mode by mode:

======== ===========================
reflect  ``d c b a | a b c d | d c b a``
constant ``k k k k | a b c d | k k k k``
nearest  ``a a a a | a b c d | d d d d``
mirror   ``a d c b | a b c d | c b a d``
wrap     ``a b c d | a b c d | a b c d``
valid    no outside: only outputs whose footprint lies inside the image
======== ===========================
"""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from xcorr_app.gpu.runtime.arrays import Array, array_namespace
from xcorr_app.gpu.stencil.cosine_series import source_rows

Mode: TypeAlias = Literal["reflect", "constant", "nearest", "mirror", "wrap", "valid"]
MODES: tuple[Mode, ...] = get_args(Mode)


def source_indices(length: int, before: int, after: int, mode: Mode) -> npt.NDArray[np.intp]:
    """Say which pixel of a line each position of the padded line takes its value from.

    Examples
    --------
    >>> source_indices(3, 2, 2, "reflect").tolist()
    [1, 0, 0, 1, 2, 2, 1]
    >>> source_indices(3, 2, 2, "mirror").tolist()
    [2, 1, 0, 1, 2, 1, 0]
    """
    return source_rows(np.arange(-before, length + after), length, mode)


def padded(
    frame: Array,
    rows: tuple[int, int],
    columns: tuple[int, int],
    mode: Mode,
    cval: float,
    dtype: npt.DTypeLike,
) -> Array:
    """Copy a frame into a larger one whose margin continues it as the mode says.

    Examples
    --------
    >>> padded(np.array([[1, 2]]), (0, 1), (1, 0), "constant", 9, float)
    array([[9., 1., 2.],
           [9., 9., 9.]])
    """
    xp = array_namespace(frame)
    if mode == "valid":
        return xp.array(frame, dtype=dtype, order="C")
    height, width = frame.shape
    (top, bottom), (left, right) = rows, columns
    whole = xp.empty((top + height + bottom, left + width + right), dtype)
    if mode == "constant":
        whole.fill(cval)
        whole[top : top + height, left : left + width] = frame
        return whole
    band = whole[top : top + height]
    band[:, left : left + width] = frame
    across = xp.asarray(left + source_indices(width, left, right, mode))
    band[:, :left] = band[:, across[:left]]
    band[:, left + width :] = band[:, across[left + width :]]
    down = xp.asarray(top + source_indices(height, top, bottom, mode))
    whole[:top] = whole[down[:top]]
    whole[top + height :] = whole[down[top + height :]]
    return whole
