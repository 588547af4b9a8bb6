"""In place of a stack's pictures, where none are wanted."""

from __future__ import annotations

from typing import Any


class NoPictures:
    """Takes in frames as `Projections` does, and makes nothing of them."""

    sums = None

    def begun(self) -> None:
        """Nothing is gathered of a block of frames."""

    def add(self, *_: Any) -> None:
        """Take in a frame."""

    def end(self, gathered: None, *, to_join: bool) -> None:
        """Nothing was gathered."""

    def take(self, gathered: None, xp: Any) -> None:
        """Nothing was gathered."""

    def pictures(self) -> None:
        """There are none."""
