"""How long work takes on the device alone. Medians, never means.

Work on the device is replayed as a graph that holds several calls, so that no host time is in it. Long work, and work
that a graph cannot hold, is timed between events with several calls in a row. The calls repeat on the same inputs, or
go in turn through copies of them: inputs smaller than the device's cache stay there unless there are copies enough, for
the product and for its peers alike.
"""

from __future__ import annotations

import importlib
import statistics
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

Run = Callable[[], Any]

_LONG = 0.05  # seconds of one call beyond which a graph has nothing to gain
_VERY_LONG = 0.3  # seconds of one call that is timed once
_MAX_CALLS = 200  # in one graph


@dataclass(frozen=True)
class Timing:
    """A time and how it was taken.

    Attributes
    ----------
    seconds : float
        Median time of one call.
    how : str
        ``"replay"`` of a graph, or ``"events"`` around calls in a row.
    best : float
        Of the fastest reading, in seconds a call.
    """

    seconds: float
    how: str
    best: float = float("nan")


@dataclass(frozen=True)
class Clock:
    """How thoroughly times are taken.

    Attributes
    ----------
    repeats : int
        Timings on the device of which the median counts; 3 where one takes 50 ms, one where it takes 0.3 s.
    min_seconds : float
        Work between two readings of the clock.
    attempts : int
        Most attempts of one contender.
    """

    repeats: int = 9
    min_seconds: float = 0.02
    attempts: int = 100

    def on_device(self, run: Run, cycle: int = 1) -> Timing:
        """Time work that CuPy starts in its current stream.

        Parameters
        ----------
        run : callable
            Starts the work; need not wait for it.
        cycle : int, optional
            Calls after which `run` begins again with the same inputs: whole cycles are timed.

        Returns
        -------
        Timing
            By replay or by events.
        """
        cupy = importlib.import_module("cupy")
        cupy.cuda.Device().synchronize()
        stream = cupy.cuda.Stream(non_blocking=True)
        start, stop = cupy.cuda.Event(), cupy.cuda.Event()

        def timed(work: Run) -> float:
            start.record(stream)
            work()
            stop.record(stream)
            stop.synchronize()
            return float(cupy.cuda.get_elapsed_time(start, stop)) / 1e3

        def recorded(calls: int) -> Run:
            stream.begin_capture()
            try:
                _repeat(run, calls)
            finally:
                # Work that may not be recorded invalidates the recording, and ending it says so again.
                with suppress(cupy.cuda.runtime.CUDARuntimeError):
                    graph = stream.end_capture()
            return lambda: graph.launch(stream)

        with stream:
            return self._steady(run, timed, recorded, cycle)

    def on_device_by_torch(self, run: Run, cycle: int = 1) -> Timing:
        """Time work that PyTorch starts in its current stream; as `on_device`."""
        torch = importlib.import_module("torch")
        torch.cuda.synchronize()
        side = torch.cuda.Stream()
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))

        def timed(work: Run) -> float:
            start.record()
            work()
            stop.record()
            stop.synchronize()
            return float(start.elapsed_time(stop)) / 1e3

        def recorded(calls: int) -> Run:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=side):
                _repeat(run, calls)
            replay: Run = graph.replay
            return replay

        with torch.cuda.stream(side):
            return self._steady(run, timed, recorded, cycle)

    def _steady(self, run: Run, timed: Callable[[Run], float], recorded: Callable[[int], Run], cycle: int) -> Timing:
        """Compile and warm up, choose how many calls lie between two readings, and take the median."""
        timed(run)
        once = timed(run)
        calls = max(1, min(_MAX_CALLS, int(self.min_seconds / max(once, 1e-7))))
        calls = -(-calls // cycle) * cycle
        work: Run = lambda: _repeat(run, calls)  # noqa: E731 - replaced by the graph where there is one
        how = "events"
        if once < _LONG:
            with suppress(Exception):  # each library refuses in its own way what a graph cannot hold
                graph = recorded(calls)
                timed(graph)
                work, how = graph, "replay"
        repeats = self.repeats if once < _LONG else 3 if once < _VERY_LONG else 1
        times = [timed(work) / calls for _ in range(repeats)]
        return Timing(statistics.median(times), how, min(times))


def _repeat(run: Run, calls: int) -> None:
    for _ in range(calls):
        run()
