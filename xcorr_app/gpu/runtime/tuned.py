"""What was measured on this device: how far each candidate's expected time is off, which ``auto`` then prefers.

The models of the candidates' times were fitted on one H200 and are scaled for other devices. ``xcorr tune`` times all
candidates of random problems on the device at hand and keeps the logarithm of measured over expected time of each, with
where the problem lies among others (its sizes, as base-2 logarithms). A candidate's correction at another problem is
the mean of a Gaussian process through its measurements: a constant for the candidate, and what its neighbours share.
So few measurements near a problem already correct what all have in common, and none far away does harm.

The table lies in the folder of the compiled kernels, one a device, driver and version of this package; a table that
cannot be read, or is of another, counts as none.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from xcorr_app.decision import Candidate, Decision
from xcorr_app.gpu.runtime.kernel_cache import cache_folder

__all__ = [
    "Row",
    "TunedTable",
    "by_measurements",
    "device_key",
    "load_table",
    "prefers_measurements",
    "save_table",
    "table_path",
]

# In natural logarithms of time, but for the reach; chosen by five-fold cross-validation over the 300 problems of
# benchmarks/results/auto.json, where 276 choices were within 1.1 of the best before and 285 after.
_CONSTANT, _LOCAL, _NOISE = 1.0, 0.3, 0.1
_REACH = 3.0
"""Distance at which two problems share little: a factor of eight in one size."""
_CLOSE = 0.05
"""The choice of the models stays where nothing is expected to be faster by more."""

_ASKING = ("engine", "named", "method")
"""Arguments of decisions by which a user asks for one of the candidates."""

Key = Mapping[str, str]
Decide = TypeVar("Decide", bound=Callable[..., Decision])


@dataclass(frozen=True)
class Row:
    """A candidate on a problem: domain, where the problem lies, and the logarithm of measured over expected time."""

    domain: str
    candidate: str
    coordinates: tuple[float, ...]
    missed: float


class TunedTable:
    """Measurements of one device, ready to correct expected times.

    Parameters
    ----------
    about : mapping
        What was measured, where and when: ``device``, ``driver``, ``version``, ``date``, ``problems``.
    rows : sequence of Row
        The measurements.
    """

    def __init__(self, about: Mapping[str, Any], rows: Sequence[Row]) -> None:
        self.about, self.rows = dict(about), tuple(rows)
        self._of_domain = {row.domain: 0.0 for row in rows}
        for domain in self._of_domain:
            self._of_domain[domain] = float(np.mean([row.missed for row in rows if row.domain == domain]))
        names = dict.fromkeys((row.domain, row.candidate) for row in rows)
        self._fits = {name: self._fitted(*name) for name in names}

    def preferred(self, domain: str, decision: Decision) -> Decision:
        """Correct a decision's expected times, and decide by them where another candidate is clearly faster."""
        if domain not in self._of_domain:
            return decision
        times = {
            candidate.name: candidate.microseconds * math.exp(self.correction(domain, candidate.name, decision))
            for candidate in decision.candidates
            if candidate.microseconds is not None
        }
        if decision.name not in times:
            return decision  # by a rule: it has no model to correct
        corrected = [replace(each, microseconds=times.get(each.name)) for each in decision.candidates]
        first, *others = sorted((each for each in corrected if each.name in times), key=_microseconds)
        if times[decision.name] <= (1 + _CLOSE) * _microseconds(first):
            return replace(decision, candidates=tuple(corrected))
        reason = f"the least time by measurements on this device, {_microseconds(first):.0f} us"
        reason += f", where {others[0].name} takes {_microseconds(others[0]):.0f} us"
        return replace(decision, engine=first.engine, kernel=first.kernel, reason=reason, candidates=tuple(corrected))

    def correction(self, domain: str, candidate: str, decision: Decision) -> float:
        """Natural logarithm of the time to be measured over the expected one."""
        mean = self._of_domain[domain]
        fit = self._fits.get((domain, candidate))
        if fit is None:
            return mean
        places, weights = fit
        shared = _covariance(np.asarray(decision.coordinates, np.float64)[None], places)
        return mean + float(shared[0] @ weights)

    def _fitted(self, domain: str, candidate: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        rows = [row for row in self.rows if (row.domain, row.candidate) == (domain, candidate)]
        places = np.array([row.coordinates for row in rows], np.float64)
        missed = np.array([row.missed for row in rows]) - self._of_domain[domain]
        covariance = _covariance(places, places) + _NOISE**2 * np.eye(len(rows))
        weights = np.linalg.solve(covariance, missed).astype(np.float64)
        return places, weights


def by_measurements(
    decision: Decision, domain: str, coordinates: tuple[float, ...], table: TunedTable | None
) -> Decision:
    """Say where a decided problem lies, and decide by a table where there is one."""
    placed = replace(decision, coordinates=coordinates)
    return placed if table is None else table.preferred(domain, placed)


def prefers_measurements(
    domain: str, place: Callable[[Mapping[str, Any]], tuple[float, ...]]
) -> Callable[[Decide], Decide]:
    """Let a function that decides prefer the table of its argument `limits`, unless a candidate was asked for.

    `place` takes the function's arguments by name and says where the problem lies.
    """

    def decorated(decide: Decide) -> Decide:
        signature = inspect.signature(decide)

        @functools.wraps(decide)
        def decided(*arguments: Any, **more: Any) -> Decision:
            decision = decide(*arguments, **more)
            given = signature.bind(*arguments, **more).arguments
            limits = given.get("limits")
            if limits is None:
                return decision
            is_asked = any(given.get(name, "auto") != "auto" for name in _ASKING)
            return by_measurements(decision, domain, place(given), None if is_asked else limits.tuned)

        return cast("Decide", decided)

    return decorated


def device_key(number: int) -> Key:
    """Return what a table holds for: device, driver and version of this package."""
    from xcorr_app import __version__

    runtime = importlib.import_module("cupy").cuda.runtime
    name = runtime.getDeviceProperties(number)["name"]
    driver = str(runtime.driverGetVersion())
    return {"device": name.decode() if isinstance(name, bytes) else str(name), "driver": driver, "version": __version__}


def table_path(key: Key) -> Path:
    """Return the file of the table of a device."""
    words = "-".join((key["device"], key["driver"], key["version"]))
    return cache_folder() / f"xcorr-tuned-{re.sub('[^A-Za-z0-9.]+', '-', words)}.json"


def save_table(table: TunedTable) -> Path:
    """Write a table where `load_table` finds it; raises OSError where that cannot be."""
    path = table_path(table.about)
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [[row.domain, row.candidate, list(row.coordinates), row.missed] for row in table.rows]
    partial = path.with_name(f"{path.name}.part")
    partial.write_text(json.dumps({"about": table.about, "rows": rows}) + "\n", encoding="utf-8")
    partial.replace(path)
    return path


def load_table(key: Key) -> TunedTable | None:
    """Read the table of a device; None where there is none, or none that can be read."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        stored = json.loads(table_path(key).read_text(encoding="utf-8"))
        about = stored["about"]
        if {name: about[name] for name in key} == dict(key):
            rows = [Row(domain, name, tuple(place), float(missed)) for domain, name, place, missed in stored["rows"]]
            return TunedTable(about, rows)
    return None


def _covariance(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    squares = ((first[:, None] - second[None]) ** 2).sum(axis=-1)
    covariance: NDArray[np.float64] = _CONSTANT**2 + _LOCAL**2 * np.exp(-squares / (2 * _REACH**2))
    return covariance


def _microseconds(candidate: Candidate) -> float:
    return candidate.microseconds or 0.0
