"""Passes over all frames of a stack: chunks, threads, progress."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial, reduce
from itertools import islice
from typing import Any, Generic, Protocol, TypeVar

from xcorr_app.gpu.runtime.memory import bytes_within_limit, in_parts

T = TypeVar("T")
S = TypeVar("S")
Progress = Callable[[str, int, int], None]
"""Called with the name of the stage, the frames done (0 when it begins) and the frames in all."""

_PIXELS_PER_CHUNK = 1 << 21
"""On a CPU a chunk should stay in the cache that cores share and be worth its calls; eight frames of 512 x 512."""
_PIXELS_PER_DEVICE_CHUNK = 1 << 26
_DEVICE_BYTES_PER_PIXEL = 128
"""What a measurement, verified in float64, needs at most for each pixel of a chunk, as a rule."""
_MAX_FRAMES_PER_CHUNK = 512
_HELD_PIXELS, _HELD_FRAMES = 1 << 29, 4096
"""The same for frames that need not be read, since the device holds them: there every range costs the host as much time
as a hundred frames."""
_FRAMES_TOGETHER = 64
"""That tensor cores multiply at once: device chunks of more are whole multiples."""
_RANGES_A_BLOCK = 4
"""What is summed over a stack is summed by blocks of so many ranges, and these then: so other processes may sum some of
them, and the sum has the same bits."""


@dataclass(frozen=True)
class Sums(Generic[T, S]):
    """How the results of a pass are summed: those of a block, in order, and then these."""

    of_block: Callable[[int, Iterator[T]], S]
    """From the number of the block's first image and the results of its ranges."""
    add: Callable[[S, S], S]
    """A function of a module; it may change the first and return it."""


class Sharing(Protocol):
    """Takes part in passes whose results are small: with other processes, of which each computes some blocks."""

    def shared(
        self, walk: Pass, stage: str, job: Callable[[int, int], Any], sums: Sums[Any, Any] | None
    ) -> Iterator[Any]:
        """Yield the results of all ranges in order, whoever computed them; with `sums`, their sum alone."""
        ...


_SHARING: ContextVar[Sharing | None] = ContextVar("sharing", default=None)


@contextmanager
def sharing(with_others: Sharing) -> Iterator[None]:
    """Share the passes that this thread makes."""
    token = _SHARING.set(with_others)
    try:
        yield
    finally:
        _SHARING.reset(token)


def is_shared() -> bool:
    """Whether this thread shares the passes that it makes."""
    return _SHARING.get() is not None


