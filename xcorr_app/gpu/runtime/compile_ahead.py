"""Kernels that a command will ask for, compiled on all processors as soon as it starts.

A command asks for kernels one by one, each when it comes to it: on a machine whose cache is empty it waits tens of
seconds for the compiler, most of them for kernels that CuPy writes for calculations on arrays (0.1 s each, 1.9 s for a
sum along an axis). What commands with defaults ask for stands in a record, in the order in which they do
(``python -m benchmarks.first_run --record``). Threads compile it into the cache on disk, NVRTC running outside
Python's lock; a kernel that the command asks for sooner, it compiles itself.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import importlib
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread, main_thread
from typing import Any

from xcorr_app.gpu.runtime.compile import cubin_of
from xcorr_app.gpu.runtime.kernel_cache import load_kernel, save_kernel
from xcorr_app.system import worker_count

__all__ = ["RECORD", "compile_ahead"]

RECORD = Path(__file__).with_name("first_kernels.json.gz")
"""``{"cupy": version, "kernels": [[name, defines] or [source, options], ...]}``, the latter two of CuPy's own."""
_MAX_THREADS = 16
"""Each takes hundreds of megabytes for a kernel that includes CUB."""


def compile_ahead() -> None:
    """Compile for the current device what the record names, once for each cache folder; returns when all is done."""
    cupy = importlib.import_module("cupy")
    if not RECORD.is_file():
        return
    content, device = RECORD.read_bytes(), cupy.cuda.Device()
    versions = cupy.__version__, cupy.cuda.nvrtc.getVersion(), device.compute_capability
    done = f"all of {hashlib.sha256(content).hexdigest()} {versions}"
    if load_kernel(done) is not None:
        return
    jobs: SimpleQueue[Callable[[], Any]] = SimpleQueue()
    for job in _jobs(cupy, json.loads(gzip.decompress(content))):
        jobs.put(job)
    threads = [
        Thread(target=_run, args=(jobs, device), name="xcorr-compile") for _ in range(min(worker_count(), _MAX_THREADS))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if jobs.empty():
        save_kernel(done, b"")


def _run(jobs: SimpleQueue[Callable[[], Any]], device: Any) -> None:
    device.use()
    while main_thread().is_alive():  # nobody waits for the rest when the command has ended
        try:
            job = jobs.get_nowait()
        except Empty:
            return
        with contextlib.suppress(Exception):  # said by the command, if it does ask for this kernel
            job()


def _jobs(cupy: Any, record: dict[str, Any]) -> list[Callable[[], Any]]:
    """What compiles each kernel of the record; those of another CuPy are left out, which would write others."""
    jobs: list[Callable[[], Any]] = []
    for text, with_what in record["kernels"]:
        if isinstance(with_what, dict):
            jobs.append(partial(cubin_of, text, with_what))
        elif record["cupy"] == cupy.__version__:
            jobs.append(partial(cupy._core.core.compile_with_cache, text, tuple(with_what)))
    return jobs
