"""``python -m benchmarks``: the product beside its peers, on this machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from inspect import cleandoc
from pathlib import Path

import click

from benchmarks.harness.benchmark import run_suite
from benchmarks.harness.record import RESULTS, require_device
from benchmarks.harness.suite import Suite
from benchmarks.pipeline.cases import Size
from benchmarks.pipeline.command import run_pipeline
from benchmarks.suites import DOCUMENTS, SUITES
from xcorr_app.cli.printing.tables import console_for
from xcorr_app.cli.process import SOMETHING_FAILED, one_line_failures
from xcorr_app.gpu.runtime.select import select_device


@click.group()
def bench() -> None:
    """Time the product beside its peers on this machine's GPU.

    \b
    Example:
      python -m benchmarks correlation --quick
    """


_QUICK = click.option("--quick", is_flag=True, help="Fewer readings, and only the cases that matter most.")
_ONLY = click.option(
    "--only", default="", metavar="TEXT", help="Cases whose name contains this text.  [default: all of them]"
)
_JSON = click.option(
    "--json",
    "json_path",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Also write every number to this file, or add to it.",
)
_DEBUG = click.option("--debug", is_flag=True, help="Show the traceback of an error.")


def _command(suite: Suite) -> Callable[..., None]:
    """Make the command of a suite."""

    def run(quick: bool, only: str, json_path: Path | None, debug: bool) -> None:
        _refuse_unknown(only, [suite])
        if json_path is not None and (json_path.is_dir() or not json_path.parent.is_dir()):
            raise click.BadParameter(f"{str(json_path)!r} is no file in a folder that exists", param_hint="--json")
        with one_line_failures(SOMETHING_FAILED, debug=debug):
            require_device()
            select_device("cuda")
            run_suite(console_for(sys.stdout), suite, only, json_path, quick=quick)

    name = suite.cases[0].name
    run.__doc__ = f"""{cleandoc(suite.about)}

\b
Examples:
  python -m benchmarks {suite.name} --json results.json
  python -m benchmarks {suite.name} --quick --only "{name}"
"""
    return _QUICK(_ONLY(_JSON(_DEBUG(run))))


def _refuse_unknown(only: str, suites: list[Suite]) -> None:
    """Refuse a name that no case has: before minutes of measuring, not after."""
    if not any(only in case.name for suite in suites for case in suite.cases):
        raise click.BadParameter(f"no case's name contains {only!r}", param_hint="--only")


for _name, _suite in SUITES.items():
    bench.command(_name)(_command(_suite))


@bench.command()
@click.option(
    "--document", "documents", multiple=True, type=click.Choice(list(DOCUMENTS)), help="Only this one, or several."
)
@_QUICK
@_ONLY
@click.option(
    "--results",
    type=click.Path(path_type=Path),
    default=RESULTS,
    metavar="FOLDER",
    help="Where ablation_DOCUMENT.json is written.  [default: benchmarks/results]",
)
@_DEBUG
def ablation(documents: tuple[str, ...], quick: bool, only: str, results: Path, debug: bool) -> None:
    """Measure what each of the four documents evaluates: every step of its design, beside its peers.

    Every answer is checked against float64 before it is timed; of 100 readings, the record has median and best. It is
    written after each case; what an earlier run on the same device measured besides is kept.

    \b
    Examples:
      python -m benchmarks ablation --document reuse
      python -m benchmarks ablation --document correlation --only "work distribution, one-to-one"
      python -m benchmarks ablation --quick
    """
    chosen = {name: DOCUMENTS[name] for name in documents or DOCUMENTS}
    _refuse_unknown(only, list(chosen.values()))
    if not results.is_dir():
        raise click.BadParameter(f"{str(results)!r} is no folder", param_hint="--results")
    with one_line_failures(SOMETHING_FAILED, debug=debug):
        require_device()
        select_device("cuda")
        for name, suite in chosen.items():
            if suite.cases_named(only, quick=quick):
                run_suite(console_for(sys.stdout), suite, only, results / f"ablation_{name}.json", quick=quick)


@bench.command("pipeline")
@click.option("--stacks", type=click.IntRange(1), default=4, show_default=True, help="Stacks of a case.")
@click.option("--frames", type=click.IntRange(10), default=250, show_default=True, help="Frames of a stack.")
@click.option("--side", type=click.IntRange(32), default=512, show_default=True, help="Rows and columns of a frame.")
@click.option("--only", multiple=True, metavar="TEXT", help="Cases whose name contains it.")
@click.option("--device", default="auto", show_default=True, help="Where to compute, as `xcorr align` takes it.")
@_JSON
@_DEBUG
def pipeline(
    stacks: int, frames: int, side: int, only: tuple[str, ...], device: str, json_path: Path | None, debug: bool
) -> None:
    """Time whole commands from disk to disk, beside what the machine reads, writes and decodes.

    W is the second run over all stacks, R the rate of as many more; the table says which stage set the pace. A file of
    results keeps the cases that are not timed again.

    \b
    Examples:
      python -m benchmarks pipeline --device cpu --stacks 2 --frames 100
      python -m benchmarks pipeline --stacks 16 --frames 1250 --json pipeline.json
    """
    with one_line_failures(SOMETHING_FAILED, debug=debug):
        run_pipeline(console_for(sys.stdout), Size(stacks, frames, side), only, device, json_path)
