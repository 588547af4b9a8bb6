"""A record that grows: a run that measures some of a document's cases keeps what was measured before of the others.

So a run that is broken off keeps the groups of cases that it has finished, and ``--only`` adds the ones that are left.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.work.suite import Suite

__all__ = ["joined", "record_in"]

_TIMED = ("numpy", "scipy", "cupy", "torch")
"""The libraries that a time depends on: none of them reads files."""


def record_in(path: Path) -> dict[str, Any] | None:
    """Read what an earlier run wrote; None where there is nothing."""
    return json.loads(path.read_text()) if path.is_file() else None


def joined(record: dict[str, Any], earlier: Mapping[str, Any] | None, suite: Suite) -> dict[str, Any]:
    """Add to a record the cases that an earlier one has besides, in the order of the suite.

    Cases of another device, driver or version of a library that is timed are left out: their times would not compare.

    Parameters
    ----------
    record : dict
        Of the run that has just ended.
    earlier : mapping or None
        What the file holds.
    suite : Suite
        Of the document; cases that it no longer has are left out.

    Returns
    -------
    dict
        As `record`, with more cases and timings.
    """
    if earlier is None or _measured_on(earlier) != _measured_on(record):
        return record
    order = {case.name: i for i, case in enumerate(suite.cases)}
    new = {case["name"] for case in record["cases"]}
    kept = {case["name"] for case in earlier["cases"]} & order.keys() - new
    cases = record["cases"] + [case for case in earlier["cases"] if case["name"] in kept]
    timings = record["timings"] + [each for each in earlier["timings"] if each["case"] in kept]
    return record | {
        "cases": sorted(cases, key=lambda case: order[case["name"]]),
        "timings": sorted(timings, key=lambda timing: order[timing["case"]]),
    }


def _measured_on(record: Mapping[str, Any]) -> tuple[Any, ...]:
    environment = record["environment"]
    versions = {name: environment["versions"].get(name) for name in _TIMED}
    return environment["devices"][:1], versions, record["device"]
