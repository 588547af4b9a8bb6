"""Device memory that runs out: how it is recognised, what can be given back, how much there is."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from xcorr_app.errors import DeviceMemoryError

T = TypeVar("T")

_WORDS = ("OUT_OF_MEMORY", "cudaErrorMemoryAllocation", "ALLOC_FAILED")
"""What CUDA's runtime, its driver and cuFFT or cuBLAS call the same thing."""


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an exception says that device memory has run out."""
    kind = type(error)
    if isinstance(error, DeviceMemoryError):
        return True
    if kind is MemoryError:
        return "bad_alloc" in str(error)  # of Thrust, which CuPy sorts with
    from_cupy = kind.__module__.partition(".")[0] in ("cupy", "cupy_backends")
    return from_cupy and (kind.__name__ == "OutOfMemoryError" or any(word in str(error) for word in _WORDS))


def release_unused() -> None:
    """Give back what CuPy keeps for later: free blocks of its pool, and plans of FFTs with their work areas."""
    cupy = importlib.import_module("cupy")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # CuPy calls the function experimental
        cupy.fft.config.clear_plan_cache()
    cupy.get_default_memory_pool().free_all_blocks()


def free_bytes() -> int:
    """Bytes that arrays on the current device may still take, the pool's free blocks included."""
    cupy = importlib.import_module("cupy")
    free, _ = cupy.cuda.Device().mem_info
    return int(free) + int(cupy.get_default_memory_pool().free_bytes())


def bytes_within_limit() -> int:
    """Bytes that arrays may still take within CuPy's limit (``CUPY_GPU_MEMORY_LIMIT``), or `free_bytes`."""
    pool = importlib.import_module("cupy").get_default_memory_pool()
    limit = int(pool.get_limit())
    return min(free_bytes(), max(0, limit - int(pool.used_bytes()))) if limit else free_bytes()


def attempt(job: Callable[..., T], *arguments: Any) -> list[T]:
    """Run a job that device memory may be too small for."""
    try:
        return [job(*arguments)]
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        return []


def with_second_try(job: Callable[..., T], *arguments: Any, what: str) -> T:
    """Run a job; where device memory runs out, once more after `release_unused`."""
    if results := attempt(job, *arguments):
        return results[0]
    release_unused()
    try:
        return job(*arguments)
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        free, total = (number / 1e9 for number in importlib.import_module("cupy").cuda.Device().mem_info)
        raise DeviceMemoryError(
            f"{what}: {free:.2f} of {total:.1f} GB of device memory are free ({error}); "
            "the CPU's memory may do (--device cpu, or NumPy arrays)"
        ) from error


def in_parts(
    job: Callable[[int, int], T],
    count: int,
    *,
    at_once: int | None = None,
    what: str = "",
    alone: Callable[[int], T] | None = None,
) -> Iterator[tuple[int, T]]:
    """Yield ``stop, job(start, stop)`` for consecutive ranges of `count` items, of up to `at_once` of them.

    From where device memory runs out, ranges are half as long. An item that does not fit by itself is left to
    ``alone(index)``, where that is given, else tried a second time, which may raise DeviceMemoryError about `what`.
    """
    size, start = min(count, at_once or count), 0
    while start < count:
        stop = min(start + size, count)
        results = attempt(job, start, stop)
        if not results:
            release_unused()
            if stop - start > 1:
                size = (stop - start) // 2
                continue
            results = [with_second_try(job, start, stop, what=what) if alone is None else alone(start)]
        start = stop
        yield stop, results.pop()  # not kept while the next one is computed


def with_smaller(job: Callable[[int], T], sizes: Iterable[int], what: str) -> T:
    """Run ``job(size)`` with the first size that fits into device memory; DeviceMemoryError(what) if none does."""
    for size in sizes:
        if results := attempt(job, size):
            return results[0]
        release_unused()
    raise DeviceMemoryError(what)


def or_on_host(job: Callable[[], T], host_job: Callable[[], T]) -> T:
    """Run a job on the device; where its memory runs out, the one that does the same on the CPU."""
    if results := attempt(job):
        return results[0]
    release_unused()
    return host_job()
