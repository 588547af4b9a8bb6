"""A file that holds one image and is decoded whole."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from xcorr_app.errors import DamagedFileError, LimitError
from xcorr_app.io.opened import Stamp, opened, stamp
from xcorr_app.io.parsing import parsing
from xcorr_app.io.source import StackMetadata, make_metadata

_OTHER_BYTES = 1 << 26
"""Of colour profiles, previews and notes."""


@dataclass(frozen=True)
class SingleImage:
    """An image whose header was checked; `decode` makes (Y, X) or (Y, X, 3) of the file's bytes.

    What is decoded must have the size and type that the header declares. A fourth value a pixel, the opacity, must be
    full everywhere.
    """

    path: Path
    decode: Callable[[bytes], np.ndarray]
    shape: tuple[int, int]
    dtype: np.dtype
    stamp: Stamp
    samples: int = 1
    page_count: int = 1

    def __post_init__(self) -> None:
        # The file is read whole: what follows the image must not decide how much memory that takes.
        needed = self.shape[0] * self.shape[1] * self.samples * self.dtype.itemsize
        if self.stamp[0] > 2 * needed + _OTHER_BYTES:
            raise LimitError(
                f"{self.path}: has {self.stamp[0]} bytes for {self.shape[0]} x {self.shape[1]} pixels, far more than "
                "they need; save the image again"
            )

    @property
    def metadata(self) -> StackMetadata:
        """Axes and type; colour images have an axis C of size three."""
        height, width = self.shape
        return make_metadata({"T": 1, "Z": 1, "C": self.samples, "Y": height, "X": width}, "CYX", self.dtype, "png")

    def page_at(self, t: int, z: int, c: int) -> int:
        """Page of a plane: there is one."""
        if (t, z) != (0, 0) or not 0 <= c < self.samples:
            raise IndexError(f"{self.path}: has no plane t={t}, z={z}, c={c}")
        return 0

    def read(self, page: int) -> np.ndarray:
        """Read the image, (Y, X) or (3, Y, X) in native byte order."""
        with opened(self.path) as descriptor:
            if page != 0 or stamp(descriptor) != self.stamp:
                raise DamagedFileError(f"{self.path}: was changed by another program while it was being read")
            content = os.pread(descriptor, self.stamp[0], 0)
        with parsing(self.path, "cannot be decoded"):
            image = self.decode(content)
        if image.ndim == 3 and image.shape[-1] == 4 and self.samples == 3:
            if (image[..., 3] != np.iinfo(image.dtype).max).any():
                raise DamagedFileError(f"{self.path}: is transparent in places; save it without transparency")
            image = image[..., :3]
        expected = (*self.shape, self.samples) if self.samples > 1 else self.shape
        if image.shape != expected or image.dtype != self.dtype:
            raise DamagedFileError(
                f"{self.path}: decodes to {image.shape} {image.dtype}, declared are {expected} {self.dtype}"
            )
        return np.ascontiguousarray(np.moveaxis(image, -1, 0) if self.samples > 1 else image)
