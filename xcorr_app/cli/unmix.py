"""``xcorr unmix``: a file with channels in; mixed channels out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from xcorr_app.batch.unmix import UnmixOptions, UnmixPlan, UnmixResult, plan_unmix, run_unmix
from xcorr_app.cli import options
from xcorr_app.cli.failures import SOMETHING_FAILED, WRONG_USAGE, one_line, one_line_failures
from xcorr_app.cli.progress import display_for
from xcorr_app.cli.tables import console_for
from xcorr_app.filtering.stains import STAINS
from xcorr_app.io import Limits

_SHOWN = 8


@click.command()
@click.argument("path", metavar="INPUT", type=options.PATH)
@options.output("File for the result: .tif or .ome.tif; FILE.json beside it says how it was made.")
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
@options.max_pixels("Refuse planes that declare more pixels.")
@options.overwrite("Replace the output file if it exists.")
@options.quiet
@options.debug
@click.pass_context
def unmix(ctx: click.Context, /, path: Path, **given: Any) -> None:
    """Mix channels: spectral unmixing, stain separation.

    INPUT is a TIFF file with channels, or a colour image (TIFF or PNG), whose channels are red, green and blue. The
    channels of every pixel are multiplied by the matrix; for spectral unmixing that is the inverse of the matrix with
    the dyes' spectra as columns.

    With --from-log or --stain, the density -log10(max(value / white, 1e-6)) is mixed instead of the value. Stains have
    the vectors of Ruifrok and Johnston (2001), each of length one; two are completed by a third, the residual, at right
    angles to both.

    Exit code: 0 all good, 1 something failed, 2 wrong usage.

    \b
    Examples:
      xcorr unmix slide.tif -o stains.tif --stain he
      xcorr unmix cells.ome.tif -o pure.ome.tif --matrix unmixing.csv --clip
      xcorr unmix lambda.tif -o pure.tif --matrix m.npy --channel-axis T --dtype float32
    """
    console = console_for(sys.stdout)
    with one_line_failures(WRONG_USAGE, debug=given["debug"]):
        plan = plan_unmix(path, given["output"], _options(given), overwrite=given["overwrite"])
    with one_line_failures(SOMETHING_FAILED, debug=given["debug"]):
        if not given["quiet"]:
            _print_plan(console, plan)
        with display_for(console, quiet=given["quiet"], unit="images") as display:
            result = run_unmix(plan, display.watch(plan.out.name))
        _print_result(console, plan, result)
    ctx.exit(0)


def _options(given: dict[str, Any]) -> UnmixOptions:
    same = ("matrix", "stain", "channel_axis", "from_log", "white", "clip", "dtype")
    return UnmixOptions(limits=Limits(max_pixels=given["max_pixels"]), **{name: given[name] for name in same})


def _print_plan(console: Console, plan: UnmixPlan) -> None:
    old, names = plan.file.metadata, plan.names or tuple(str(row) for row in range(len(plan.matrix)))
    shape = " x ".join(map(str, old.shape))
    _say(
        console,
        f"{plan.file.path}: {shape} ({old.axes}) {old.dtype}, {plan.file.channels} channels along {plan.file.axis}",
    )
    for name, row in list(zip(names, plan.matrix, strict=True))[:_SHOWN]:
        more = " ..." if len(row) > _SHOWN else ""
        _say(console, f"  {name} = " + "  ".join(f"{factor:+.4g}" for factor in row[:_SHOWN]) + more)
    if len(names) > _SHOWN:
        _say(console, f"  ... and {len(names) - _SHOWN} more channels")


def _print_result(console: Console, plan: UnmixPlan, result: UnmixResult) -> None:
    if result.clipped:
        _say(console, f"{result.clipped} of {result.values} values did not fit {plan.metadata.dtype} and were clipped")
    _say(console, f"Mixed channels: {plan.out}")


def _say(console: Console, text: str) -> None:
    console.print(Text(one_line(text)), soft_wrap=True)
