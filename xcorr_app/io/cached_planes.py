"""A stack whose planes are read once: kept in memory where a budget allows it, with checksums taken as they pass.

Several threads may ask for the same plane: one of them reads it, the others wait for it. `read_ahead` lets threads of
its own read what will be asked for next. What is handed out of memory is not to be changed.
"""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby

import numpy as np

from xcorr_app.errors import InputError
from xcorr_app.io.checksum import Checksums
from xcorr_app.io.opened import is_of_system
from xcorr_app.io.series import Source
from xcorr_app.io.source import ImageFile, Meter, plane_number, plane_positions, timed
from xcorr_app.io.tiff.tiff import TiffImage


def read_planes(
    source: Source, positions: Sequence[dict[str, int]], out: np.ndarray, checksums: Checksums | None = None
) -> dict[int, InputError]:
    """Read planes at positions (t, z, c) into `out`, one entry each; those that cannot be read become zeros.

    Returns their errors by number in `positions`; `checksums` are told of the bytes of TIFF files that are read. Raises
    InputError where the system is at fault: a stack that went on without such a plane would be recorded as finished.
    """
    errors: dict[int, InputError] = {}
    places = [source.page_of(**position) for position in positions]
    start = 0
    for _, group in groupby(places, lambda place: id(place[0])):
        of_one = list(group)
        stop = start + len(of_one)
        found = _read_file(of_one[0][0], [page for _, page in of_one], out[start:stop], checksums)
        errors |= {start + i: error for i, error in found.items()}
        start = stop
    return errors


def is_plain(source: Source) -> bool:
    """Whether planes are read as they are stored, from one file: a few threads are as fast as many.

    Planes that must be decoded, and those of many files, are read the faster the more do.
    """
    source = getattr(source, "source", source)  # that of a `HeldSource`
    if len(source.paths) > 1:
        return False
    file, _ = source.page_of(0, 0, 0)
    return isinstance(file, TiffImage) and bool((file.data_offsets >= 0).all())


def _read_file(
    file: ImageFile, pages: list[int], out: np.ndarray, checksums: Checksums | None
) -> dict[int, InputError]:
    """Read pages of one file: together, and where that fails one by one, so that only damaged ones are lost."""
    try:
        file.read_into(pages, out, None if checksums is None else checksums.of(file.path))
    except InputError as error:
        if len(pages) > 1:
            of_each = [_read_file(file, [page], out[i : i + 1], checksums) for i, page in enumerate(pages)]
            return {i: found[0] for i, found in enumerate(of_each) if found}
        out[0] = 0
        return {0: _of_file(error)}
    return {}


def _of_file(error: InputError) -> InputError:
    """Return an error that says that a file is damaged or missing; raise one of the system, which may pass."""
    if is_of_system(error):
        raise error
    return error


_BYTES_AT_ONCE = 1 << 23
"""That a thread which reads ahead reads by one call."""


class MemoryBudget:
    """Bytes of host memory that stacks may be kept in; of those stored plainly, ones of up to `plain` bytes.

    The system keeps files that were read as long as it can. To read larger ones again takes less time than memory of
    our own beside that takes to be had.
    """

    def __init__(self, limit: int, plain: int | None = None) -> None:
        self.limit, self.plain = limit, limit if plain is None else min(plain, limit)
        self._taken, self._lock = 0, threading.Lock()

    def take(self, size: int) -> bool:
        """Take so many bytes, if they are there."""
        with self._lock:
            fits = self._taken + size <= self.limit
            self._taken += size if fits else 0
        return fits

    def give_back(self, size: int) -> None:
        """Return what was taken."""
        with self._lock:
            self._taken -= size


class HeldSource(Source):
    """A `Source` that reads each plane of another once, as far as memory allows: those of a part of the file together.

    One thread reads a part; who needs it meanwhile waits.
    """

    def __init__(
        self, source: Source, budget: MemoryBudget, checksums: Checksums | None = None, meter: Meter | None = None
    ) -> None:
        super().__init__(source.name, source.paths, source.metadata, source.page_of)
        self.source, self._budget, self._checksums, self._meter = source, budget, checksums, meter
        known = self.metadata
        self._size, self._step = known.planes * known.plane_bytes, max(1, _BYTES_AT_ONCE // known.plane_bytes)
        self._planes: np.ndarray | None = None
        self._errors: dict[int, InputError] = {}
        self._ahead: ThreadPoolExecutor | None = None
        self._parts = [threading.Lock() for _ in range(0, known.planes, self._step)]
        self._there = [False] * len(self._parts)
        if budget.take(self._size):
            try:
                self._planes = np.empty((known.planes, *known.shape[-2:]), known.dtype)
            except MemoryError:
                budget.give_back(self._size)
            else:
                self._positions = plane_positions(known)

    def planes(self, positions: Sequence[dict[str, int]]) -> tuple[np.ndarray, dict[int, InputError]]:
        """Planes at positions, (n, Y, X), not to be changed, and the errors of those that could not be read (zeros)."""
        if self._planes is None:
            out = np.empty((len(positions), *self.metadata.shape[-2:]), self.metadata.dtype)
            return out, self.fill(positions, out)
        numbers = [plane_number(self.metadata, **position) for position in positions]
        for part in dict.fromkeys(number // self._step for number in numbers):
            self._read_part(part)
        errors = {i: self._errors[number] for i, number in enumerate(numbers) if number in self._errors}
        first, last = numbers[0], numbers[-1]
        together = numbers == list(range(first, last + 1))
        found = self._planes[first : last + 1] if together else self._planes[numbers]
        found.flags.writeable = False
        return found, errors

    def fill(self, positions: Sequence[dict[str, int]], out: np.ndarray) -> dict[int, InputError]:
        """Read planes into a buffer, one entry each; returns the errors of those that could not be read (zeros)."""
        if self._planes is None:
            return self._read(positions, out)
        out[:], errors = self.planes(positions)
        return errors

    def read_ahead(self, threads: int) -> None:
        """Begin to read the whole stack in the order of the file, if it is kept and of more than one part."""
        if self._planes is not None and len(self._parts) > 1:
            self._ahead = ThreadPoolExecutor(threads, thread_name_prefix="xcorr-read")
            for part in range(len(self._parts)):
                # What goes wrong is told to whoever asks for these planes, and reads them again.
                self._ahead.submit(self._read_part, part)

    def close(self) -> None:
        """Give the memory back."""
        if self._ahead is not None:
            self._ahead.shutdown(cancel_futures=True)
        if self._planes is not None:
            self._planes = None
            self._budget.give_back(self._size)

    def _read(self, positions: Sequence[dict[str, int]], out: np.ndarray) -> dict[int, InputError]:
        with timed(self._meter, "read", out.nbytes):
            return read_planes(self.source, positions, out, self._checksums)

    def _read_part(self, part: int) -> None:
        """Have a part in memory."""
        with self._parts[part]:
            if not self._there[part] and self._planes is not None:
                start, stop = part * self._step, (part + 1) * self._step
                errors = self._read(self._positions[start:stop], self._planes[start:stop])
                self._errors |= {start + i: error for i, error in errors.items()}
                self._there[part] = True
