"""Correlation planes to files, plane by plane, whole or not at all: NumPy's ``.npy``, or a TIFF that ImageJ opens.

The TIFF holds float32 and says in its description, in a line ``xcorr={...}`` of JSON, which shift is the first
element's: ``json.loads(tifffile.TiffFile(path).imagej_metadata["xcorr"])``. An ``.npy`` holds the values as they were
computed and nothing else.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from xcorr_app.errors import ArgumentError, OutputError
from xcorr_app.io.source import StackMetadata, TiffTags, make_metadata
from xcorr_app.io.writing.atomic import atomic_path, remove_abandoned
from xcorr_app.io.writing.write import StackWriter

Write: TypeAlias = Callable[[np.ndarray], None]

_TIFF = (".tif", ".tiff")


def check_plane_name(path: Path) -> None:
    """Refuse a name that does not say which kind of file is wanted."""
    name = path.name.lower()
    if not name.endswith((*_TIFF, ".npy")) or name.endswith((".ome.tif", ".ome.tiff")):
        raise ArgumentError(f"{path}: planes are written as .tif (not OME-TIFF) or .npy; choose one by the ending")


@contextmanager
def plane_writer(path: Path, shape: tuple[int, ...], dtype: np.dtype, facts: dict[str, Any]) -> Iterator[Write]:
    """Open a file for planes; it appears under its name when the block ends without an error.

    What a killed process left of the same file is removed. Yields what is to be called with arrays (k, ny, nx) until
    all planes of `shape` are written, the last leading axis fastest: (ny, nx), (M, ny, nx) or (N, M, ny, nx). In a
    TIFF, M alone is the axis T, N and M are T and Z, values are float32, and `facts` go into the description as JSON.
    """
    check_plane_name(path)
    remove_abandoned(path)
    is_tiff = path.name.lower().endswith(_TIFF)
    with _tiff(path, shape, facts) if is_tiff else _npy(path, shape, dtype) as write:
        yield write


@contextmanager
def _tiff(path: Path, shape: tuple[int, ...], facts: dict[str, Any]) -> Iterator[Write]:
    with StackWriter(path, _metadata(shape, facts)) as writer:

        def write(planes: np.ndarray) -> None:
            with np.errstate(over="ignore"):
                single = planes.astype(np.float32)
            if (np.isinf(single) & np.isfinite(planes)).any():
                raise OutputError(f"{path}: values up to {np.nanmax(np.abs(planes)):.3g} do not fit float32; use .npy")
            for plane in single:
                writer.write(plane)

        yield write


@contextmanager
def _npy(path: Path, shape: tuple[int, ...], dtype: np.dtype) -> Iterator[Write]:
    with atomic_path(path) as partial, partial.open("wb") as file:
        header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        begin = file.tell()

        def write(planes: np.ndarray) -> None:
            file.write(np.ascontiguousarray(planes, dtype).data)

        yield write
        if file.tell() - begin != int(np.prod(shape)) * dtype.itemsize:
            raise OutputError(f"{path}: not all planes of {shape} were written, or too many")


def _metadata(shape: tuple[int, ...], facts: dict[str, Any]) -> StackMetadata:
    sizes = {"T": 1, "Z": 1, "C": 1} | dict(zip("TZ", shape[:-2], strict=False))
    sizes |= {"Y": shape[-2], "X": shape[-1]}
    metadata = make_metadata(sizes, "TZYX", np.dtype(np.float32), "imagej")
    description = f"ImageJ=1.54f\nxcorr={json.dumps(facts)}\n".encode("ascii")
    return StackMetadata(metadata.axes, metadata.shape, metadata.dtype, "imagej", tiff=TiffTags(description))
