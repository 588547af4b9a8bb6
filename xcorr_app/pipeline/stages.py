"""What a run ran on, and which stage set its pace: seconds each was busy, seconds the run waited for it, and bytes.

A stage is busy while any thread works in it. The chain of a run is a thread that measures, moves and assesses one stack
after the other; now and then it waits for what other threads do meanwhile (reading ahead, writing, syncing, drawing).
What it spent most of its time in, or waiting for, is what a faster machine would have to be faster at.
"""

import functools
import importlib.metadata
import os
import platform
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from xcorr_app.system import worker_count

_PACKAGES = ("numpy", "scipy", "tifffile", "imagecodecs", "opencv-python-headless")
_DEVICE_PACKAGES = ("cupy-cuda13x", "cupy-cuda12x", "cupy")


@functools.cache
def versions() -> dict[str, str]:
    """Versions of Python, of this package and of the packages that results may depend on."""
    found = {"xcorr-app": own_version(), "python": platform.python_version()}
    for name in (*_PACKAGES, *_DEVICE_PACKAGES):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def own_version() -> str:
    """Version of this package."""
    import xcorr_app

    return xcorr_app.__version__


@functools.cache
def processor() -> str:
    """Name of the processor and the number of cores this process may use."""
    lines: list[str] = []
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    # Python's own answer starts another program.
    name = names[0] if names else platform.processor() or platform.machine()
    return f"{name}, {worker_count()} of {os.cpu_count()} cores"


STEPS = ("start", "measure", "move", "assess", "filter", "unmix")
"""Stages of the chain itself; while it waits for another stage, they do not count."""


@dataclass(frozen=True)
class StageTime:
    """What one stage took, in seconds."""

    name: str
    busy: float
    waited: float
    """That the run stood still for it."""
    size: int
    """Bytes that went through it."""

    @property
    def held_up(self) -> float:
        """Seconds of the run's own time that it took."""
        return self.waited if self.name not in STEPS else self.busy

    @property
    def rate(self) -> float | None:
        """GB/s while it was busy."""
        return self.size / self.busy / 1e9 if self.size and self.busy else None

    def as_record(self) -> dict[str, Any]:
        """Plain values for ``run.json``."""
        rate = self.rate
        return {
            "busy_seconds": round(self.busy, 3),
            "waited_seconds": round(self.waited, 3),
            "gigabytes": round(self.size / 1e9, 6),
            "gigabytes_per_second": None if rate is None else round(rate, 3),
        }


class Stages:
    """Gathers times of stages from all threads of a run."""

    def __init__(self) -> None:
        self._lock, self._here = threading.Lock(), threading.local()
        self._spans: dict[str, list[tuple[float, float]]] = {}
        self._busy: dict[str, float] = {}
        self._waited: dict[str, float] = {}
        self._sizes: dict[str, int] = {}

    def meter(self, stage: str, begin: float, end: float, size: int) -> None:
        """Take in that a thread was in a stage; what several were in it together counts once."""
        with self._lock:
            spans = self._spans.setdefault(stage, [])
            # Times come in the order in which they ended, so only the last ones can overlap.
            while spans and spans[-1][1] >= begin:
                first, last = spans.pop()
                begin, end = min(begin, first), max(end, last)
            spans.append((begin, end))
            self._sizes[stage] = self._sizes.get(stage, 0) + size

    @contextmanager
    def step(self, stage: str) -> Iterator[None]:
        """Time a step of the chain, in the thread that takes it."""
        begin, waited = time.perf_counter(), self._waited_here()
        try:
            yield
        finally:
            spent = time.perf_counter() - begin - (self._waited_here() - waited)
            with self._lock:
                self._busy[stage] = self._busy.get(stage, 0.0) + max(0.0, spent)

    @contextmanager
    def waiting(self, stage: str) -> Iterator[None]:
        """Time how long this thread, one of the chain, waits for a stage."""
        begin = time.perf_counter()
        try:
            yield
        finally:
            self.waited(stage, time.perf_counter() - begin)

    def waited(self, stage: str, seconds: float) -> None:
        """Take in how long this thread, one of the chain, waited for a stage."""
        self._here.waited = self._waited_here() + seconds
        with self._lock:
            self._waited[stage] = self._waited.get(stage, 0.0) + seconds

    def times(self) -> list[StageTime]:
        """Every stage so far, in the order in which they first ended."""
        with self._lock:
            busy = {name: sum(end - begin for begin, end in spans) for name, spans in self._spans.items()} | self._busy
            names = dict.fromkeys([*busy, *self._waited])
            return [
                StageTime(name, busy.get(name, 0.0), self._waited.get(name, 0.0), self._sizes.get(name, 0))
                for name in names
            ]

    def pace(self) -> str | None:
        """Name of the stage that the run spent most of its time in, or waiting for."""
        times = [stage for stage in self.times() if stage.held_up > 0]
        return max(times, key=lambda stage: stage.held_up).name if times else None

    def as_record(self) -> dict[str, Any]:
        """Plain values for ``run.json``."""
        return {"pace": self.pace(), "stages": {stage.name: stage.as_record() for stage in self.times()}}

    def _waited_here(self) -> float:
        """Seconds that this thread has waited so far."""
        return float(getattr(self._here, "waited", 0.0))
