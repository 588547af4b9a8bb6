"""Fixtures for tests on a device."""

import gc

import pytest

from xcorr_app.gpu.runtime.memory import release_unused


@pytest.fixture
def little_memory(cupy):
    """Limits what arrays take beyond what they take now, or beyond all blocks there are, of which parts may be free.

    Gives back first whatever can be given back.
    """
    pool = cupy.get_default_memory_pool()

    def limit(extra, *, new_blocks=False):
        gc.collect()  # what errors of earlier tests hold would be given back later, unasked
        release_unused()
        pool.set_limit(size=extra + (pool.total_bytes() if new_blocks else pool.used_bytes()))

    yield limit
    pool.set_limit(size=0)
