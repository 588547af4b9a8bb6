"""Planes walked over a few at a time, on the device while its memory suffices, then on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar

import numpy as np

from xcorr_app.errors import DeviceMemoryError
from xcorr_app.gpu.runtime.memory import release_unused
from xcorr_app.registration.stack.passes import Pass, Progress

T = TypeVar("T")

NOTE = "The device's memory did not suffice for the stack: the CPU {} it from plane {} on."


def over_planes(
    xp: Any,
    count: int,
    pixels: int,
    job: Callable[..., T],
    stage: tuple[str, str],
    progress: Progress | None,
    notes: list[str],
) -> Iterator[T]:
    """Yield ``job(start, stop, xp=xp)`` for consecutive ranges of `count` planes of `pixels`, in order.

    Where the device's memory does not suffice for a single plane, the CPU goes on from there, and `notes` says so once.
    `stage` is a verb for the progress, and its past tense for that note.
    """
    name, past = stage
    tell = progress or (lambda _stage, _done, _total: None)
    tell(name, 0, count)
    done = 0
    for there in [np] if xp is np else [xp, np]:
        try:
            for stop, result in Pass(count, pixels, there is not np).within(done, count, partial(job, xp=there)):
                yield result
                del result  # not kept while the next one is computed
                done = stop
                tell(name, done, count)
            return
        except DeviceMemoryError:
            if there is np:
                raise
            release_unused()
            notes.append(NOTE.format(past, done))
