"""SciPy's operations on images, or their twins in CuPy."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np


def ndimage_of(xp: Any) -> ModuleType:
    """Return ``scipy.ndimage`` or its twin for device arrays."""
    if xp is np:
        from scipy import ndimage
    else:
        from cupyx.scipy import ndimage
    module: ModuleType = ndimage
    return module
