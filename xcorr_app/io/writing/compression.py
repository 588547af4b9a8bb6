"""Planes compressed for TIFF files, without loss, by imagecodecs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xcorr_app.errors import ArgumentError

COMPRESSIONS = ("zlib", "zstd", "lzw")
_CODES = {"zlib": 8, "zstd": 50000, "lzw": 5}
_LEVELS: dict[str, dict[str, int]] = {"zlib": {"level": 6}, "zstd": {"level": 5}, "lzw": {}}
_NONE, _HORIZONTAL = 1, 2


class Compression:
    """How planes of a type are compressed; integers as differences along the rows (the horizontal predictor)."""

    def __init__(self, name: str, dtype: np.dtype, stored: np.dtype) -> None:
        if name not in COMPRESSIONS:
            raise ArgumentError(f"compression {name!r} is not known: use one of {', '.join(COMPRESSIONS)}")
        self._name, self._dtype, self._stored = name, dtype, stored
        self.code = _CODES[name]
        """Value of the tag Compression."""
        self.predictor = _HORIZONTAL if dtype.kind in "iu" else _NONE
        """Value of the tag Predictor."""

    def encoded(self, plane: np.ndarray) -> bytes:
        """Bytes of a plane."""
        import imagecodecs

        encode: Callable[..., Any] = getattr(imagecodecs, f"{self._name}_encode")
        values = np.ascontiguousarray(plane, self._dtype)
        if self.predictor == _HORIZONTAL:
            values = imagecodecs.delta_encode(values, axis=-1)
        return bytes(encode(np.ascontiguousarray(values, self._stored).tobytes(), **_LEVELS[self._name]))
