"""The benchmark of the correlation kernels: every case, every contender, checked and timed in one run."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from benchmarks.correlation.cases import Case
from benchmarks.correlation.data import Data, random_data
from benchmarks.correlation.own_kernels import LEADING, variants_of
from benchmarks.correlation.records import CaseResult, Timing, as_dict
from benchmarks.harness.check import Expected
from benchmarks.harness.contender import Contender
from benchmarks.harness.contenders import contenders_of, has_torch
from benchmarks.harness.device_rates import DeviceRates, measure_rates
from benchmarks.harness.effort import THOROUGH, Effort
from benchmarks.harness.fastest import fastest_of
from benchmarks.harness.record import require_device, run_record
from xcorr_app.correlation.choice import decide_peaks, decide_planes
from xcorr_app.errors import XcorrError
from xcorr_app.gpu.direct.plan import plan_of
from xcorr_app.gpu.runtime.limits import device_limits
from xcorr_app.gpu.runtime.placement import current_device

__all__ = ["CorrelationBenchmark", "auto_choice"]

_COMPILERS = 8


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
        return run_record(self.status, self.rates, quick=self._effort.quick, has_torch=has_torch()) | {
            "cases": [as_dict(result) for result in results],
            "timings": [asdict(timing) for result in results for timing in result.timings],
        }

    def _time(self, contender: Contender, case: Case, data: Data, expected: Expected) -> Timing:
        outcome = fastest_of(contender, case, data, expected, self._effort)
        return Timing(
            case.name,
            outcome.what,
            outcome.seconds * 1e6 / case.problem.pairs,
            case.fma / outcome.seconds / self.rates.fma,
            case.floor_seconds(self.rates) / outcome.seconds,
            outcome.own,
            outcome.choice,
            outcome.how,
            outcome.error,
            outcome.note,
            outcome.failure,
            registers=outcome.registers,
            local_bytes=outcome.local_bytes,
        )


def auto_choice(case: Case) -> str:
    """Return what engine ``auto`` takes for a case, under the contenders' name for it.

    Parameters
    ----------
    case : Case
        Any.

    Returns
    -------
    str
        A variant, ``"tensor"`` or ``"fft"`` for planes, ``"auto"`` for calls, and an engine for peaks.
    """
    if case.task == "call":
        return "auto"
    limits, dtypes = device_limits(current_device()), (case.left_type, case.right_type)
    if case.task == "plane":
        decided = decide_planes(case.problem, dtypes=dtypes, limits=limits)
        return decided.kernel if decided.engine == "direct" else decided.engine
    return decide_peaks(case.problem, dtypes=dtypes, normalize=case.task == "zncc-peak", limits=limits).engine
