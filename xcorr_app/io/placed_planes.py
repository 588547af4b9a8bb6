"""Planes of a TIFF file that several processes write, each to its place; one of them completes it in the end."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Self

from xcorr_app.io.atomic import begun_path
from xcorr_app.io.outputs import new_writer
from xcorr_app.io.write import StackWriter

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from xcorr_app.io.source import StackMetadata


class PlacedPlanes:
    """Where one process writes its planes, under a temporary name; see `StackWriter`, whose `begun` completes the file.

    Parameters
    ----------
    path, metadata
        Of the whole file, which is not compressed.
    mark
        Of the run.
    """

    def __init__(self, path: Path, metadata: StackMetadata, mark: str) -> None:
        writer = new_writer(path, metadata)
        assert isinstance(writer, StackWriter)  # noqa: S101 - OME-Zarr is not written so
        self._writer, self._partial = writer, begun_path(path, mark)

    is_placed = True

    def place(self, first: int, planes: Sequence[np.ndarray]) -> None:
        """Write planes, the `first` of that number."""
        # Closed each time: then a network's file system has them before anybody is told.
        descriptor = os.open(self._partial, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            self._writer.place_in(descriptor, first, planes)
        finally:
            os.close(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass
