"""Tasks handed out to a cluster, few more at any time than it has workers.

Neither the client nor the scheduler then holds more for ten thousand stacks than for a hundred.
"""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from distributed import CancelledError, as_completed

from xcorr_app.errors import ClusterError

if TYPE_CHECKING:
    from distributed import Client

_OUT_PER_WORKER = 2
"""One that is computed, and one that waits at the worker, so that it never waits for the client."""
_SECONDS_BETWEEN_COUNTS = 2.0
LOST = "the scheduler {address} is lost; what was finished is kept: start the cluster again, and go on with --resume"


def handed_out(
    client: Client, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]
) -> Iterator[tuple[int, Any]]:
    """Call a function with each of some arguments on workers; in the order in which they end.

    Yields
    ------
    number : int
        Place of the arguments.
    result : Any
        What the function returned, or the exception that it raised, or that befell it.

    Raises
    ------
    ClusterError
        The scheduler is lost.
    """
    address = client.scheduler_info()["address"]
    run, waiting = uuid.uuid4().hex[:12], iter(range(len(arguments)))
    numbers: dict[str, int] = {}
    counted, room = -math.inf, 0
    tasks = as_completed(loop=client.loop, with_results=True, raise_errors=False)
    try:
        while True:
            if time.monotonic() - counted > _SECONDS_BETWEEN_COUNTS:
                room = _OUT_PER_WORKER * max(1, sum(client.nthreads().values()))
                counted = time.monotonic()
            while len(numbers) < room and (number := next(waiting, None)) is not None:
                key = f"xcorr-{run}-{number}"
                numbers[key] = number
                tasks.add(client.submit(function, *arguments[number], key=key, pure=False))
            if not numbers:
                return
            future, result = next(tasks)
            if isinstance(result, CancelledError):
                raise ClusterError(LOST.format(address=address))
            number = numbers.pop(future.key)
            yield number, result[1] if future.status == "error" else result
            # The cluster forgets a task once nobody here knows it.
            del future, result
    except (OSError, RuntimeError) as error:
        if isinstance(error, ClusterError) or client.status == "running":
            raise
        raise ClusterError(LOST.format(address=address)) from error
    finally:
        if client.status == "running":
            client.cancel(list(tasks.futures))
