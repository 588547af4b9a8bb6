"""A command's run over stacks, from its options to what is printed of the results: one for all commands."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from xcorr_app.batch.shared_options import StackOptions
from xcorr_app.cli.options import command, device_note, inputs_argument
from xcorr_app.cli.process import SOMETHING_FAILED, WRONG_USAGE, one_line_failures

if TYPE_CHECKING:
    from rich.console import Console

    from xcorr_app.io import Discovery
    from xcorr_app.pipeline.work import Run, Work

Sizes = dict[str, int]
Columns = Mapping[str, Callable[[dict[str, Any]], str]]


def planes_of(sizes: Sizes) -> int:
    """Planes of a stack whose axes have these sizes."""
    return sizes["T"] * sizes["Z"] * sizes["C"]


def stack_command(
    name: str,
    kind: type[StackOptions],
    work: str,
    columns: Columns,
    done: str,
    *,
    advice: str = "",
    counted: Callable[[Sizes], int] | None = None,
    form: str = "INPUT...",
) -> Callable[[Callable[[], None]], click.Command]:
    """Make a command of a function that has its help: it does `work` ``MODULE.CLASS`` of `batch` to stacks.

    `columns`, `done` and `advice` are those of `print_run`, `counted` is of `run_command`.
    """

    def decorate(function: Callable[[], None]) -> click.Command:
        def run(options: StackOptions, inputs: tuple[Path, ...]) -> int:
            from xcorr_app.cli.printing.tables import print_run

            module, _, found = work.rpartition(".")
            made = getattr(importlib.import_module(f"xcorr_app.batch.{module}"), found)
            show = partial(print_run, columns=columns, done=done, advice=advice)
            return run_command(made, inputs, options, show, counted=counted)

        run.__doc__ = function.__doc__
        return command(name, kind, inputs_argument(form))(run)

    return decorate


def run_command(
    kind: type[Work[Any]],
    inputs: Sequence[Path],
    options: StackOptions,
    show: Callable[[Console, Run], None],
    *,
    failures: Callable[[Run], list[tuple[str, str]]] | None = None,
    counted: Callable[[Sizes], int] | None = None,
    halves: bool = False,
    found: Discovery | None = None,
    taken: Callable[[Work[Any]], AbstractContextManager[Work[Any]]] = nullcontext,
) -> int:
    """Do what a command's options say; returns the exit code.

    `show` prints the results, with ``-q`` only `failures`. What is `counted` of a stack is a unit of its progress, in
    two `halves` where each is measured and moved. Work on what will be `found` later is `taken` over.
    """
    from xcorr_app.cli.printing.progress import counts_of, display_for
    from xcorr_app.cli.printing.tables import (
        console_for,
        failures_in,
        print_explained,
        print_failures,
        print_found,
        print_timings,
    )
    from xcorr_app.cli.process import keep_freed_memory
    from xcorr_app.cluster.connect import workers_of
    from xcorr_app.pipeline.output import prepared_output
    from xcorr_app.pipeline.run import run_stacks
    from xcorr_app.pipeline.work import plan_stacks

    console, cluster, out = console_for(sys.stdout), getattr(options, "cluster", None), options.output or Path()
    if cluster:
        inputs = [Path(os.path.abspath(path)) for path in inputs]  # noqa: PTH100 - links stay
    keep_freed_memory()
    with one_line_failures(WRONG_USAGE, debug=options.debug):
        work = plan_stacks(kind, inputs, out, options, found=found, elsewhere=cluster is not None)
        if getattr(options, "explain", None):
            print_explained(console, work)
            return 0
        held = prepared_output(work.out, resume=options.resume, overwrite=options.overwrite)
        click.get_current_context().with_resource(held)
    quiet = options.quiet
    with one_line_failures(SOMETHING_FAILED, debug=options.debug):
        if not quiet and found is None:
            print_found(console, work.discovery, device_note(work.device, options))
        silent = quiet or found is not None
        counts = None if silent or cluster or counted is None else counts_of(work.discovery, counted)
        with (
            workers_of(cluster) as elsewhere,
            taken(work) as final,
            display_for(
                console, quiet=silent, unit="stacks" if cluster else "frames", counts=counts, halves=halves
            ) as watch,
        ):
            run = run_stacks(final, watcher=watch, elsewhere=elsewhere)
        if quiet:
            print_failures(failures(run) if failures else failures_in(run.outcomes))
        else:
            show(console, run)
        if options.verbose:
            print_timings(console, run.stages)
    return SOMETHING_FAILED if run.failed else 0
