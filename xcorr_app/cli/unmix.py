"""``xcorr unmix``: a file with channels in; mixed channels out."""

from __future__ import annotations

import glob
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from xcorr_app.cli import choices, options, values
from xcorr_app.cli.failures import SOMETHING_FAILED, WRONG_USAGE, one_line_failures
from xcorr_app.cli.help import GroupedCommand

if TYPE_CHECKING:
    from xcorr_app.batch.unmix.options import UnmixOptions

_SHOWN = {
    "Mixing": ("stain", "spectra", "matrix", "channel_axis", "from_log", "white"),
    "Results": ("output", "clip", "dtype", "resume", "overwrite"),
}
"""Options that ``--help`` shows."""


@click.command("unmix", cls=GroupedCommand, groups=_SHOWN)
@click.argument("inputs", metavar="INPUT...", nargs=-1, required=True, type=values.PATH)
@options.output(
    "Output file, .tif or .ome.tif (FILE.json records how it was made); an output folder for several files or a folder."
)
@click.option(
    "--matrix",
    type=values.PATH,
    help="Matrix that is already inverted (.csv, .txt, .npy): one row per channel of the result, one column per "
    "channel of INPUT. In text files, a row may begin with its name.",
)
@click.option(
    "--spectra",
    type=values.PATH,
    help="Spectra of the dyes as they are measured (.csv, .txt, .npy): one row per channel of INPUT, one column per "
    "dye; a first line may name the dyes. They are inverted by least squares.",
)
@click.option(
    "--stain",
    type=click.Choice(choices.STAINS),
    help="Separate stains of a colour image: he is hematoxylin and eosin, hdab hematoxylin and DAB, hed all three.",
)
@click.option(
    "--channel-axis",
    type=click.Choice(["C", "T", "Z"]),
    default="C",
    show_default=True,
    help="Axis of the file that holds the channels.",
)
@click.option("--from-log", is_flag=True, help="Convert to optical density first; --stain always does.")
@click.option(
    "--white",
    type=float,
    help="Intensity of an empty field, for the optical density.  "
    "[default: the largest value of an integer type, 1 for floats]",
)
@click.option("--clip", is_flag=True, help="Replace negative results with zero.")
@click.option(
    "--dtype",
    type=click.Choice(["same", "float32"]),
    help="Type of the result; same rounds integers and clips them.  [default: same; float32 for densities of integers]",
)
@click.option(
    "--kernel",
    type=click.Choice(choices.MIXING_KERNELS),
    default="auto",
    show_default=True,
    help="A kernel by name; needs a GPU. blocking is dynamic blocking as published, tiled takes tiles by a model of "
    "the time, mix and shallow keep channels in registers, mix_bytes and mix_split are for tensor cores.",
)
@click.option(
    "--kernel-option",
    "kernel_options",
    metavar="NAME=VALUE",
    multiple=True,
    help="Constant of the planner of --kernel blocking, as often as needed: warps, blocks, channel-count, registers, "
    "shared-bytes, filters-for-l1, rounds, numbers; staging, async or registers.",
)
@options.device
@options.explain
@click.option(
    "--explain-for", type=click.Choice(choices.DEVICES), help="Like --explain, for a GPU that need not be present."
)
@options.compression
@options.running
@options.layout
@options.max_pixels("Refuse images that declare more pixels than this.")
@options.resume
@options.overwrite("Replace the output file, or results in the output folder.")
@options.quiet
@options.debug
@click.pass_context
def command(ctx: click.Context, /, inputs: tuple[Path, ...], **given: Any) -> None:
    """Mix channels: spectral unmixing, stain separation.

    INPUT is a TIFF file with channels, or a colour image (TIFF, PNG, BMP, JPEG), whose channels are red, green and
    blue. Several files, folders or globs become OUT/NAME_unmixed.tif, with OUT/run.json; files whose names number
    channels (_c0, _c1) are one stack; with --channel-axis T, the one-page files of a folder are. The channels of every
    pixel are multiplied by the matrix; for spectral unmixing --spectra makes it of the measured spectra of the dyes.

    With --from-log or --stain, the density -log10(max(value / white, 1e-6)) is mixed instead of the value. Stains use
    the vectors of Ruifrok and Johnston (2001), normalised to length one; two are completed by a third, the residual,
    at right angles to both.

    Exit code: 0 all good, 1 something failed, 2 wrong usage.

    \b
    Examples:
      xcorr unmix slide.tif -o stains.tif --stain he
      xcorr unmix SLIDES -o out --stain hed --resume
      xcorr unmix 'SLIDES/*.png' -o out --stain he
      xcorr unmix cells.ome.tif -o pure.ome.tif --spectra spectra.csv --clip
      xcorr unmix lambda.tif -o pure.tif --matrix m.npy --channel-axis T --dtype float32
    """
    if _is_one_file(inputs):
        _unmix_file(inputs[0], given)
        ctx.exit(0)
    ctx.exit(_unmix_many(inputs, given))


def _is_one_file(inputs: tuple[Path, ...]) -> bool:
    path = inputs[0]
    return len(inputs) == 1 and not path.is_dir() and (path.exists() or not glob.has_magic(str(path)))


def _unmix_file(path: Path, given: dict[str, Any]) -> None:
    if given["resume"]:
        raise click.UsageError("--resume is for several files; a single file is written whole or not at all")
    from xcorr_app.batch.unmix.explain import explain_file
    from xcorr_app.batch.unmix.stack import plan_file, run_unmix
    from xcorr_app.cli.printing.progress import display_for
    from xcorr_app.cli.printing.tables import console_for, print_timings
    from xcorr_app.cli.printing.unmix_table import print_explained, print_plan, print_result

    console = console_for(sys.stdout)
    with one_line_failures(WRONG_USAGE, debug=given["debug"]):
        plan = plan_file(path, given["output"], _options(given), overwrite=given["overwrite"])
        if given["explain"] or given["explain_for"]:
            print_explained(console, plan.out.name, *explain_file(plan, given["explain_for"]))
            return
    with one_line_failures(SOMETHING_FAILED, debug=given["debug"]):
        if not given["quiet"]:
            print_plan(console, plan, options.device_note(plan.device, given))
        resources = options.read_resources(given)
        with display_for(console, quiet=given["quiet"], unit="images") as display:
            result = run_unmix(plan, display.watch(plan.out.name), resources)
        if not given["quiet"]:
            print_result(console, plan, result)
        if given["timings"]:
            print_timings(console, resources.stages)


def _unmix_many(inputs: tuple[Path, ...], given: dict[str, Any]) -> int:
    """Mix the channels of all stacks found; returns the exit code."""
    options.check_modes(given)
    from xcorr_app.batch.unmix.explain import explain_many
    from xcorr_app.batch.unmix.run import plan_unmix, work_of
    from xcorr_app.batch.unmix.stack import spectra_condition
    from xcorr_app.cli.printing.tables import console_for
    from xcorr_app.cli.printing.unmix_table import print_explained, print_outcomes, told_of_spectra
    from xcorr_app.cli.stack_run import run_plan
    from xcorr_app.pipeline.output import prepared_output

    console = console_for(sys.stdout)
    modes = {"resume": given["resume"], "overwrite": given["overwrite"]}
    with one_line_failures(WRONG_USAGE, debug=given["debug"]):
        plan = plan_unmix(list(inputs), given["output"], _options(given), **modes)
        if given["explain"] or given["explain_for"]:
            for explained in explain_many(plan, given["explain_for"]):
                print_explained(console, *explained)
            return 0
        click.get_current_context().with_resource(prepared_output(plan.out, **modes))
    show, told = partial(print_outcomes, out=plan.out), told_of_spectra(spectra_condition(plan.options))
    return run_plan(console, given, plan, work_of(plan), show, told=told, unit="images")


def _options(given: dict[str, Any]) -> UnmixOptions:
    from xcorr_app.batch.unmix.options import UnmixOptions
    from xcorr_app.filtering.kernel_names import kernel_of
    from xcorr_app.io import Limits

    same = ("matrix", "spectra", "stain", "channel_axis", "from_log", "white", "clip", "dtype", "device", "layout")
    return UnmixOptions(
        limits=Limits(max_pixels=given["max_pixels"]),
        kernel=kernel_of(given["kernel"], given["kernel_options"]),
        **{name: given[name] for name in same},
    )
