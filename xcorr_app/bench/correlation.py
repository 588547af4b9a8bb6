"""The benchmark of the correlation kernels: every case, every contender, checked and timed in one run."""

from __future__ import annotations

import importlib
import json
import math
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from xcorr_app.bench.cases import Case
from xcorr_app.bench.check import TOLERANCE, Expected
from xcorr_app.bench.clock import Clock, Measured
from xcorr_app.bench.contender import Attempt, Contender
from xcorr_app.bench.contenders import contenders_of, has_torch
from xcorr_app.bench.data import Data, random_data
from xcorr_app.bench.device_rates import DeviceRates, measure_rates
from xcorr_app.bench.environment import environment
from xcorr_app.bench.own_kernels import LEADING, variants_of
from xcorr_app.bench.records import CaseResult, Timing, as_dict
from xcorr_app.errors import DeviceError, XcorrError
from xcorr_app.gpu.correlation_costs import cheapest
from xcorr_app.gpu.correlation_plan import device_limits, plan_of
from xcorr_app.gpu.device import DeviceStatus, cuda_status
from xcorr_app.gpu.placement import current_device
from xcorr_app.io.atomic import atomic_write_text

__all__ = ["QUICK", "THOROUGH", "CorrelationBenchmark", "Effort", "auto_choice", "require_device", "write_json"]

_COMPILERS = 8


@dataclass(frozen=True)
class Effort:
    """How much time is spent on a contender.

    Attributes
    ----------
    clock : Clock
        How thoroughly times are taken.
    quick : bool
        Only the variants that may be the fastest.
    attempts : int
        Most attempts of one contender.
    """

    clock: Clock = field(default_factory=Clock)
    quick: bool = False
    attempts: int = 100


THOROUGH = Effort()
QUICK = Effort(Clock(repeats=3, least_seconds=0.004, calls=60), quick=True, attempts=6)


def require_device() -> DeviceStatus:
    """Return the status of the current CUDA device.

    Returns
    -------
    DeviceStatus
        Of a device that can be used.

    Raises
    ------
    DeviceError
        Where there is none; the message says why.
    """
    status = cuda_status()
    if not status.available:
        raise DeviceError(f"the benchmark measures a GPU and there is none: {status.reason}")
    return status


