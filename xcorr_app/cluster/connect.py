"""From the words of ``--cluster`` to workers: started here, or those of a cluster that runs already."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xcorr_app.errors import ArgumentError, ClusterError, install_line
from xcorr_app.system import worker_count

if TYPE_CHECKING:
    from xcorr_app.cluster.workers import Workers

_INSTALL = f"--cluster needs dask.distributed: {install_line('cluster')}"
_SECONDS_TO_CONNECT = 20


def workers_of(cluster: str | None) -> AbstractContextManager[Workers | None]:
    """Reach the workers of a cluster for as long as they are needed; None without one."""
    return nullcontext() if cluster is None else connected(cluster)


@contextmanager
def connected(text: str) -> Iterator[Workers]:
    """Start or reach a cluster, and leave it in the end; workers started here end with it.

    Parameters
    ----------
    text : str
        ``local`` or ``local:N`` (processes of this machine, by default one for every two cores), ``gpus`` (one a GPU of
        this machine), the address of a scheduler, or its file ``.json``.

    Raises
    ------
    ArgumentError
        The text is none of these.
    ClusterError
        Nobody answers.
    """
    from distributed import Client

    from xcorr_app.cluster.workers import Workers

    start = _how(text)
    with ExitStack() as stack:
        # What happens to workers is told by the run, once and in words.
        stack.enter_context(_quiet())
        try:
            known = start(stack)
            client = stack.enter_context(Client(**known, timeout=_SECONDS_TO_CONNECT, set_as_default=False))
            client.wait_for_workers(1, timeout=_SECONDS_TO_CONNECT)
        except RuntimeError as error:
            raise ClusterError(
                f"cluster {text}: a worker ended while it started ({error}); `xcorr env` says what can run here"
            ) from error
        except (OSError, TimeoutError, ValueError) as error:
            raise ClusterError(
                f"cluster {text}: no workers are reached within {_SECONDS_TO_CONNECT} s ({error}); is it running?"
            ) from error
        yield Workers(client)


@contextmanager
def started(text: str) -> Iterator[str]:
    """Start the workers of ``local:N`` or ``gpus`` for several runs, which name the address that this yields."""
    with ExitStack() as stack:
        stack.enter_context(_quiet())
        yield str(_how(text)(stack)["address"].scheduler_address)


def known_cluster(text: str) -> str:
    """Return a text that names a cluster; ArgumentError where it names none, ClusterError where dask is missing."""
    _how(text)
    try:
        import distributed  # noqa: F401
    except ImportError as error:
        raise ClusterError(_INSTALL) from error
    return text


def _how(text: str) -> Callable[[ExitStack], dict[str, Any]]:
    """Understand the text; what is returned starts what must be started, and names it to a client."""
    kind, _, number = text.partition(":")
    if text == "local" or (kind == "local" and number.isdecimal() and int(number) > 0):
        count = int(number or max(1, worker_count() // 2))
        return lambda stack: {"address": stack.enter_context(_local([{} for _ in range(count)]))}
    if text == "gpus":
        return lambda stack: {"address": stack.enter_context(_on_gpus(_gpus()))}
    if text.endswith(".json"):
        if not Path(text).is_file():
            raise ArgumentError(f"cluster {text!r}: there is no such scheduler file")
        return lambda _: {"scheduler_file": text}
    if kind != "local" and re.fullmatch(r"([a-z]+://)?[^\s/]+:\d+/?", text):
        return lambda _: {"address": text}
    raise ArgumentError(f"cluster {text!r}: give local, local:N, gpus, the address of a scheduler, or its file .json")


@contextmanager
def _local(environments: list[dict[str, str]]) -> Iterator[Any]:
    """Processes of this machine, each with one task at a time and its share of the cores."""
    from distributed import Nanny, Scheduler, SpecCluster

    from xcorr_app.cluster.task import KeepToCores, shares

    workers = {}
    for number, (environment, cores) in enumerate(zip(environments, shares(len(environments)), strict=True)):
        # Memory is counted by the run itself: a nanny would kill a worker that maps a large file.
        options: dict[str, Any] = {"nthreads": 1, "memory_limit": 0, "env": environment, "host": "127.0.0.1"}
        options |= {"plugins": [KeepToCores(cores)], "dashboard": False, "silence_logs": logging.CRITICAL}
        workers[number] = {"cls": Nanny, "options": options}
    scheduler = {
        "cls": Scheduler,
        "options": {"dashboard": False, "dashboard_address": ":0", "host": "127.0.0.1", "port": 0},
    }
    with SpecCluster(workers, scheduler, silence_logs=logging.CRITICAL) as cluster:
        yield cluster


def _on_gpus(gpus: list[str]) -> AbstractContextManager[Any]:
    """One process a GPU; by dask-cuda, where that is installed, on the cores that are next to it."""
    try:
        from dask_cuda import LocalCUDACluster
    except ImportError:
        return _local([{"CUDA_VISIBLE_DEVICES": gpu} for gpu in gpus])
    # Memory, that of the device as well, is counted by the run itself.
    limits: dict[str, Any] = {"memory_limit": None, "device_memory_limit": None}
    quiet: dict[str, Any] = {"dashboard_address": None, "silence_logs": logging.CRITICAL}
    cluster: AbstractContextManager[Any] = LocalCUDACluster(
        CUDA_VISIBLE_DEVICES=gpus, threads_per_worker=1, host="127.0.0.1", **limits, **quiet
    )
    return cluster


def _gpus() -> list[str]:
    """Names of this machine's GPUs, as ``CUDA_VISIBLE_DEVICES`` takes them."""
    from xcorr_app.gpu.runtime.device import require_cuda

    if given := os.environ.get("CUDA_VISIBLE_DEVICES"):
        return given.split(",")
    require_cuda()
    import cupy

    return [str(number) for number in range(cupy.cuda.runtime.getDeviceCount())]


@contextmanager
def _quiet() -> Iterator[None]:
    loggers = [logging.getLogger(name) for name in ("distributed", "tornado", "asyncio")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)
