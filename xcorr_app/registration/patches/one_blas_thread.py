"""Where a library shares sums out among threads, as many as it finds: for one call, only one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

_LOCK = threading.Lock()
"""The number is the process's: who restores it must be who changed it."""


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let BLAS and LAPACK add in one order, whatever the number of cores: workers of a cluster have fewer."""
    from threadpoolctl import threadpool_limits

    with _LOCK, threadpool_limits(1, "blas"):
        yield
