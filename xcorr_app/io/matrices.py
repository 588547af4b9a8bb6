"""Files that hold one matrix or a stack of them, for correlating: images and NumPy's ``.npy``."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from xcorr_app.errors import InputError
from xcorr_app.io.finding.scan import scan_file
from xcorr_app.io.images import npy
from xcorr_app.io.limits import Limits
from xcorr_app.io.names import split_inner
from xcorr_app.io.ome_zarr.zarr_image import is_zarr
from xcorr_app.io.opened import opened
from xcorr_app.io.single_channel import Channel, PickedImage, scan_channel
from xcorr_app.io.source import ImageFile
from xcorr_app.system import read_at


@dataclass(frozen=True)
class MatrixFile:
    """A file whose header was checked; its pixels are read by `read`.

    Attributes
    ----------
    shape
        (H, W), (K, H, W) or (N, M, H, W); leading axes of size one are left out.
    dtype
        Type of a pixel, native byte order.
    pixels
        Reads all of them.
    channels
        Number of channels in the file, of which one is taken.
    """

    path: Path
    shape: tuple[int, ...]
    dtype: np.dtype
    pixels: Callable[[], np.ndarray]
    channels: int = 1

    def read(self) -> np.ndarray:
        """Read all matrices, of shape `shape`."""
        values = self.pixels().reshape(self.shape)
        for number, matrix in enumerate(values.reshape(-1, *values.shape[-2:]) if values.dtype.kind == "f" else ()):
            wrong = matrix.size - int(np.count_nonzero(np.isfinite(matrix)))
            if wrong:
                raise InputError(
                    f"{self.path}: image {number} holds {wrong} NaN or infinite values, which have no correlation; "
                    "replace them, for example by the mean"
                )
        return values


def scan_matrices(path: Path, channel: Channel | None = None, limits: Limits | None = None) -> MatrixFile:
    """Check the header of a file of images or of a ``.npy`` array.

    `channel` is taken from files with several, counted from 0, or of colour images; without it, the first one is, and
    colour images are refused. Raises InputError, DamagedFileError or LimitError where the file is missing, damaged, too
    large, of a kind that cannot be correlated, or lacks the channel.
    """
    limits = limits or Limits()
    if not is_zarr(path) and _is_npy(split_inner(path)[0]):
        array = npy.read_header(path)
        if not (channel is not None and _is_coloured(array.shape)):
            return _scan_npy(path, array, limits)
    if channel is None:
        file = scan_file(path, limits)
        return _of_image(file, file.metadata.sizes["C"])
    file = scan_channel(path, limits, channel=channel, lenient=True)
    return _of_image(file, file.file.metadata.sizes["C"] if isinstance(file, PickedImage) else 1)


def _is_coloured(shape: tuple[int, ...]) -> bool:
    return len(shape) in (3, 4) and shape[-1] == 3


def _is_npy(path: Path) -> bool:
    with opened(path) as descriptor:
        return read_at(descriptor, len(npy.SIGNATURE), 0) == npy.SIGNATURE


def _of_image(file: ImageFile, channels: int) -> MatrixFile:
    sizes, dtype = file.metadata.sizes, file.metadata.dtype

    def pixels() -> np.ndarray:
        values = np.empty((sizes["T"], sizes["Z"], sizes["Y"], sizes["X"]), dtype)
        for t, z in np.ndindex(sizes["T"], sizes["Z"]):
            values[t, z] = file.read(file.page_at(t, z, 0))
        return values

    shape = (*(sizes[axis] for axis in "TZ" if sizes[axis] > 1), sizes["Y"], sizes["X"])
    return MatrixFile(file.path, shape, dtype, pixels, channels)


def _scan_npy(path: Path, array: npy.NpyArray, limits: Limits) -> MatrixFile:
    shape, dtype = _without_ones(array.shape), array.dtype.newbyteorder("=")
    if not 2 <= len(shape) <= 4 or 0 in shape:
        raise InputError(
            f"{path}: holds an array of shape {array.shape}; matrices are (H, W), (K, H, W) or (N, M, H, W) "
            "with at least one element"
        )
    if dtype.kind not in "iuf" or dtype.itemsize > 8:
        raise InputError(f"{path}: holds {dtype}, which cannot be correlated; save integers or floats of up to 64 bits")
    limits.check_plane(path, shape[-2], shape[-1], dtype)
    limits.check_pages(path, math.prod(shape[:-2]))
    return MatrixFile(path, shape, dtype, lambda: np.array(npy.map_array(path, array), dtype, order="C"))


def _without_ones(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Shape without the leading axes of size one, of which rows and columns are none."""
    return (*(size for size in shape[:-2] if size != 1), *shape[-2:])
