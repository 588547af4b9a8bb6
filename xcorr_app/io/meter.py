"""Who is told how long what took: a stage's name, the seconds when it began and ended, and its bytes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

Meter: TypeAlias = Callable[[str, float, float, int], None]
"""``meter(stage, begin, end, bytes)``, in seconds of ``time.perf_counter``; called from any thread."""


@contextmanager
def timed(meter: Meter | None, stage: str, size: int = 0) -> Iterator[None]:
    """Tell the meter, if any, of what happens in the block."""
    begin = time.perf_counter()
    try:
        yield
    finally:
        if meter is not None:
            meter(stage, begin, time.perf_counter(), size)
