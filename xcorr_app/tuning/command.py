"""The work of ``xcorr tune``: a device measured, its table kept."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from xcorr_app.errors import ArgumentError, DeviceError
from xcorr_app.gpu.runtime.device import cuda_status
from xcorr_app.gpu.runtime.limits import device_limits
from xcorr_app.gpu.runtime.placement import current_device
from xcorr_app.gpu.runtime.select import select_device
from xcorr_app.gpu.runtime.tuned import TunedTable, device_key, save_table
from xcorr_app.tuning.domain import Sizes
from xcorr_app.tuning.domains import domains_named
from xcorr_app.tuning.measure import share_within
from xcorr_app.tuning.run import Tuning, tune

__all__ = ["measure_device", "summary", "table_of"]


def measure_device(
    device: str, seconds: float, sizes: tuple[tuple[int, int], ...], tell: Callable[[str], None]
) -> TunedTable:
    """Measure a device and keep its table; raises DeviceError where there is none or nothing could be measured."""
    if device == "cpu":
        raise ArgumentError("there is nothing to tune on the CPU: use --device cuda or cuda:N")
    try:
        select_device(device)
    except DeviceError as error:
        # The advice to use the CPU helps nobody here.
        if reason := error.__cause__ or cuda_status().reason:
            raise DeviceError(f"{reason}; there is nothing to tune without a GPU") from error
        raise
    number = current_device()
    limits = replace(device_limits(number), tuned=None)
    found = tune(domains_named((), limits, Sizes(sizes)), seconds, tell=tell)
    if not found.rows:
        raise DeviceError("nothing could be measured in this time: give more --minutes, or smaller --sizes")
    table = table_of(found, {**device_key(number), "sizes": [f"{y}x{x}" for y, x in sizes]})
    for line in summary(found):
        tell(line)
    tell(f"Written: {save_table(table)}")
    return table


def table_of(found: Tuning, about: dict[str, object]) -> TunedTable:
    """Make the table of what was measured."""
    date = dt.datetime.now(dt.UTC).date().isoformat()
    return TunedTable({**about, "date": date, "problems": len(found.outcomes)}, found.rows)


def summary(found: Tuning) -> Iterator[str]:
    """Yield a line a domain: problems, choices that were good beforehand, and how long candidates take for expected."""
    for domain in dict.fromkeys(outcome.domain for outcome in found.outcomes):
        outcomes = [outcome for outcome in found.outcomes if outcome.domain == domain]
        missed: dict[str, list[float]] = {}
        for row in found.rows:
            if row.domain == domain:
                missed.setdefault(row.candidate, []).append(row.missed)
        times = ", ".join(f"{name} {np.exp(np.median(each)):.2f}" for name, each in missed.items())
        yield (
            f"{domain}: {len(outcomes)} problems, {share_within(outcomes):.0%} of the choices were within 10 % of the "
            f"best; time over the shipped model's: {times}"
        )
