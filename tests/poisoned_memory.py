"""A pytest plugin that makes races of device memory certain: what is freed is overwritten at once, uploads come late.

``pytest -m gpu -p tests.poisoned_memory`` runs every test so. A block that an array gives back is filled with NaN by
the stream that it was allocated in, at the place in its order where CuPy's pool would hand the block to the next array:
whatever another stream still reads there, or has already written there, is lost. Uploads begin after a delay, and so
does what the computing stream holds when memory for an upload is allocated: who does not wait for the other, reads or
leaves rubbish.
"""

import functools
import importlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

_CYCLES = 1_000_000
"""Of a delay: some half a millisecond, in which a call starts a hundred kernels."""
_BYTE = 0xFF
"""A float of such bytes is NaN; an index is -1, which no array has."""


def pytest_configure() -> None:
    """Begin, where there is a device."""
    with suppress(ImportError):
        poisoned().__enter__()


@contextmanager
def poisoned() -> Iterator[None]:
    """Let CuPy's allocator overwrite what is freed, and delay uploads."""
    cupy = importlib.import_module("cupy")
    uploader = importlib.import_module("xcorr_app.gpu.runtime.upload").Uploader
    allocator, methods = cupy.cuda.get_allocator(), {name: getattr(uploader, name) for name in ("room", "send")}
    cupy.cuda.set_allocator(functools.partial(_allocated, cupy))
    for name, method in methods.items():
        setattr(uploader, name, _delayed(cupy, method))
    try:
        yield
    finally:
        cupy.cuda.set_allocator(allocator)
        for name, method in methods.items():
            setattr(uploader, name, method)


def delay(cupy: Any, stream: Any) -> None:
    """Keep a stream busy for half a millisecond."""
    with stream:
        _wait(cupy)((1,), (1,), (cupy.int64(_CYCLES),))


def _delayed(cupy: Any, method: Any) -> Any:
    """Call a method of `Uploader` after both streams were given something to do."""

    @functools.wraps(method)
    def call(self: Any, *arguments: Any) -> Any:
        delay(cupy, cupy.cuda.get_current_stream())
        delay(cupy, self.stream)
        return method(self, *arguments)

    return call


@functools.cache
def _wait(cupy: Any) -> Any:
    code = 'extern "C" __global__ void wait(long long n) { long long t = clock64(); while (clock64() - t < n) {} }'
    return cupy.RawKernel(code, "wait")


class _Freed:
    """Holds a block of CuPy's pool, and overwrites it before it goes back there."""

    def __init__(self, cupy: Any, block: Any, stream: Any) -> None:
        self._runtime, self._block, self._stream = cupy.cuda.runtime, block, stream

    def __del__(self) -> None:
        block, stream = self._block, self._stream
        # A graph that is captured now would overwrite its own memory at each replay; a stream may be gone.
        with suppress(Exception):
            if not self._runtime.streamIsCapturing(stream.ptr):
                self._runtime.memsetAsync(block.ptr, _BYTE, block.mem.size, stream.ptr)


def _allocated(cupy: Any, size: int) -> Any:
    stream = cupy.cuda.get_current_stream()
    block = cupy.get_default_memory_pool().malloc(size)
    owner = _Freed(cupy, block, stream)
    memory = cupy.cuda.UnownedMemory(block.ptr, size, owner, block.device_id)
    return cupy.cuda.MemoryPointer(memory, 0)
