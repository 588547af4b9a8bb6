"""Work that a device does beside what is started after it: in a stream of its own, and waited for where it is needed.

While the host computes with what one stream brought, the device would have nothing to do.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from xcorr_app.gpu.runtime.placement import current_device

__all__ = ["SideStream", "so_far"]

T = TypeVar("T")


class SideStream(Generic[T]):
    """A job whose launches follow what the current stream holds so far, and run beside what comes later.

    What the job reads must live until `result` has been asked for and waited for. It must not share an FFT plan with
    what runs beside it: a plan has one work area.

    Parameters
    ----------
    job : callable
        Starts work on the current device; what it waits for keeps the caller waiting too.
    after : event, optional
        Of `so_far`: the job follows what the current stream held then, and runs beside what came later.
    lane : int, optional
        Jobs of one lane follow each other.
    """

    def __init__(self, job: Callable[[], T], after: Any = None, lane: int = 0) -> None:
        self._current = importlib.import_module("cupy").cuda.get_current_stream
        stream = _stream(current_device(), lane)
        stream.wait_event(so_far() if after is None else after)
        with stream:
            self._result = job()
        self._done = stream.record()

    def result(self) -> T:
        """Return what the job returned; what the current stream holds from now on follows it."""
        self._current().wait_event(self._done)
        return self._result


def so_far() -> Any:
    """Return the event that all the current stream holds is done."""
    return importlib.import_module("cupy").cuda.get_current_stream().record()


@functools.cache
def _stream(_device: int, _lane: int) -> Any:
    return importlib.import_module("cupy").cuda.Stream(non_blocking=True)
