"""``xcorr field``: displacement on a grid, with strain and vorticity."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from xcorr_app.cli import options, values
from xcorr_app.cli.failures import WRONG_USAGE, one_line_failures
from xcorr_app.cli.help import GroupedCommand

_SHOWN = {
    "Results": ("output", "formats", "pictures", "resume", "overwrite"),
    "Measuring": ("window", "step", "max_displacement", "refine", "reference", "mask", "device"),
}


@click.command("field", cls=GroupedCommand, groups=_SHOWN)
@click.argument("inputs", metavar="A B | STACK...", nargs=-1, required=True, type=values.PATH)
@options.output("Folder for the results.")
@click.option("--window", type=int, default=32, show_default=True, help="Rows and columns of a window, in pixels.")
@click.option("--step", type=int, default=16, show_default=True, help="Pixels, at most, from one window to the next.")
@click.option(
    "--passes",
    type=click.IntRange(1, 20),
    default=3,
    show_default=True,
    help="The first compares windows of twice the size; those that follow deform the windows by what was found.",
)
@click.option(
    "--max-displacement", type=float, help="Largest displacement in pixels along each axis.  [default: half a window]"
)
@click.option(
    "--refine",
    type=click.Choice(("none", "icgn")),
    default="none",
    show_default=True,
    help="Last step: icgn is inverse-compositional Gauss-Newton with first-order shape functions, for strain on clean "
    "speckle.",
)
@click.option(
    "--median-threshold",
    type=float,
    default=3.0,
    show_default=True,
    help="Residual of the normalised median test above which a vector is interpolated from its neighbours.",
)
@click.option("--mask", type=values.PATH, help="Image that is nonzero where pixels count.  [default: all count]")
@click.option(
    "--reference",
    type=click.Choice(("first", "previous")),
    default="first",
    show_default=True,
    help="What each frame of a stack is compared with.",
)
@click.option(
    "--format",
    "formats",
    type=click.Choice(("csv", "vtk", "nc", "npz", "ome-tiff")),
    multiple=True,
    default=("csv",),
    show_default=True,
    help="Files of each field: table, VTK legacy text, NetCDF 3, NumPy archive, OME-TIFF. May be given several times.",
)
@click.option(
    "--pictures",
    type=click.Choice(("png", "svg", "none")),
    default="png",
    show_default=True,
    help="Draw arrows, magnitude, strains and vorticity.",
)
@click.option(
    "--axis", type=click.Choice(("T", "Z")), help="Axis of the frames.  [default: T, or Z where there is no T]"
)
@options.device
@options.channel(
    "Read one channel: R, G, B or gray of colour images, or a number counted from 0.  [default: the first]"
)
@options.running
@options.layout
@options.max_pixels("Refuse images that declare more pixels than this.")
@options.resume
@options.overwrite("Replace results in a folder that is not empty.")
@options.quiet
@options.debug
@click.pass_context
def command(ctx: click.Context, /, inputs: tuple[Path, ...], **given: Any) -> None:
    """Measure the displacement of a pattern on a grid: flow (PIV), strain (DIC), deformation.

    Two images A and B, or stacks whose frames are compared with the first. Each gets OUT/NAME/field.csv (of stacks
    field_0001.csv, ...) with displacement, standard error, strain and vorticity of every point, and pictures; two
    images go by the name of B. The run gets OUT/run.json. A displacement of (dy, dx) says that what A shows lies dy
    rows lower and dx columns further right in B. Exit code: 0 all good, 1 something failed, 2 wrong usage.

    \b
    Examples:
      xcorr field a.bmp b.bmp -o out
      xcorr field reference.tif loaded.tif -o out --refine icgn --format csv --format vtk
      xcorr field movie.tif -o out --reference previous --window 64 --step 32
    """
    options.check_modes(given)
    from xcorr_app.batch.field.options import FieldOptions
    from xcorr_app.batch.field.run import plan_field, work_of
    from xcorr_app.cli.memory import keep_freed_memory
    from xcorr_app.cli.printing.field_table import print_fields
    from xcorr_app.cli.printing.tables import console_for
    from xcorr_app.cli.stack_run import run_plan
    from xcorr_app.io import Limits
    from xcorr_app.pipeline.output import prepared_output

    console = console_for(sys.stdout)
    keep_freed_memory()
    modes = {"resume": given["resume"], "overwrite": given["overwrite"]}
    same = ("window", "step", "passes", "max_displacement", "median_threshold", "refine", "mask", "reference")
    more = ("formats", "pictures", "device", "layout", "axis", "channel")
    with one_line_failures(WRONG_USAGE, debug=given["debug"]):
        asked = FieldOptions(
            limits=Limits(max_pixels=given["max_pixels"]), **{name: given[name] for name in (*same, *more)}
        )
        plan = plan_field(list(inputs), given["output"], asked, **modes)
        ctx.with_resource(prepared_output(plan.out, **modes))
    ctx.exit(run_plan(console, given, plan, work_of(plan), print_fields, counted=_frames))


def _frames(sizes: dict[str, int]) -> int:
    return max(sizes["T"], sizes["Z"])
