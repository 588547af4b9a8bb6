"""Bytes written to a place in a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xcorr_app.system import write_from

if TYPE_CHECKING:
    from collections.abc import Sequence


def write_at(descriptor: int, parts: Sequence[memoryview | bytes], offset: int) -> None:
    """Write buffers one after the other to a place in a file, all of them."""
    total, done = sum(memoryview(part).nbytes for part in parts), 0
    left = list(parts)
    while True:
        done += write_from(descriptor, left, offset + done)
        if done == total:
            return
        whole = b"".join(parts)
        left = [memoryview(whole)[done:]]
