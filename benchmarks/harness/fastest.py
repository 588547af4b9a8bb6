"""The fastest attempt of a contender whose answer is right: checked first, then timed."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol

from benchmarks.harness.clock import Clock, Timing
from benchmarks.harness.contender import Attempt, Clocking, Contender


class Expectation(Protocol):
    """What some parts of a case's result should be, from float64 on the host."""

    @property
    def tolerance(self) -> float:
        """Largest error of a right answer."""

    @property
    def parts(self) -> list[Any]:
        """What is looked at: handed to `Attempt.read`."""

    def error(self, part: Any, answer: Any) -> float:
        """Say how wrong the answer for a part is."""


@dataclass(frozen=True)
class Outcome:
    """What became of a contender.

    Attributes
    ----------
    what : str
        Its name.
    own : bool
        Whether it belongs to the product.
    choice : str
        Under which name the product's own choice knows it.
    seconds : float
        Median time of one call of the fastest attempt; NaN where `failure` says why there is none.
    how : str
        ``"replay"`` or ``"events"``.
    error : float
        Largest error of the parts that were looked at.
    note, failure : str
        What set the fastest attempt apart; why there is no time.
    registers, local_bytes : int
        Of a thread of a kernel.
    memory_bytes : int
        Device memory that a call takes, its result included; 0 where it was not asked for.
    best_seconds : float
        The fastest of the readings whose median is `seconds`.
    """

    what: str
    own: bool = False
    choice: str = ""
    seconds: float = float("nan")
    how: str = ""
    error: float = float("nan")
    note: str = ""
    failure: str = ""
    registers: int = 0
    local_bytes: int = 0
    memory_bytes: int = 0
    best_seconds: float = float("nan")


def fastest_of(
    contender: Contender, case: Any, data: Any, expected: Expectation, clock: Clock, *, with_memory: bool = False
) -> Outcome:
    """Take the fastest attempt; a contender that fails or answers wrongly gives an outcome that says so.

    Parameters
    ----------
    contender : Contender
        Who makes the attempts.
    case, data : object
        What it does them on.
    expected : Expectation
        What the answer should be.
    clock : Clock
        How thoroughly times are taken, and how many attempts.
    with_memory : bool, optional
        Also measure the device memory of the fastest attempt.

    Returns
    -------
    Outcome
        Of the contender.
    """
    best: tuple[Timing, Attempt, float] | None = None
    failure, memory = "", 0
    try:
        for attempt in islice(contender.attempts(case, data), clock.attempts):
            result = attempt.run()
            error = max(expected.error(part, attempt.read(result, part)) for part in expected.parts)
            del result
            if not error <= expected.tolerance:
                failure = f"wrong answer, error {error:.1e} {attempt.note}".rstrip()
                continue
            timed = clock.on_device if attempt.clocking == "cupy" else clock.on_device_by_torch
            measured = timed(attempt.run, attempt.cycle)
            if best is None or measured.seconds < best[0].seconds:
                best = measured, attempt, error
        if best is not None:
            memory = memory_of(best[1].run, best[1].clocking) if with_memory else 0
    except Exception as problem:  # noqa: BLE001 - a peer may fail in any way, and the others still count
        failure = " ".join(f"{type(problem).__name__}: {problem}".split())[:200]
    finally:
        free_device_memory()
    who: dict[str, Any] = {"what": contender.name, "own": contender.own, "choice": contender.choice}
    if best is None:
        return Outcome(**who, failure=failure or "made no attempt")
    measured, attempt, error = best
    return Outcome(
        **who,
        seconds=measured.seconds,
        how=measured.how,
        error=error,
        note=attempt.note,
        registers=attempt.registers,
        local_bytes=attempt.local_bytes,
        memory_bytes=memory,
        best_seconds=measured.best,
    )


def free_device_memory() -> None:
    """Give back what the libraries' pools keep."""
    importlib.import_module("cupy").get_default_memory_pool().free_all_blocks()
    torch = sys.modules.get("torch")  # to import it takes seconds, and memory of the device
    if torch is not None:
        torch.cuda.empty_cache()


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
    if clocking == "torch":
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
