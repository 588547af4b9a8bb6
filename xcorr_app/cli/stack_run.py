"""A command's run over stacks, from a plan whose output folder is ready to what is printed of the results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from rich.console import Console

from xcorr_app.cli import options
from xcorr_app.cli.failures import SOMETHING_FAILED, one_line_failures
from xcorr_app.cli.printing.progress import count_of, display_for
from xcorr_app.cli.printing.tables import failures_in, print_failures, print_found, print_pace, print_timings, say
from xcorr_app.pipeline.outcome import Run
from xcorr_app.pipeline.run import Elsewhere, run_stacks
from xcorr_app.pipeline.work import Plan, Work

Sizes = dict[str, int]


def planes_of(sizes: Sizes) -> int:
    """Planes of a stack whose axes have these sizes."""
    return sizes["T"] * sizes["Z"] * sizes["C"]


def run_plan(
    console: Console,
    given: dict[str, Any],
    plan: Plan[Any],
    work: Work[Any],
    show: Callable[[Console, Run[Any]], None],
    *,
    failures: Callable[[Run[Any]], list[tuple[str, str]]] = lambda run: failures_in(run.outcomes),
    told: Sequence[str] = (),
    counted: Callable[[Sizes], int] | None = None,
    unit: str = "frames",
    workers: AbstractContextManager[Elsewhere | None] | None = None,
) -> int:
    """Do the `work` of a plan as a command's parameters say; returns the exit code.

    `told` is said before it begins, `show` prints the results; with ``-q`` only `failures` are printed. What is
    `counted` of a stack is a `unit` of its progress.
    """
    quiet = given["quiet"]
    with one_line_failures(SOMETHING_FAILED, debug=given["debug"]):
        if not quiet:
            print_found(console, plan.discovery, options.device_note(plan.device, given))
            for line in told:
                say(console, line)
        count = None if quiet or counted is None else count_of(plan.discovery, counted)
        resources = options.read_resources(given)
        stages = resources.stages if given["timings"] else None
        with (
            workers or nullcontext() as elsewhere,
            display_for(console, quiet=quiet, unit=unit, count=count, stages=stages) as display,
        ):
            run = run_stacks(
                plan,
                work,
                resume=given["resume"],
                stop_at_defects=given["debug"],
                watcher=display.watch,
                resources=resources,
                elsewhere=elsewhere,
            )
        if quiet:
            print_failures(failures(run))
        else:
            show(console, run)
        if given["timings"]:
            print_timings(console, run.stages)
            print_pace(console, run.stages)
    return SOMETHING_FAILED if run.failed else 0
