"""``xcorr unmix``: a file with channels in; mixed channels out."""

from __future__ import annotations

import glob
import sys
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from xcorr_app.batch.unmix.explain import explain_unmix
from xcorr_app.batch.unmix.options import UnmixOptions
from xcorr_app.batch.unmix.run import Facts, plan_unmix, run_many
from xcorr_app.batch.unmix.stack import UnmixPlan, UnmixResult, plan_file, run_unmix
from xcorr_app.cli import options
from xcorr_app.cli.failures import SOMETHING_FAILED, WRONG_USAGE, one_line, one_line_failures
from xcorr_app.cli.progress import display_for
from xcorr_app.cli.tables import console_for, print_found
from xcorr_app.filtering.stains import STAINS
from xcorr_app.gpu.runtime.limits import KNOWN_DEVICES
from xcorr_app.io import Limits
from xcorr_app.pipeline.output import prepare_output
from xcorr_app.pipeline.run import Outcome

_SHOWN = 8


@click.command()
@click.argument("inputs", metavar="INPUT...", nargs=-1, required=True, type=options.PATH)
@options.output(
    "File for the result, .tif or .ome.tif, and FILE.json that says how it was made; a folder for several or a folder."
)
@click.option(
    "--matrix",
    type=options.PATH,
    help="File of the matrix (.csv, .txt, .npy): a row for every channel of the result, a column for every one of "
    "INPUT. In text, a row may begin with its name.",
)
@click.option(
    "--stain",
    type=click.Choice(list(STAINS)),
    help="Separate stains of a colour image: he is hematoxylin and eosin, hdab hematoxylin and DAB, hed all three.",
)
@click.option(
    "--channel-axis",
    type=click.Choice(["C", "T", "Z"]),
    default="C",
    show_default=True,
    help="Axis of the file that holds the channels.",
)
@click.option("--from-log", is_flag=True, help="Take the optical density first; --stain always does.")
@click.option(
    "--white",
    type=float,
    help="Intensity of an empty field, for the density.  [default: the largest value of an integer type, 1 for floats]",
)
@click.option("--clip", is_flag=True, help="Replace negative results by zero.")
@click.option(
    "--dtype",
    type=click.Choice(["same", "float32"]),
    help="Type of the result; same rounds integers and clips them.  [default: same; float32 for densities of integers]",
)
@options.device
@click.option(
    "--explain", is_flag=True, help="Print how kernels cut the work, on the GPU at hand or, without, an H200."
)
@click.option(
    "--explain-for", type=click.Choice(list(KNOWN_DEVICES)), help="The same for a GPU that need not be there."
)
@options.layout
@options.max_pixels("Refuse planes that declare more pixels.")
@options.resume
@options.overwrite("Replace the output file, or results in the output folder.")
@options.quiet
@options.debug
@click.pass_context
def unmix(ctx: click.Context, /, inputs: tuple[Path, ...], **given: Any) -> None:
    """Mix channels: spectral unmixing, stain separation.

    INPUT is a TIFF file with channels, or a colour image (TIFF or PNG), whose channels are red, green and blue. Several
    files, folders or globs become OUT/NAME_unmixed.tif, with OUT/run.json; with --channel-axis T, the one-page files of
    a folder are the channels of one stack. The channels of every pixel are multiplied by the matrix; for spectral
    unmixing that is the inverse of the matrix with the dyes' spectra as columns.

    With --from-log or --stain, the density -log10(max(value / white, 1e-6)) is mixed instead of the value. Stains have
    the vectors of Ruifrok and Johnston (2001), each of length one; two are completed by a third, the residual, at right
    angles to both.

    Exit code: 0 all good, 1 something failed, 2 wrong usage.

    \b
    Examples:
      xcorr unmix slide.tif -o stains.tif --stain he
      xcorr unmix SLIDES -o out --stain hed --resume
      xcorr unmix 'SLIDES/*.png' -o out --stain he
      xcorr unmix cells.ome.tif -o pure.ome.tif --matrix unmixing.csv --clip
      xcorr unmix lambda.tif -o pure.tif --matrix m.npy --channel-axis T --dtype float32
    """
    console = console_for(sys.stdout)
    if _is_one_file(inputs):
        _unmix_file(console, inputs[0], given)
        ctx.exit(0)
    ctx.exit(SOMETHING_FAILED if _unmix_many(console, inputs, given) else 0)


