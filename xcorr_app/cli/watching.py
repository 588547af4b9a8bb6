"""``--watch``: a run over what arrives in a folder, closed by Ctrl-C."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from xcorr_app.cli.process import WRONG_USAGE, handling, one_line_failures
from xcorr_app.errors import XcorrError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from xcorr_app.batch.align.options import AlignOptions
    from xcorr_app.batch.align.watched_frames import FramesSoFar
    from xcorr_app.io import SeriesSpec
    from xcorr_app.io.finding.watch import Arrivals
    from xcorr_app.pipeline.work import Work


def watch_of(inputs: tuple[Path, ...], options: AlignOptions) -> dict[str, Any]:
    """How a run watches the one folder that was named; nothing where it is not to."""
    if not options.watch:
        return {}
    from xcorr_app.io import Discovery
    from xcorr_app.io.finding.watch import Arrivals

    if len(inputs) != 1:
        raise click.UsageError("--watch waits for files in one folder: name that alone")

    def announce(name: str) -> None:
        if not options.quiet:
            click.echo(f"{name}: complete")

    with one_line_failures(WRONG_USAGE, debug=options.debug):
        arrivals = Arrivals(inputs[0], options.limits, options.layout, options.single_channel, announce)
    return {"found": Discovery("stacks", (), ()), "taken": partial(watching, arrivals=arrivals)}


@contextmanager
def watching(work: Work[AlignOptions], arrivals: Arrivals) -> Iterator[Work[AlignOptions]]:
    """Yield the work of a run over what will arrive, until the first Ctrl-C, with which the run closes.

    Frames are measured as they come, as far as they can be; the table of that goes once a whole series has its own.
    """
    from xcorr_app.batch.align.watched_frames import FramesSoFar, can_be_measured_alone

    so_far = FramesSoFar(work.options, work.device, work.out)
    so_far.table.unlink(missing_ok=True)
    if can_be_measured_alone(work.options):
        arrivals.take_frames = _until_it_fails(so_far)

    def stop(number: int, _: Any) -> None:
        """The first Ctrl-C (or SIGTERM) ends the watch, and the run closes; a second one interrupts as ever."""
        arrivals.stop()
        signal.signal(number, before[number])

    with handling((signal.SIGINT, signal.SIGTERM), stop) as before:
        yield replace(work, discovery=replace(work.discovery, series=arrivals, failures=arrivals.failures))
    if any(spec.layout == "frames" and (work.out / spec.name / "shifts.csv").is_file() for spec in arrivals[:]):
        so_far.table.unlink(missing_ok=True)


def _until_it_fails(so_far: FramesSoFar) -> Callable[[list[SeriesSpec]], None]:
    """What cannot be measured yet shall not keep anything from being measured in the end."""
    failed: list[Exception] = []

    def take(specs: list[SeriesSpec]) -> None:
        if not failed:
            try:
                so_far(specs)
            except (XcorrError, OSError, MemoryError) as error:
                failed.append(error)
                click.echo(f"frames are measured when watching ends, not as they come: {error}", err=True)

    return take
