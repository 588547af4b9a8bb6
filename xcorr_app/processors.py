"""How many processors this process may use: what every layer that works in threads asks."""

from __future__ import annotations

import os

__all__ = ["worker_count"]


def worker_count() -> int:
    """Number of processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
