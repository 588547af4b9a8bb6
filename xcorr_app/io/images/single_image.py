"""A file that holds one image and is decoded whole."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from xcorr_app.errors import DamagedFileError, LimitError
from xcorr_app.io.opened import Stamp, opened, parsing
from xcorr_app.io.plane_image import FormatImage
from xcorr_app.io.source import make_metadata
from xcorr_app.system import read_at

_OTHER_BYTES = 1 << 26
"""Of colour profiles, previews and notes."""


def single_image(
    path: Path,
    decode: Callable[[bytes], np.ndarray],
    shape: tuple[int, int],
    dtype: np.dtype,
    stamp: Stamp,
    samples: int = 1,
) -> FormatImage:
    """An image whose header was checked; `decode` makes (Y, X) or (Y, X, 3) of the file's bytes.

    What is decoded must have the size and type that the header declares. A fourth value a pixel, the opacity, must be
    full everywhere.
    """
    height, width = shape
    # The file is read whole: what follows the image must not decide how much memory that takes.
    if stamp[0] > 2 * height * width * samples * dtype.itemsize + _OTHER_BYTES:
        raise LimitError(
            f"{path}: has {stamp[0]} bytes for {height} x {width} pixels, far more than they need; save the image again"
        )

    def plane(*_: int) -> np.ndarray:
        with opened(path, stamp) as descriptor:
            content = read_at(descriptor, stamp[0], 0)
        with parsing(path, "cannot be decoded"):
            image = decode(content)
        if image.ndim == 3 and image.shape[-1] == 4 and samples == 3:
            if (image[..., 3] != np.iinfo(image.dtype).max).any():
                raise DamagedFileError(f"{path}: is transparent in places; save it without transparency")
            image = image[..., :3]
        return np.moveaxis(image, -1, 0) if samples > 1 else image

    sizes = {"T": 1, "Z": 1, "C": samples, "Y": height, "X": width}
    return FormatImage(path, make_metadata(sizes, "CYX", dtype, "png"), plane, stamp, samples)
