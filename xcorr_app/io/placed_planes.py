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
    """Where one process writes its planes, under a temporary name; a writer that is told of it as `begun` completes it.

    Parameters
    ----------
    path, metadata
        Of the whole stack.
    mark
        Of the run.
    **how
        Compression and pyramid, see `new_writer`.
    """

    def __init__(self, path: Path, metadata: StackMetadata, mark: str, **how: Any) -> None:
        self._new = partial(new_writer, path, metadata, **how)
        self._mark = mark

    @contextmanager
    def part(self, first: int) -> Iterator[Writer]:
        """A writer of planes from that number on; when the block ends they are on the disk."""
        writer = self._new()
        with writer.part(self._mark, first):
            yield writer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass
