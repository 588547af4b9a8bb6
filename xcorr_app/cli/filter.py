"""``xcorr filter``: a folder of stacks in, the same stacks filtered out."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from xcorr_app.cli import choices, options, values
from xcorr_app.cli.failures import WRONG_USAGE, one_line_failures
from xcorr_app.cli.help import GroupedCommand

if TYPE_CHECKING:
    from xcorr_app.batch.filter.options import FilterOptions

_SHOWN = {
    "Filters": (*choices.FILTERS, "mode", "cval"),
    "Results": ("output", "dtype", "resume", "overwrite"),
}
"""Options that ``--help`` shows."""


@click.command("filter", cls=GroupedCommand, groups=_SHOWN)
@click.argument("inputs", metavar="INPUT...", nargs=-1, required=True, type=values.PATH)
@options.output("Folder for the results.")
@click.option("--gaussian", metavar="SIGMA", help="Smooth with a Gaussian; give two numbers for rows,columns.")
@click.option("--box", metavar="SIZE", help="Mean over SIZE x SIZE pixels; give two numbers for rows,columns.")
@click.option("--sobel", metavar="y|x", help="Gradient down the rows (y) or along the columns (x).")
@click.option("--laplacian", is_flag=True, help="Sum of the second differences along both axes.")
@click.option("--log", metavar="SIGMA", help="Laplacian of a Gaussian: blobs and edges of that size.")
@click.option("--dog", metavar="SIGMA,SIGMA", help="Difference of two Gaussians: the first minus the second.")
@click.option("--unsharp", metavar="SIGMA,AMOUNT", help="Sharpen: add AMOUNT times what a Gaussian removes.")
@click.option("--taps", metavar="FILE", help="Convolve with the numbers in a .npy, .csv or .txt file.")
@click.option(
    "--bank",
    metavar="NAME:ARGS",
    help=f"Correlate with many filters, one channel each, in floating point: {', '.join(choices.BANKS)} (lengths in "
    "pixels; gabor's waves are 4 px long at the first scale and longer by sqrt(2) at each further one), or a .npy file "
    "of (filters, rows, columns).",
)
@click.option(
    "--mode",
    type=click.Choice(choices.BOUNDARIES),
    default="reflect",
    show_default=True,
    help="What lies beyond the edge, as scipy.ndimage names it; valid leaves out the pixels that need it.",
)
@click.option("--cval", type=float, default=0.0, show_default=True, help="Value beyond the edge of --mode constant.")
@click.option(
    "--dtype",
    type=click.Choice(choices.FILTER_TYPES),
    help="Type of the result; same rounds integers and clips them to their range.  [default: same; float32 for sobel, "
    "laplacian, log and dog of integers]",
)
@click.option(
    "--engine",
    type=click.Choice(choices.FILTER_ENGINES),
    default="auto",
    show_default=True,
    help="What computes the result; auto takes the fastest that is exact enough. reuse needs a GPU, opencv and scipy "
    "the CPU.",
)
@click.option(
    "--kernel",
    type=click.Choice([*choices.FILTER_KERNELS, *choices.BANK_METHODS[1:]]),
    default="auto",
    show_default=True,
    help=f"A kernel by name; needs a GPU. {', '.join(choices.BANK_METHODS[1:])} are for --bank, the others for single "
    "filters: reuse has ring buffers of rows, exchange is column and row reuse as published, separable and banded "
    "(tensor cores) take filters of low rank, sliding wide Gaussians.",
)
@click.option(
    "--kernel-option",
    "kernel_options",
    metavar="NAME=VALUE",
    multiple=True,
    help="Option of --kernel exchange, as often as needed: rows (of a sub-block, 56 as published) and warps, numbers; "
    "column-reuse, row-reuse, shared-taps, share-last, edges-apart, yes or no.",
)
@click.option(
    "--stride",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Of --bank: pixels from one result to the next, down and across.",
)
@options.device
@options.channel(
    "Read one channel alone: R, G, B or gray of colour images, or a number counted from 0.  [default: all; colour "
    "images are refused]"
)
@options.compression
@options.running
@options.cluster
@options.layout
@options.max_pixels("Refuse images that declare more pixels than this.")
@options.resume
@options.overwrite("Replace results in a folder that is not empty.")
@options.explain
@options.quiet
@options.verbose("Name every plane that cannot be read.")
@options.debug
@click.pass_context
def command(ctx: click.Context, /, inputs: tuple[Path, ...], **given: Any) -> None:
    """Filter every plane of stacks: folders, files or globs of TIFF, LSM, PNG, BMP, JPEG or .npy images.

    Give one of the filters --gaussian, --box, --sobel, --laplacian, --log, --dog, --unsharp, --taps, --bank; lengths
    are in pixels. Images are uint8, uint16, int16, float32 or float64 (uint32 is refused: convert it first). Each
    stack gets OUT/NAME/NAME_filtered.tif with its axes, calibration and channels; the run gets OUT/run.json. Exit code:
    0 all good, 1 something failed, 2 wrong usage.

    \b
    Examples:
      xcorr filter movie.ome.tif -o out --gaussian 1.5
      xcorr filter FOLDER -o out --sobel y --dtype float32
      xcorr filter 'FOLDER/*.tif' -o out --taps taps.csv --mode constant --cval 100
      xcorr filter FOLDER -o out --gaussian 1.5 --cluster tcp://head:8786
      xcorr filter cells.tif -o out --bank gabor:8,4 --device cuda
      xcorr filter cells.tif -o out --bank leung-malik --stride 4 --kernel im2win
      xcorr filter cells.tif -o out --taps taps.csv --kernel exchange --kernel-option row-reuse=no --explain
    """
    options.check_modes(given)
    name, argument = _chosen(given)
    from xcorr_app.batch.filter.device import filter_device
    from xcorr_app.batch.filter.run import plan_filter, work_of
    from xcorr_app.cli.memory import keep_freed_memory
    from xcorr_app.cli.printing.filter_table import failures_of, print_filtered
    from xcorr_app.cli.printing.tables import console_for, print_decision
    from xcorr_app.cli.stack_run import planes_of, run_plan
    from xcorr_app.pipeline.output import prepared_output
    from xcorr_app.pipeline.run import explain_stacks

    console, cluster = console_for(sys.stdout), given["cluster"]
    sources, out = [options.absolute(cluster, path) for path in inputs], options.absolute(cluster, given["output"])
    keep_freed_memory()
    modes = {"resume": given["resume"], "overwrite": given["overwrite"]}
    with one_line_failures(WRONG_USAGE, debug=given["debug"]):
        asked = _options(name, argument, given)
        plan = plan_filter(sources, out, asked, **modes, elsewhere=cluster is not None)
        if given["explain"]:
            for of_stack, decision in explain_stacks(plan, work_of(plan)):
                print_decision(console, of_stack, decision)
            return
        ctx.with_resource(prepared_output(plan.out, **modes))
    code = run_plan(
        console,
        given,
        plan,
        work_of(plan),
        partial(print_filtered, every=given["verbose"]),
        failures=failures_of,
        counted=None if cluster else planes_of,
        unit="stacks" if cluster else "frames",
        workers=options.workers_of(cluster, filter_device),
    )
    ctx.exit(code)


def _chosen(given: dict[str, Any]) -> tuple[str, str]:
    """Name of the one filter that was asked for, and its value as written."""
    chosen = [name for name in choices.FILTERS if given[name] not in (None, False)]
    listed = ", ".join(f"--{name}" for name in (chosen or choices.FILTERS))
    if not chosen:
        raise click.UsageError(f"no filter was given: give one of {listed}")
    if len(chosen) > 1:
        raise click.UsageError(f"{listed}: give one filter; run the command again on its results for another")
    (name,) = chosen
    return name, "" if given[name] is True else given[name]


def _options(name: str, argument: str, given: dict[str, Any]) -> FilterOptions:
    from xcorr_app.batch.filter.choice import FilterChoice
    from xcorr_app.batch.filter.options import FilterOptions
    from xcorr_app.filtering.kernel_names import kernel_of
    from xcorr_app.io import Limits

    same = ("mode", "cval", "dtype", "engine", "device", "layout", "channel", "stride")
    return FilterOptions(
        choice=FilterChoice.parse(name, argument),
        kernel=kernel_of(given["kernel"], given["kernel_options"]),
        limits=Limits(max_pixels=given["max_pixels"]),
        **{option: given[option] for option in same},
    )
