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

    def end(self, gathered: None) -> None:
        """Nothing was."""

    def take(self, gathered: None) -> None:
        """Nothing was."""

    def pictures(self) -> None:
        """There are none."""
