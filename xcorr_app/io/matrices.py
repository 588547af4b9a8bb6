"""Files that hold one matrix or a stack of them, for correlating: TIFF, PNG and NumPy's ``.npy``."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from xcorr_app.errors import DamagedFileError, InputError
from xcorr_app.io.discover import scan_file
from xcorr_app.io.limits import Limits
from xcorr_app.io.source import ImageFile
from xcorr_app.io.tiff import opened

_NPY = b"\x93NUMPY"


class MatrixFile(Protocol):
    """A file whose header was checked; its pixels are read by `read`."""

    @property
    def path(self) -> Path:
        """The file."""

    @property
    def shape(self) -> tuple[int, ...]:
        """(H, W), (K, H, W) or (N, M, H, W); leading axes of size one are left out."""

    @property
    def dtype(self) -> np.dtype:
        """Type of a pixel, native byte order."""

    @property
    def channels(self) -> int:
        """Number of channels in the file, of which one is taken."""

    def read(self) -> np.ndarray:
        """Read all matrices, of shape `shape`."""


def scan_matrices(path: Path, channel: int = 0, limits: Limits | None = None) -> MatrixFile:
    """Check the header of a TIFF, PNG or ``.npy`` file; `channel` is taken from files with several, counted from 0.

    Raises InputError, DamagedFileError or LimitError where it is missing, damaged, too large, of a kind that cannot be
    correlated, or lacks the channel.
    """
    limits = limits or Limits()
    with opened(path) as descriptor:
        head = os.pread(descriptor, len(_NPY), 0)
    if head == _NPY:
        return _scan_npy(path, limits)
    file = scan_file(path, limits)
    channels = file.metadata.sizes["C"]
    if channels > 1 and channel >= channels:
        raise InputError(f"{path}: has {channels} channels: --channel counts from 0, up to {channels - 1}")
    return _Image(file, channel if channels > 1 else 0)


@dataclass(frozen=True)
class _Image:
    file: ImageFile
    channel: int

    @property
    def path(self) -> Path:
        return self.file.path

    @property
    def shape(self) -> tuple[int, ...]:
        sizes = self.file.metadata.sizes
        return (*(sizes[axis] for axis in "TZ" if sizes[axis] > 1), sizes["Y"], sizes["X"])

    @property
    def dtype(self) -> np.dtype:
        return self.file.metadata.dtype

    @property
    def channels(self) -> int:
        return self.file.metadata.sizes["C"]

    def read(self) -> np.ndarray:
        sizes = self.file.metadata.sizes
        values = np.empty((sizes["T"], sizes["Z"], sizes["Y"], sizes["X"]), self.dtype)
        for t, z in np.ndindex(sizes["T"], sizes["Z"]):
            values[t, z] = self.file.read(self.file.page_at(t, z, self.channel))
        return _finite(self.path, values.reshape(self.shape))


@dataclass(frozen=True)
class _Npy:
    path: Path
    shape: tuple[int, ...]
    dtype: np.dtype
    channels: int = 1

    def read(self) -> np.ndarray:
        stored = _map_npy(self.path)
        if (_without_ones(stored.shape), stored.dtype.newbyteorder("=")) != (self.shape, self.dtype):
            raise DamagedFileError(f"{self.path}: was changed by another program while it was being read")
        return _finite(self.path, np.array(stored, self.dtype, order="C").reshape(self.shape))


def _scan_npy(path: Path, limits: Limits) -> _Npy:
    stored = _map_npy(path)
    shape, dtype = _without_ones(stored.shape), stored.dtype.newbyteorder("=")
    if not 2 <= len(shape) <= 4 or stored.size == 0:
        raise InputError(
            f"{path}: holds an array of shape {stored.shape}; matrices are (H, W), (K, H, W) or (N, M, H, W) "
            "with at least one element"
        )
    if dtype.kind not in "iuf" or dtype.itemsize > 8:
        raise InputError(f"{path}: holds {dtype}, which cannot be correlated; save integers or floats of up to 64 bits")
    limits.check_plane(path, shape[-2], shape[-1], dtype)
    limits.check_pages(path, stored.size // (shape[-2] * shape[-1]))
    return _Npy(path, shape, dtype)


def _map_npy(path: Path) -> np.ndarray:
    with opened(path), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numpy tells of files that Python 2 wrote
        try:
            return np.lib.format.open_memmap(path, mode="r")
        except (ValueError, EOFError, SyntaxError, TypeError, OverflowError) as error:
            raise DamagedFileError(f"{path}: is no array that can be read ({error})") from error


def _without_ones(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Shape without the leading axes of size one, of which rows and columns are none."""
    return (*(size for size in shape[:-2] if size != 1), *shape[-2:])


def _finite(path: Path, values: np.ndarray) -> np.ndarray:
    if values.dtype.kind == "f":
        for number, matrix in enumerate(values.reshape(-1, *values.shape[-2:])):
            wrong = matrix.size - int(np.count_nonzero(np.isfinite(matrix)))
            if wrong:
                raise InputError(
                    f"{path}: image {number} holds {wrong} NaN or infinite values, which have no correlation; "
                    "replace them, for example by the mean"
                )
    return values
