"""A pytest plugin: every device array gets an allocation of its own, so that a checker sees where each one ends."""

from __future__ import annotations

import importlib


def pytest_configure() -> None:
    """Take device memory from CUDA itself instead of CuPy's pool."""
    importlib.import_module("cupy").cuda.set_allocator(None)