@dataclass(frozen=True)
class Pass:
    """How to walk over images of one size.

    Parameters
    ----------
    count : int
        Number of images.
    pixels : int
        Pixels of one of them.
    on_device : bool
        They are device arrays: large chunks, one thread, since the device itself works in parallel.
    progress : callable, optional
    held : bool
        The device holds all images already: ranges may be longer, since nothing waits until they are read.
    ranges_a_block : int
        Fewest: where sums are as large as images, blocks are long, so that adding these takes little.
    together : int
        Images that no block parts, since they are written together.
    one_by_one : bool
        On a CPU, too, one range after the other.
    """

    count: int
    pixels: int
    on_device: bool
    progress: Progress | None = None
    held: bool = False
    ranges_a_block: int = _RANGES_A_BLOCK
    together: int = 1
    one_by_one: bool = False

    @property
    def images_at_once(self) -> int:
        """How many images a range has, the last one aside, where memory suffices."""
        return min(self.count, self._chunk(self._max_pixels))

    @property
    def chosen_as(self) -> int:
        """Number of images for which ways to compute are chosen: whatever fits, results are to be the same."""
        return min(self.count, self._chunk(_PIXELS_PER_DEVICE_CHUNK, _MAX_FRAMES_PER_CHUNK))

    @property
    def _max_pixels(self) -> int:
        """Pixels of a range."""
        if self.on_device:
            return _HELD_PIXELS if self.held else _PIXELS_PER_DEVICE_CHUNK
        return _PIXELS_PER_CHUNK

    @property
    def block(self) -> int:
        """How many images a block has, the last one aside; no range reaches beyond."""
        least = self.ranges_a_block * self._chunk(self._max_pixels)
        return -(-least // self.together) * self.together

    @property
    def blocks(self) -> int:
        """How many blocks there are."""
        return -(-self.count // self.block)

    def over(self, stage: str, job: Callable[[int, int], T], *, small: bool = False) -> Iterator[T]:
        """Yield ``job(start, stop)`` for consecutive ranges of images, in order, computed by several threads.

        Only a few ranges are under way at once, so memory does not grow with the stack. The ranges do not depend on
        the number of threads, nor does anything computed from them; on a device they depend on its free memory. Where
        results are `small`, a few numbers a frame, and the job does no more than return them, another process may
        compute some (`sharing`).

        Raises
        ------
        DeviceMemoryError
            If a device's memory does not suffice for one image.
        """
        self._report(stage, 0)
        others = _SHARING.get() if small and self.blocks > 1 else None
        if others is not None:
            yield from others.shared(self, stage, job, None)
            return
        yield from self.alone(stage, job)

    def alone(self, stage: str, job: Callable[[int, int], T]) -> Iterator[T]:
        """As `over`, without other processes."""
        yield from self._told(stage, self._walked(0, self.count, job))

    def total(
        self,
        stage: str,
        job: Callable[[int, int], T],
        add: Callable[[S, S], S],
        of_block: Callable[[int, Iterator[T]], S] | None = None,
    ) -> S:
        """Sum ``job(start, stop)`` over all ranges: by blocks, then these, in order; `add` is a function of a module.

        What is added of a block is ``of_block(first, results)`` of its ranges, or their sum. Bits do not depend on who
        sums which blocks.
        """
        sums: Sums[T, S] = Sums(of_block or partial(_summed, add), add)
        self._report(stage, 0)
        others = _SHARING.get() if self.blocks > 1 or of_block is not None else None
        if others is not None:
            found: S
            (found,) = others.shared(self, stage, job, sums)
            return found
        return self.total_alone(stage, job, sums)

    def total_alone(self, stage: str, job: Callable[[int, int], T], sums: Sums[T, S]) -> S:
        """As `total`, without other processes."""
        return reduce(sums.add, self._sums(stage, job, sums))

    def _sums(self, stage: str, job: Callable[[int, int], T], sums: Sums[T, S]) -> Iterator[S]:
        """What is added, block after block."""
        if self.on_device:
            for first in range(0, self.count, self.block):
                results = self._walked(first, min(first + self.block, self.count), job)
                yield sums.of_block(first, self._told(stage, results))
            return
        # Threads go on with the next block while one is summed.
        all_results = self._told(stage, self._walked(0, self.count, job))
        ranges = -(-self.block // self._chunk(_PIXELS_PER_CHUNK))
        for first in range(0, self.count, self.block):
            yield sums.of_block(first, islice(all_results, ranges))

    def _told(self, stage: str, results: Iterator[tuple[int, T]]) -> Iterator[T]:
        for stop, result in results:
            yield result
            del result  # not kept while the next one is computed
            self._report(stage, stop)

    def _walked(self, first: int, last: int, job: Callable[[int, int], T]) -> Iterator[tuple[int, T]]:
        """As `within`, of a pass that nobody else takes part in."""
        return self.within(first, last, job)

    def within(self, first: int, last: int, job: Callable[[int, int], T]) -> Iterator[tuple[int, T]]:
        """Yield ``stop, job(start, stop)`` for the ranges from a block's first image to another one's last."""
        if self.on_device:
            yield from self._on_device(first, last, job)
            return
        size = self._chunk(_PIXELS_PER_CHUNK)
        blocks = range(first - first % self.block, last, self.block)
        ends = ((max(block, first), min(block + self.block, last)) for block in blocks)
        ranges = ((start, min(start + size, end)) for begin, end in ends for start in range(begin, end, size))
        workers = worker_count()
        if workers == 1 or last - first <= size or self.one_by_one:
            for start, stop in ranges:
                yield stop, job(start, stop)
            return
        with ThreadPoolExecutor(workers, thread_name_prefix="xcorr") as pool:
            waiting: list[tuple[int, Future[T]]] = []
            try:
                for start, stop in islice(ranges, 2 * workers):
                    waiting.append((stop, pool.submit(job, start, stop)))
                while waiting:
                    done, future = waiting.pop(0)
                    result = future.result()
                    for start, stop in islice(ranges, 1):
                        waiting.append((stop, pool.submit(job, start, stop)))
                    yield done, result
            finally:
                for _, future in waiting:
                    future.cancel()

    def _on_device(self, first: int, last: int, job: Callable[[int, int], T]) -> Iterator[tuple[int, T]]:
        """One range after the other; from where memory runs out, ranges are half as long."""
        size = self._chunk(min(self._max_pixels, bytes_within_limit() // _DEVICE_BYTES_PER_PIXEL))
        what = f"one image of {self.pixels} pixels does not fit"

        def there(start: int, stop: int) -> T:
            return job(first + start, first + stop)

        for stop, result in in_parts(there, last - first, at_once=size, what=what):
            yield first + stop, result
            del result  # not kept while the next one is computed

    def _chunk(self, budget: int, most: int | None = None) -> int:
        """Return how many images of a range have at most `budget` pixels; 1 where one has more."""
        most = most or (_HELD_FRAMES if self.on_device and self.held else _MAX_FRAMES_PER_CHUNK)
        images = max(1, min(budget // self.pixels, most))
        rest = images % _FRAMES_TOGETHER if self.on_device and images > _FRAMES_TOGETHER else 0
        return images - rest

    def _report(self, stage: str, done: int) -> None:
        if self.progress is not None:
            self.progress(stage, done, self.count)


def _summed(add: Callable[[T, T], T], _: int, results: Iterator[T]) -> T:
    return reduce(add, results)


def worker_count() -> int:
    """Number of processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