def _is_one_file(inputs: tuple[Path, ...]) -> bool:
    path = inputs[0]
    return len(inputs) == 1 and not path.is_dir() and (path.exists() or not glob.has_magic(str(path)))


def _unmix_file(console: Console, path: Path, given: dict[str, Any]) -> None:
    if given["resume"]:
        raise click.UsageError("--resume is for several files; a single file is written whole or not at all")
    with one_line_failures(WRONG_USAGE, debug=given["debug"]):
        plan = plan_file(path, given["output"], _options(given), overwrite=given["overwrite"])
        asked = given["explain"] or given["explain_for"]
        explained = explain_unmix(plan, given["explain_for"]) if asked else []
    with one_line_failures(SOMETHING_FAILED, debug=given["debug"]):
        if not given["quiet"]:
            _print_plan(console, plan)
        for line in explained:
            _say(console, line)
        with display_for(console, quiet=given["quiet"], unit="images") as display:
            result = run_unmix(plan, display.watch(plan.out.name))
        _print_result(console, plan, result)


def _unmix_many(console: Console, inputs: tuple[Path, ...], given: dict[str, Any]) -> bool:
    """Mix the channels of all stacks found; returns whether something failed."""
    modes = {"resume": given["resume"], "overwrite": given["overwrite"]}
    if all(modes.values()):
        raise click.UsageError("--resume keeps what is finished, --overwrite replaces it: give one of them")
    if given["explain"] or given["explain_for"]:
        raise click.UsageError("--explain is for a single file, whose size decides; name one of the folder's")
    with one_line_failures(WRONG_USAGE, debug=given["debug"]):
        plan = plan_unmix(list(inputs), given["output"], _options(given), **modes)
        prepare_output(plan.out, overwrite=given["overwrite"])
    with one_line_failures(SOMETHING_FAILED, debug=given["debug"]):
        if not given["quiet"]:
            print_found(console, plan.discovery, plan.device.note)
        with display_for(console, quiet=given["quiet"], unit="images") as display:
            run = run_many(plan, resume=given["resume"], stop_at_defects=given["debug"], watcher=display.watch)
        for outcome in run.outcomes:
            _print_outcome(console, outcome)
        mixed = sum(outcome.failure is None for outcome in run.outcomes)
        _say(console, f"{mixed} of {len(run.outcomes)} stacks mixed: {plan.out}")
    return run.failed


def _print_outcome(console: Console, outcome: Outcome[Facts]) -> None:
    if outcome.failure is not None:
        _say(console, f"failed: {outcome.failure}")
        return
    remarks = ["finished before"] if outcome.resumed else []
    remarks += [f"{clipped} values clipped"] if (clipped := outcome.facts["clipped_values"]) else []
    _say(console, f"{outcome.name}: {'; '.join([*remarks, *outcome.facts['notes']]) or 'good'}")


def _options(given: dict[str, Any]) -> UnmixOptions:
    same = ("matrix", "stain", "channel_axis", "from_log", "white", "clip", "dtype", "device", "layout")
    return UnmixOptions(limits=Limits(max_pixels=given["max_pixels"]), **{name: given[name] for name in same})


def _print_plan(console: Console, plan: UnmixPlan) -> None:
    if plan.device.note:
        _say(console, plan.device.note)
    old, names = plan.stack.metadata, plan.names or tuple(str(row) for row in range(len(plan.matrix)))
    shape = " x ".join(map(str, old.shape))
    _say(
        console,
        f"{plan.stack.path}: {shape} ({old.axes}) {old.dtype}, {plan.stack.channels} channels along {plan.stack.axis}",
    )
    for name, row in list(zip(names, plan.matrix, strict=True))[:_SHOWN]:
        more = " ..." if len(row) > _SHOWN else ""
        _say(console, f"  {name} = " + "  ".join(f"{factor:+.4g}" for factor in row[:_SHOWN]) + more)
    if len(names) > _SHOWN:
        _say(console, f"  ... and {len(names) - _SHOWN} more channels")


def _print_result(console: Console, plan: UnmixPlan, result: UnmixResult) -> None:
    for note in result.notes:
        _say(console, note)
    if result.clipped:
        _say(console, f"{result.clipped} of {result.values} values did not fit {plan.metadata.dtype} and were clipped")
    _say(console, f"Mixed channels: {plan.out}")


def _say(console: Console, text: str) -> None:
    console.print(Text(one_line(text)), soft_wrap=True)
