"""Planes walked over a few at a time, on the device while its memory suffices, then on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np

from xcorr_app.errors import DeviceMemoryError
from xcorr_app.gpu.runtime.memory import release_unused
from xcorr_app.registration.passes import Pass, Progress

T = TypeVar("T")

NOTE = "The device's memory did not suffice for the stack: the CPU {} it from plane {} on."


def over_planes(
    xp: Any,
    count: int,
    pixels: int,
    job: Callable[[int, int, Any], T],
    stage: tuple[str, str],
    progress: Progress | None,
    notes: list[str],
    *,
    small: bool = False,
) -> Iterator[T]:
    """Yield ``job(start, stop, xp)`` for consecutive ranges of `count` planes of `pixels`, in order.

    Where the device's memory does not suffice for a single plane, the CPU goes on from there, and `notes` says so once.
    `stage` is a verb for the progress, and its past tense for that note. For `small` see `Pass.over`.
    """
    name, past = stage
    done = 0
    if xp is not np:

        def counted(start: int, stop: int) -> tuple[int, T]:
            return stop, job(start, stop, xp)

        try:
            for stop, result in Pass(count, pixels, on_device=True, progress=progress).over(name, counted, small=small):
                yield result
                done = stop
            return
        except DeviceMemoryError:
            release_unused()
            notes.append(NOTE.format(past, done))
    first = done

    def tell(of_stage: str, number: int, _: int) -> None:
        if progress is not None:
            progress(of_stage, first + number, count)

    rest = Pass(count - first, pixels, on_device=False, progress=tell)
    yield from rest.over(name, lambda start, stop: job(first + start, first + stop, np), small=small)
