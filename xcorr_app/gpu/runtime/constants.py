"""Arrays that are kept from one call to the next, for work in any stream of a device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")


def constants(xp: Any, make: Callable[[], T]) -> T:
    """Return what `make` computes with NumPy, or with CuPy on the current device: complete, in memory of its own.

    CuPy's pool hands a block on in the order of one stream. What is cached is read by streams that the one which made
    it knows nothing of: so it is waited for here, once, and its memory comes from CUDA itself, which frees it only when
    the device has done all that was started before.
    """
    if xp is np:
        return make()
    with xp.cuda.using_allocator(None):
        made = make()
    xp.cuda.get_current_stream().synchronize()
    return made