class CorrelationBenchmark:
    """One run on the current device.

    Parameters
    ----------
    effort : Effort
        `THOROUGH` or `QUICK`.

    Attributes
    ----------
    status : DeviceStatus
        What it runs on.
    rates : DeviceRates
        The ceilings, measured at the start.

    Raises
    ------
    DeviceError
        Without a CUDA device.
    """

    def __init__(self, effort: Effort = THOROUGH) -> None:
        self.status = require_device()
        self._effort = effort
        self.rates: DeviceRates = measure_rates(effort.clock, self.status.multiprocessors)

    def compile_ahead(self, cases: Iterable[Case]) -> None:
        """Compile the kernels of several cases at a time, so that no case waits for the compiler."""
        cupy = importlib.import_module("cupy")
        device = current_device()
        wanted = [
            (case, variant)
            for case in cases
            if case.task == "plane"
            for variant in variants_of(case, device_limits(device))
            if variant in LEADING or not self._effort.quick
        ]

        def compile_one(work: tuple[Case, str]) -> None:
            case, variant = work
            # What does not compile or fit is reported where it is timed.
            with cupy.cuda.Device(device), suppress(XcorrError):
                plan_of(case.problem, variant, left_type=case.left_type, right_type=case.right_type)

        with ThreadPoolExecutor(_COMPILERS) as pool:
            list(pool.map(compile_one, wanted))

    def measure(self, case: Case) -> CaseResult:
        """Check and time every contender of a case.

        Parameters
        ----------
        case : Case
            Any.

        Returns
        -------
        CaseResult
            With a timing for each, those that failed included.
        """
        data = random_data(case, importlib.import_module("cupy"))
        expected = Expected(case, data)
        contenders = contenders_of(case, quick=self._effort.quick)
        timings = tuple(self._time(contender, case, data, expected) for contender in contenders)
        return CaseResult(
            case.name,
            case.goal,
            case.problem.pairs,
            case.fma,
            case.products,
            case.moved_bytes,
            case.floor_seconds(self.rates) * 1e6 / case.problem.pairs,
            timings,
            auto_choice(case),
        )

    def record(self, results: Sequence[CaseResult]) -> dict[str, Any]:
        """Gather what a file of results holds.

        Parameters
        ----------
        results : sequence of CaseResult
            Of this run.

        Returns
        -------
        dict
            Environment, device, rates, cases and timings.
        """
        return {
            "environment": environment(),
            "device": asdict(self.status),
            "rates": {
                "tfma_per_second": self.rates.fma / 1e12,
                "copy_terabytes_per_second": self.rates.copy / 1e12,
                "empty_kernel_microseconds": self.rates.empty * 1e6,
            },
            "quick": self._effort.quick,
            "pytorch": has_torch(),
            "cases": [as_dict(result) for result in results],
            "timings": [asdict(timing) for result in results for timing in result.timings],
        }

    def _time(self, contender: Contender, case: Case, data: Data, expected: Expected) -> Timing:
        """Take the fastest attempt; a contender that fails or answers wrongly becomes a line that says so."""
        best: tuple[Measured, Attempt, float] | None = None
        failure = ""
        try:
            for attempt in islice(contender.attempts(case, data), self._effort.attempts):
                result = attempt.run()
                error = max(expected.error(pair, attempt.read(result, pair)) for pair in expected.pairs)
                del result
                if not error <= TOLERANCE:
                    failure = f"wrong answer, error {error:.1e} {attempt.note}".rstrip()
                    continue
                measured = self._measured(attempt)
                if best is None or measured.seconds < best[0].seconds:
                    best = measured, attempt, error
        except Exception as problem:  # noqa: BLE001 - a peer may fail in any way, and the others still count
            failure = " ".join(f"{type(problem).__name__}: {problem}".split())[:200]
        finally:
            _free_memory()
        if best is None:
            return Timing(case.name, contender.name, own=contender.own, choice=contender.choice, failure=failure)
        measured, attempt, error = best
        return Timing(
            case.name,
            contender.name,
            measured.seconds * 1e6 / case.problem.pairs,
            case.fma / measured.seconds / self.rates.fma,
            case.floor_seconds(self.rates) / measured.seconds,
            contender.own,
            contender.choice,
            measured.how,
            error,
            attempt.note,
            registers=attempt.registers,
            local_bytes=attempt.local_bytes,
        )

    def _measured(self, attempt: Attempt) -> Measured:
        clock = self._effort.clock
        match attempt.clocking:
            case "cupy":
                return clock.on_device(attempt.run)
            case "torch":
                return clock.on_device_by_torch(attempt.run)
            case "cupy call":
                stream = importlib.import_module("cupy").cuda.get_current_stream()
                return clock.by_call(attempt.run, stream.synchronize)
            case "torch call":
                return clock.by_call(attempt.run, importlib.import_module("torch").cuda.synchronize)


def auto_choice(case: Case) -> str:
    """Return what engine ``auto`` takes for a case, under the contenders' name for it.

    Parameters
    ----------
    case : Case
        Any.

    Returns
    -------
    str
        A variant or ``"fft"`` for planes, ``"warp-shuffle"`` or ``"fft"`` for peaks, ``"auto"`` for calls.
    """
    if case.task == "call":
        return "auto"
    choice = cheapest(case.problem, device_limits(current_device()))
    return choice if case.task == "plane" or choice == "fft" else "warp-shuffle"


def write_json(record: dict[str, Any], path: Path) -> None:
    """Write a record so that the file appears whole or not at all; what is not a number becomes null.

    Parameters
    ----------
    record : dict
        As `CorrelationBenchmark.record` returns it.
    path : pathlib.Path
        File to write or to replace.

    Raises
    ------
    OutputError
        Where it cannot be written.
    """
    atomic_write_text(path, json.dumps(_numbers_only(record), indent=1, allow_nan=False) + "\n")


def _numbers_only(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _numbers_only(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_numbers_only(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _free_memory() -> None:
    importlib.import_module("cupy").get_default_memory_pool().free_all_blocks()
    if has_torch():
        importlib.import_module("torch").cuda.empty_cache()
