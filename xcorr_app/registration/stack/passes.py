"""Passes over all frames of a stack: chunks, threads, progress."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from xcorr_app.gpu.runtime.memory import bytes_within_limit, in_parts
from xcorr_app.system import worker_count

T = TypeVar("T")
Progress = Callable[[str, int, int], None]
"""Called with the name of the stage, the frames done (0 when it begins) and the frames in all."""

_PIXELS_PER_CHUNK = 1 << 22
"""On a CPU; a chunk of less than half of that is not worth its calls."""
_PIXELS_PER_DEVICE_CHUNK = 1 << 26
"""Enough to keep a device busy while the host prepares the next."""
_DEVICE_BYTES_PER_PIXEL = 128
"""What a measurement, verified in float64, needs at most for each pixel of a chunk, as a rule."""
_MAX_FRAMES_PER_CHUNK = 512
"""Of small frames a chunk has no more, whatever fits."""
_HELD_PIXELS, _HELD_FRAMES = 1 << 29, 4096
"""The same for frames that need not be read, since the device holds them: there every range costs the host as much time
as a hundred frames."""
_FRAMES_TOGETHER = 64
"""That tensor cores multiply at once: device chunks of more are whole multiples."""


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
    """

    count: int
    pixels: int
    on_device: bool
    progress: Progress | None = None
    held: bool = False

    @property
    def images_at_once(self) -> int:
        """How many images a range has, the last one aside, where memory suffices."""
        whole = self._chunk(self._max_pixels if self.on_device else _PIXELS_PER_CHUNK // 2)
        if self.on_device or self.count <= whole:
            return min(self.count, whole)
        # An even number of ranges, all of a length: two threads are ready together.
        return -(-self.count // (2 * -(-self.count // (2 * self._chunk(_PIXELS_PER_CHUNK)))))

    @property
    def canonical_batch(self) -> int:
        """Number of images for which ways to compute are chosen: whatever fits, results are to be the same."""
        return min(self.count, self._chunk(_PIXELS_PER_DEVICE_CHUNK, _MAX_FRAMES_PER_CHUNK))

    @property
    def _max_pixels(self) -> int:
        """Pixels of a range on a device."""
        return _HELD_PIXELS if self.held else _PIXELS_PER_DEVICE_CHUNK

    def over(self, stage: str, job: Callable[[int, int], T]) -> Iterator[T]:
        """Yield ``job(start, stop)`` for consecutive ranges of images, in order, computed by several threads.

        Only a few ranges are under way at once, so memory does not grow with the stack. The ranges do not depend on
        the number of threads, nor does anything computed from them; on a device they depend on its free memory.

        Raises
        ------
        DeviceMemoryError
            If a device's memory does not suffice for one image.
        """
        self._report(stage, 0)
        for stop, result in self.within(0, self.count, job):
            yield result
            del result  # not kept while the next one is computed
            self._report(stage, stop)

    def within(self, first: int, last: int, job: Callable[[int, int], T]) -> Iterator[tuple[int, T]]:
        """Yield ``stop, job(start, stop)`` for the ranges of some of the images."""
        if self.on_device:
            yield from self._on_device(first, last, job)
            return
        size = max(1, self.images_at_once)
        ranges = ((start, min(start + size, last)) for start in range(first, last, size))
        workers = worker_count()
        if workers == 1 or last - first <= size:
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

        def there(start: int, stop: int) -> T:
            return job(first + start, first + stop)

        for stop, result in in_parts(
            there, last - first, at_once=size, what=f"one image of {self.pixels} pixels does not fit"
        ):
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


@contextmanager
def shown(progress: Progress | bool | None) -> Iterator[Progress | None]:
    """Yield what to call with progress: a callable as it is, a bar on the terminal for True, None for nothing."""
    if progress is not True:
        yield progress or None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bar(*columns) as bar:
        task = bar.add_task("", total=None)
        yield lambda stage, done, total: bar.update(task, completed=done, total=total, description=stage)
