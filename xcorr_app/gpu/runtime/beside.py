"""Work that a device does beside what is started after it: in a stream of its own, and waited for where it is needed.

While the host computes with what one stream brought, the device would have nothing to do.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from xcorr_app.gpu.runtime.placement import current_device

__all__ = ["Beside"]

T = TypeVar("T")


class Beside(Generic[T]):
    """A job whose launches follow what the current stream holds so far, and run beside what comes later.

    What the job reads must live until `result` has been asked for and waited for. It must not share an FFT plan with
    what runs beside it: a plan has one work area.

    Parameters
    ----------
    job : callable
        Starts work on the current device, and waits for none of it.
    """

    def __init__(self, job: Callable[[], T]) -> None:
        self._current = importlib.import_module("cupy").cuda.get_current_stream
        stream = _stream(current_device())
        stream.wait_event(self._current().record())
        with stream:
            self._result = job()
        self._done = stream.record()

    def result(self) -> T:
        """Return what the job returned; what the current stream holds from now on follows it."""
        self._current().wait_event(self._done)
        return self._result


@functools.cache
def _stream(_device: int) -> Any:
    return importlib.import_module("cupy").cuda.Stream(non_blocking=True)
