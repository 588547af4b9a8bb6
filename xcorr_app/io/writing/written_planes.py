"""What every writer of planes asks of them: shape, type and number as the metadata promise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xcorr_app.errors import DataTypeError, OutputError, ShapeError

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np

    from xcorr_app.io.source import StackMetadata


def check_plane(path: Path, metadata: StackMetadata, plane: np.ndarray, written: int) -> None:
    """Raise ShapeError, DataTypeError or OutputError where a plane cannot follow those `written`."""
    if plane.shape != metadata.shape[-2:]:
        raise ShapeError(f"{path}: planes are {metadata.shape[-2:]}, got {plane.shape}")
    if plane.dtype.newbyteorder("=") != metadata.dtype:
        raise DataTypeError(f"{path}: planes are {metadata.dtype}, got {plane.dtype}")
    if written == metadata.planes:
        raise OutputError(f"{path}: all {metadata.planes} planes are written already")


def check_all_written(path: Path, metadata: StackMetadata, written: int) -> None:
    """Raise OutputError where planes are missing."""
    if written != metadata.planes:
        raise OutputError(f"{path}: {written} of {metadata.planes} planes were written")
