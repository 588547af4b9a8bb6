"""``--watch``: a run over what arrives in a folder, closed by Ctrl-C."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from xcorr_app.batch.align.options import AlignOptions
    from xcorr_app.io.watch import Arrivals
    from xcorr_app.pipeline.run import Plan


def arrivals_of(inputs: tuple[Path, ...], options: AlignOptions, *, quiet: bool) -> Arrivals:
    """Watch the one folder that was named."""
    from xcorr_app.io.watch import Arrivals

    if len(inputs) != 1:
        raise click.UsageError("--watch waits for files in one folder: name that alone")

    def tell(name: str) -> None:
        if not quiet:
            click.echo(f"{name}: complete")

    return Arrivals(inputs[0], options.limits, options.layout, options.channel, tell)


def watched(plan: Plan[AlignOptions], arrivals: Arrivals) -> Plan[AlignOptions]:
    """Return the plan of a run over what will arrive."""
    return replace(plan, discovery=replace(plan.discovery, series=arrivals, failures=arrivals.failures))


@contextmanager
def stopped_by_signals(arrivals: Arrivals) -> Iterator[None]:
    """Let the first Ctrl-C (or SIGTERM) end the watch and the run close; a second one interrupts as ever."""

    def stop(number: int, _: Any) -> None:
        arrivals.stop()
        signal.signal(number, before[signal.Signals(number)])

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
