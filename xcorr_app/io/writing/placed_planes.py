"""Planes of one file or folder that several processes write, each to its place; one of them completes it in the end."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from xcorr_app.io.outputs import Writer, new_writer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xcorr_app.io.source import StackMetadata


class PlacedPlanes:
    """Where one process writes its planes; a writer that is told of the folder where they are `begun` completes them.

    Parameters
    ----------
    path, metadata
        Of the whole stack.
    folder
        On the same disk; it exists.
    **how
        Compression and pyramid, see `new_writer`.
    """

    def __init__(self, path: Path, metadata: StackMetadata, folder: Path, **how: Any) -> None:
        self._new = partial(new_writer, path, metadata, **how)
        self._folder = folder

    @contextmanager
    def part(self, first: int) -> Iterator[Writer]:
        """A writer of planes from that number on; when the block ends they are written."""
        writer = self._new()
        with writer.part(self._folder, first):
            yield writer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass
