"""Kernels that a command will ask for, compiled by processes side by side as soon as it starts.

A command asks for kernels one by one, each when it comes to it: on a machine whose cache is empty it waits tens of
seconds for the compiler, most of them for kernels that CuPy writes for calculations on arrays (0.1 s each, 1.2 s for a
sum along an axis). What commands with defaults ask for stands in a record, in the order in which they do
(``python -m benchmarks.first_run --record``). Processes compile it into the cache on disk, and load none of it, so that
they take no memory of the device: in threads of one process NVRTC works one after the other for half of the time. A
kernel that the command asks for sooner, it compiles itself.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import importlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from threading import main_thread
from typing import Any

from xcorr_app.gpu.runtime.compile import cubin_of
from xcorr_app.gpu.runtime.kernel_cache import load_kernel, save_kernel
from xcorr_app.system import worker_count

RECORD = Path(__file__).with_name("first_kernels.json.gz")
"""``{"cupy": version, "kernels": [[name, defines] or [source, options], ...]}``, the latter two of CuPy's own."""
_MAX_PROCESSES = 16
"""Each imports CuPy, which takes a second."""
_POLL_SECONDS = 0.1


def compile_ahead(device: int) -> None:
    """Compile for this device what the record names, once for each cache folder; returns when all is done."""
    cupy, record = importlib.import_module("cupy"), hashlib.sha256(RECORD.read_bytes()).hexdigest()
    capability = cupy.cuda.Device(device).compute_capability
    done = f"all of {record} {(cupy.__version__, cupy.cuda.nvrtc.getVersion(), capability)}"
    if load_kernel(done) is not None:
        return
    count = min(worker_count(), _MAX_PROCESSES)
    code = f"from {__name__} import compile_part; compile_part({str(RECORD)!r}, {capability!r}, %d, {count})"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    quiet = subprocess.DEVNULL
    processes = [
        subprocess.Popen(  # noqa: S603 - our own code
            [sys.executable, "-c", code % number], env=environment, stdin=quiet, stdout=quiet, stderr=quiet
        )
        for number in range(count)
    ]
    while any(process.poll() is None for process in processes):
        if not main_thread().is_alive():
            return
        time.sleep(_POLL_SECONDS)
    if not any(process.returncode for process in processes):
        save_kernel(done, b"")


def compile_part(path: str, capability: str, first: int, step: int) -> None:
    """Compile every so many kernels of a record from the first on, until the process that began this one has ended.

    What another version of CuPy would write otherwise is left out. What fails to compile is said by the command, if it
    does ask for this kernel.
    """
    cupy, parent = importlib.import_module("cupy"), os.getppid()
    record = json.loads(gzip.decompress(Path(path).read_bytes()))
    compiler = importlib.import_module("cupy.cuda.compiler")
    if record["cupy"] == cupy.__version__:
        compiler._set_kernel_cache_backend(_SavedOnly(compiler._kernel_cache_backend))
    for text, with_what in record["kernels"][first::step]:
        if os.getppid() != parent:
            return
        with contextlib.suppress(Exception):
            if isinstance(with_what, dict):
                cubin_of(text, with_what, capability)
            elif record["cupy"] == cupy.__version__:
                cupy._core.core.compile_with_cache(text, tuple(with_what), arch=capability)


class _SavedOnly:
    """CuPy's cache on disk, but that nothing of it is loaded, which would take a context on the device."""

    def __init__(self, cache: Any) -> None:
        self._cache = cache

    def load(self, name: str) -> None:
        if self._cache.load(name) is not None:
            raise FileExistsError(name)

    def save(self, name: str, *content: Any) -> None:
        self._cache.save(name, *content)
        raise FileExistsError(name)
