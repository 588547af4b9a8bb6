"""``xcorr align``: a folder of stacks in; registered stacks, shifts and a report out."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from xcorr_app.cli import choices, options
from xcorr_app.cli.failures import SOMETHING_FAILED, WRONG_USAGE, one_line_failures
from xcorr_app.cli.help import GroupedCommand

if TYPE_CHECKING:
    from xcorr_app.batch.align.options import AlignOptions

_SHOWN = {
    "Results": ("output", "interpolation", "border", "resume", "overwrite"),
    "Measuring": ("max_shift", "reference", "smooth_time", "align_channel", "device"),
}
"""Options that ``--help`` shows."""


@click.command("align", cls=GroupedCommand, groups=_SHOWN)
@click.argument("inputs", metavar="INPUT...", nargs=-1, required=True, type=options.PATH)
@options.output("Folder for the results.")
@click.option(
    "--reference",
    type=options.REFERENCE,
    default="first",
    show_default=True,
    help="What frames are compared with; mean, median and template exclude the frame being measured. For series whose "
    "look changes: previous; rolling:N, the mean of the last N aligned frames; pairs:K, each of the K frames before, "
    "placed by robust least squares.",
)
@click.option(
    "--smooth-time",
    type=click.IntRange(1, choices.MAX_SMOOTH_TIME),
    default=1,
    show_default=True,
    help="Average so many frames around each before measuring, for movies with few photons; what is written is not "
    "averaged.",
)
@options.max_shift("a quarter of the frame")
@options.normalization
@options.subpixel(
    "How the peak is located between whole pixels; icgn refines gaussian over the whole overlap, for clean, finely "
    "textured images.",
    choices.ALIGN_SUBPIXEL_METHODS,
)
@click.option(
    "--upsample",
    type=click.IntRange(1, 10_000),
    default=100,
    show_default=True,
    help="Grid points per pixel of --subpixel dft.",
)
@click.option(
    "--weighting",
    type=click.Choice(choices.WEIGHTINGS),
    default="auto",
    show_default=True,
    help="Weight frequencies by their signal-to-noise ratio where images are noisy.",
)
@click.option(
    "--prefilter",
    type=options.PREFILTER,
    help="Filter for measuring only: gaussian:S, highpass:S, dog:S1,S2, log:S, median:N, box:N, unsharp:S,AMOUNT, "
    "sobel or laplacian.",
)
@click.option(
    "--contrast",
    default="auto",
    show_default=True,
    help="none, local:S (every place has an equal say: less the mean and over the deviation around it, sigma S pixels) "
    "or auto; for measuring only.",
)
@click.option("--roi", type=options.ROI, help="Part of the frame that is measured.")
@click.option(
    "--axis", type=click.Choice(["T", "Z"]), help="Axis to align along.  [default: T, or Z where there is no T]"
)
@click.option(
    "--align-channel",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Channel that is measured; all channels are moved.",
)
@options.channel(
    "Read one channel alone: R, G, B or gray of colour images, or a number counted from 0.  [default: all; colour "
    "images are refused]"
)
@options.engine
@options.kernel_options
@options.device
@click.option(
    "--verify",
    type=options.VERIFY,
    default="all",
    show_default=True,
    help="Frames to check against the float64 FFT and the definition.",
)
@options.tolerance("Largest accepted difference from that check, in pixels.")
@click.option(
    "--min-score",
    type=float,
    default=choices.MIN_SCORE,
    show_default=True,
    help="Remark on frames below this fraction of the score that the noise allows.",
)
@click.option(
    "--max-sigma",
    type=float,
    default=choices.MAX_SIGMA,
    show_default=True,
    help="A shift with a larger standard error, in pixels, is flagged as uncertain.",
)
@options.min_overlap("Smallest fraction of the frame that must overlap.")
@click.option("--apply/--no-apply", default=True, help="Write the aligned stacks, or only measure.  [default: --apply]")
@click.option(
    "--doubtful",
    type=click.Choice(choices.DOUBTFUL),
    default="interpolate",
    show_default=True,
    help="Frames whose shift is not to be trusted: moved by what lies between trusted neighbours in time, moved as "
    "measured all the same, left in place, or dropped from the written stack.",
)
@click.option("--move-doubtful", is_flag=True, hidden=True, help="Older name of --doubtful apply.")
@click.option(
    "--interpolation",
    type=click.Choice(choices.INTERPOLATIONS),
    default="linear",
    show_default=True,
    help="How pixels are moved by fractions of a pixel.",
)
@click.option(
    "--border",
    type=click.Choice(choices.BORDERS),
    default="constant",
    show_default=True,
    help="What lies beyond the edge: zero, the edge pixel, or cropped away.",
)
@click.option(
    "--report",
    type=click.Choice(choices.REPORTS),
    default="full",
    show_default=True,
    help="The page that shows the run: full, quick (no pictures), or none.",
)
@options.running
@options.layout
@options.max_pixels("Refuse images that declare more pixels than this.")
@options.resume
@options.overwrite("Replace results in a folder that is not empty.")
@click.option("--dry-run", is_flag=True, help="Print what would be done; write nothing.")
@options.explain
@options.quiet
@options.verbose("Print every frame.")
@options.debug
@click.pass_context
def command(ctx: click.Context, /, inputs: tuple[Path, ...], **given: Any) -> None:
    """Align stacks: folders, files or globs of TIFF, LSM, PNG, BMP, JPEG or .npy images.

    Each stack gets OUT/NAME/shifts.csv and OUT/NAME/NAME_aligned.tif; the run gets OUT/report.html and
    OUT/run.json. Exit code: 0 all good, 1 something failed, was flagged as failed, or most frames of a stack could
    not be trusted, 2 wrong usage.

    \b
    Examples:
      xcorr align movie.ome.tif -o out --max-shift 20
      xcorr align FOLDER -o out --reference template --interpolation cubic
      xcorr align movie.tif -o out --reference pairs:4 --smooth-time 5
      xcorr align FOLDER -o out --no-apply --verify none
      xcorr align two_channels.tif -o out --align-channel 1 --device cuda
    """
    options.check_modes(given)
    from xcorr_app.gpu.runtime.select import begin_loading

    begin_loading(given["device"])
    from xcorr_app.batch.align.run import explain_align, plan_align, run_align
    from xcorr_app.cli.align_table import failures_of, print_frames, print_plan, print_results
    from xcorr_app.cli.memory import keep_freed_memory
    from xcorr_app.cli.progress import count_of, display_for
    from xcorr_app.cli.tables import console_for, print_decision, print_failures, print_found, print_pace, print_timings
    from xcorr_app.pipeline.output import prepare_output

    console = console_for(sys.stdout)
    keep_freed_memory()
    modes = {"resume": given["resume"], "overwrite": given["overwrite"]}
    with one_line_failures(WRONG_USAGE, debug=given["debug"]):
        plan = plan_align(list(inputs), given["output"], _options(given), **modes)
        if given["dry_run"]:
            print_plan(console, plan)
            return
        if given["explain"]:
            for name, decision in explain_align(plan):
                print_decision(console, name, decision)
            return
        prepare_output(plan.out, overwrite=given["overwrite"])
    with one_line_failures(SOMETHING_FAILED, debug=given["debug"]):
        if not given["quiet"]:
            print_found(console, plan.discovery, options.device_note(plan.device, given))
        resources = options.read_resources(given)
        halves = given["apply"] or given["report"] == "full"
        count = (
            None if given["quiet"] else count_of(plan.discovery, partial(_frames, axis=given["axis"]), halves=halves)
        )
        stages = resources.stages if given["timings"] else None
        with display_for(console, quiet=given["quiet"], count=count, stages=stages) as display:
            result = run_align(
                plan,
                resume=given["resume"],
                stop_at_defects=given["debug"],
                watcher=display.watch,
                resources=resources,
            )
        if given["verbose"]:
            for stack in result.report.stacks:
                print_frames(console, stack)
        if given["quiet"]:
            print_failures(failures_of(result))
        else:
            print_results(console, result)
        if given["timings"]:
            print_timings(console, result.run.stages)
        if given["timings"] or not given["quiet"]:
            print_pace(console, result.run.stages)
    ctx.exit(SOMETHING_FAILED if result.run.failed else 0)


def _frames(sizes: dict[str, int], axis: str | None) -> int:
    """How many frames a stack has, of which the sizes are known."""
    return sizes[axis] if axis else sizes["Z"] if sizes["T"] == 1 else sizes["T"]


def _options(given: dict[str, Any]) -> AlignOptions:
    from xcorr_app.batch.align.options import AlignOptions
    from xcorr_app.io import Limits
    from xcorr_app.registration.contrast import Contrast
    from xcorr_app.registration.prefilter import Prefilter
    from xcorr_app.registration.settings import Settings

    settings = Settings(
        max_shift=given["max_shift"],
        normalization=given["normalization"],
        subpixel=given["subpixel"],
        upsample=given["upsample"],
        weighting=given["weighting"],
        prefilter=given["prefilter"] or Prefilter(),
        contrast=Contrast.parse(given["contrast"]),
        roi=given["roi"],
        engine=given["engine"],
        kernel_options=options.read_kernel_options(given),
        min_overlap=given["min_overlap"],
        min_score=given["min_score"],
        tolerance=given["tolerance"],
        max_sigma=given["max_sigma"],
        smooth_time=given["smooth_time"],
    )
    same = ("reference", "device", "verify", "apply", "interpolation", "border", "layout", "axis", "channel", "report")
    return AlignOptions(
        settings=settings,
        doubtful="apply" if given["move_doubtful"] else given["doubtful"],
        align_channel=given["align_channel"],
        limits=Limits(max_pixels=given["max_pixels"]),
        **{name: given[name] for name in same},
    )
