"""``xcorr apply``: stacks moved by shifts that were measured on others."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from xcorr_app.cli import choices, options, values
from xcorr_app.cli.failures import WRONG_USAGE, one_line_failures
from xcorr_app.cli.help import GroupedCommand

_SHOWN = {
    "Results": ("output", "interpolation", "border", "crop", "resume", "overwrite"),
    "Shifts": ("missing", "invert", "scale"),
}
"""Options that ``--help`` shows."""


@click.command("apply", cls=GroupedCommand, groups=_SHOWN)
@click.argument("shifts", metavar="SHIFTS", type=values.PATH)
@click.argument("inputs", metavar="INPUT...", nargs=-1, required=True, type=values.PATH)
@options.output("Folder for the results.")
@click.option(
    "--match",
    type=click.Choice(("auto", "number", "name")),
    default="auto",
    show_default=True,
    help="How lines of the table find their frames: by number, or by file name where each frame is a file; auto goes "
    "by name where the names agree.",
)
@click.option(
    "--missing",
    type=click.Choice(("refuse", "interpolate")),
    default="refuse",
    show_default=True,
    help="What becomes of frames that the table lacks: the stack fails and names them, or their shifts are "
    "interpolated between their neighbours.",
)
@click.option("--invert", is_flag=True, help="Undo the shifts: move by minus what the table says.")
@click.option(
    "--scale", type=float, default=1.0, show_default=True, help="Multiply the shifts: 0.5 for a copy binned 2 x 2."
)
@click.option(
    "--interpolation",
    type=click.Choice(choices.INTERPOLATIONS),
    default="linear",
    show_default=True,
    help="How values between pixels are computed.",
)
@click.option(
    "--border",
    type=click.Choice(choices.BORDERS),
    default="constant",
    show_default=True,
    help="Beyond the frame: zeros, the nearest pixel, or cut to what every frame covers.",
)
@click.option("--crop", is_flag=True, help="Short for --border crop.")
@click.option(
    "--axis", type=click.Choice(("T", "Z")), help="Axis of the frames.  [default: T, or Z where there is no T]"
)
@options.device
@options.channel(
    "Read one channel alone: R, G, B or gray of colour images, or a number counted from 0.  [default: all]"
)
@options.compression
@options.running
@options.layout
@options.max_pixels("Refuse images that declare more pixels than this.")
@options.resume
@options.overwrite("Replace results in a folder that is not empty.")
@options.quiet
@options.debug
@click.pass_context
def command(ctx: click.Context, /, shifts: Path, inputs: tuple[Path, ...], **given: Any) -> None:
    """Move stacks by known shifts: other channels, cameras, raw data.

    SHIFTS is a table with columns dy and dx (shifts.csv of xcorr align, or your own), a .npy array of (frames, 2),
    the motion.csv or motion.npz of xcorr align --motion, or the output folder of xcorr align, where each stack has
    that of the input of its name; of several of one name, that of the same file or of a folder of the same name.
    All planes of a frame move alike; a frame that the table leaves out is left out. Each stack gets
    OUT/NAME/NAME_aligned.tif with its type, axes and calibration; the run gets OUT/run.json. Exit code: 0 all good,
    1 something failed, 2 wrong usage.

    \b
    Examples:
      xcorr apply out/green/shifts.csv red.tif -o out_red
      xcorr apply out RAW_FOLDER -o out_raw --interpolation cubic
      xcorr apply out/green/motion.npz red.tif -o out_red
      xcorr apply drift.csv binned.tif -o out --scale 0.5 --crop
    """
    options.check_modes(given)
    from xcorr_app.batch.apply.options import ApplyOptions
    from xcorr_app.batch.apply.run import plan_apply, work_of
    from xcorr_app.cli.memory import keep_freed_memory
    from xcorr_app.cli.printing.apply_table import print_applied
    from xcorr_app.cli.printing.tables import console_for
    from xcorr_app.cli.stack_run import planes_of, run_plan
    from xcorr_app.io import Limits
    from xcorr_app.pipeline.output import prepared_output

    console = console_for(sys.stdout)
    keep_freed_memory()
    modes = {"resume": given["resume"], "overwrite": given["overwrite"]}
    same = ("match", "missing", "invert", "scale", "interpolation", "axis", "device", "layout", "channel")
    with one_line_failures(WRONG_USAGE, debug=given["debug"]):
        asked = ApplyOptions(
            shifts=shifts,
            border="crop" if given["crop"] else given["border"],
            limits=Limits(max_pixels=given["max_pixels"]),
            **{name: given[name] for name in same},
        )
        plan = plan_apply(list(inputs), given["output"], asked, **modes)
        ctx.with_resource(prepared_output(plan.out, **modes))
    ctx.exit(run_plan(console, given, plan, work_of(plan), print_applied, counted=planes_of))
