"""Planes walked over a few at a time, on the device while its memory suffices, then on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from xcorr_app.errors import DeviceMemoryError
from xcorr_app.gpu.runtime.memory import release_unused
from xcorr_app.registration.stack.passes import Pass, Progress

T = TypeVar("T")

NOTE = "The device's memory did not suffice for the stack: the CPU {} it from plane {} on."


@dataclass(frozen=True)
class PlanesPass(Pass):
    """A pass over planes that the CPU goes on with from where the device's memory does not suffice for one."""

    past: str = ""
    """Of the stage, for the note."""
    notes: list[str] = field(default_factory=list)
    there: list[Any] = field(default_factory=list)
    """The module of the arrays, alone."""

    def there_too(self, job: Callable[[int, int, Any], T]) -> Callable[[int, int], T]:
        """A job that is told the module, too."""
        return lambda start, stop: job(start, stop, self.there[0])

    def _walked(self, first: int, last: int, job: Callable[[int, int], T]) -> Iterator[tuple[int, T]]:
        done = first
        if self.there[0] is not np:
            try:
                for stop, result in self.within(first, last, job):
                    yield stop, result
                    del result  # not kept while the next one is computed
                    done = stop
                return
            except DeviceMemoryError:
                release_unused()
                self.notes.append(NOTE.format(self.past, done))
                self.there[0] = np
        yield from replace(self, on_device=False).within(done, last, job)


def over_planes(
    xp: Any,
    count: int,
    pixels: int,
    job: Callable[[int, int, Any], T],
    stage: tuple[str, str],
    progress: Progress | None,
    notes: list[str],
) -> Iterator[T]:
    """Yield ``job(start, stop, xp)`` for consecutive ranges of `count` planes of `pixels`, in order.

    Where the device's memory does not suffice for a single plane, the CPU goes on from there, and `notes` says so once.
    `stage` is a verb for the progress, and its past tense for that note.
    """
    name, past = stage
    walk = PlanesPass(count, pixels, xp is not np, progress, past=past, notes=notes, there=[xp])
    yield from walk.over(name, walk.there_too(job))
