"""Device memory that a call takes, its result included and its inputs not."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from benchmarks.harness.contender import Clocking

__all__ = ["memory_of"]


def memory_of(run: Callable[[], Any], clocking: Clocking) -> int:
    """Measure what one call takes from the device.

    Parameters
    ----------
    run : callable
        The call; it has run before, so nothing is compiled or searched for.
    clocking : str
        Which library it runs in.

    Returns
    -------
    int
        In bytes: of CuPy what a pool of the call's own takes from the device, of PyTorch what its allocator counts at
        most.
    """
    if clocking.startswith("torch"):
        torch = importlib.import_module("torch")
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        result = run()
        torch.cuda.synchronize()
        taken = torch.cuda.max_memory_allocated() - before
    else:
        cupy = importlib.import_module("cupy")
        pool = cupy.cuda.MemoryPool()  # the process's own may hold room that it cannot give back
        with cupy.cuda.using_allocator(pool.malloc):
            result = run()
            cupy.cuda.Device().synchronize()
        taken = pool.total_bytes()
    del result
    return int(taken)
