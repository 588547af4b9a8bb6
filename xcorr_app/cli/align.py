"""``xcorr align``: a folder of stacks in; registered stacks, shifts and a report out."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from xcorr_app.cli import choices, options, values
from xcorr_app.cli.failures import SOMETHING_FAILED, WRONG_USAGE, one_line_failures
from xcorr_app.cli.help import GroupedCommand

if TYPE_CHECKING:
    from xcorr_app.batch.align.options import AlignOptions
    from xcorr_app.registration.masked.rules import Masks

_SHOWN = {
    "Results": ("output", "interpolation", "resume", "overwrite"),
    "Measuring": ("max_shift", "reference", "motion", "smooth_time", "align_channel", "device"),
}
"""Options that ``--help`` shows."""


@click.command("align", cls=GroupedCommand, groups=_SHOWN)
@click.argument("inputs", metavar="INPUT...", nargs=-1, required=True, type=values.PATH)
@options.output("Folder for the results.")
@click.option(
    "--reference",
    type=values.REFERENCE,
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
    "How the peak is located between whole pixels; icgn and phase refine gaussian over the whole overlap: icgn for "
    "clean images, phase for fine textures (speckle), near the least possible error.",
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
    type=values.PREFILTER,
    help="Filter for measuring only: gaussian:S, highpass:S, dog:S1,S2, log:S, median:N, box:N, unsharp:S,AMOUNT, "
    "sobel or laplacian.",
)
@click.option(
    "--contrast",
    default="auto",
    show_default=True,
    help="none, local:S (pixels minus the mean, over the standard deviation, of what is around them: sigma S pixels) "
    "or auto; for measuring only.",
)
@click.option("--roi", type=values.ROI, help="Part of the frame that is measured.")
@click.option(
    "--mask",
    type=values.MASK,
    help="Pixels that count: those that are nonzero, finite, not saturated, above V, or nonzero in an image or stack.",
)
@click.option(
    "--mask-moves", is_flag=True, help="The image of --mask belongs to the reference and moves with the scene."
)
@click.option("--flat", type=values.PATH, help="Image of an even field, by which frames are divided for measuring.")
@click.option("--dark", type=values.PATH, help="Image without light, which is subtracted from frames for measuring.")
@click.option(
    "--background",
    type=values.BACKGROUND,
    help="What stands still and is subtracted for measuring: the median over time, or an image.",
)
@click.option("--correct", is_flag=True, help="Write frames corrected by --flat, --dark and --background, too.")
@click.option(
    "--motion",
    type=click.Choice(choices.MOTIONS),
    default="translation",
    show_default=True,
    help="What a frame may do: be shifted, turned too (rigid), turned and scaled (similarity), any linear motion, or "
    "bend (patches).",
)
@click.option(
    "--patch", type=click.IntRange(16), default=128, show_default=True, help="Rows and columns of a patch in pixels."
)
@click.option(
    "--patch-overlap",
    type=click.FloatRange(0, 1, max_open=True),
    default=0.5,
    show_default=True,
    help="Fraction of a patch that its neighbour shares, at least.",
)
@click.option(
    "--max-deviation",
    type=click.FloatRange(0, min_open=True),
    default=6.0,
    show_default=True,
    help="Pixels by which a patch may be off the shift of its frame.",
)
@click.option("--field-csv", is_flag=True, help="Write the field of --motion patches as OUT/NAME/field.csv, too.")
@click.option("--field-ome-tiff", is_flag=True, help="Write the field of --motion patches as OUT/NAME/field.ome.tif.")
@click.option(
    "--axis", type=click.Choice(["T", "Z"]), help="Axis to align along.  [default: T, or Z where there is no T]"
)
@click.option(
    "--align-channel",
    type=values.CHANNELS,
    default="0",
    show_default=True,
    help="Channel that is measured, several such as 0,2, or sum: all of them, averaged by their standard errors; all "
    "channels are moved alike.",
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
    type=values.VERIFY,
    default="auto",
    show_default=True,
    help="Frames to check against the float64 FFT and the definition; auto: all on a GPU, 32 of a stack on a CPU, "
    "which measures by an FFT itself.",
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
    help="A shift with a larger standard error, in pixels, is flagged as uncertain.  [default: 0.5, or 2 % of the "
    "range of the stack's shifts where that is more]",
)
@options.min_overlap(
    "Smallest fraction of the frame that must overlap; with --mask, of the most pixels that count in both at any shift."
    "  [default: 0.25; with --mask 0.1]",
    None,
)
@click.option("--apply/--no-apply", default=True, help="Write the aligned stacks, or only measure.  [default: --apply]")
@click.option(
    "--doubtful",
    type=click.Choice(choices.DOUBTFUL),
    default="interpolate",
    show_default=True,
    help="Frames whose shift cannot be trusted: moved by what is expected to be least wrong, of what was measured and "
    "the shift interpolated between the frames around; moved as measured all the same; left in place; or dropped from "
    "the written stack.",
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
    "--format",
    type=click.Choice(choices.FORMATS),
    default="same",
    show_default=True,
    help="Format of the aligned stacks: same is OME-Zarr for OME-Zarr and TIFF for all else.",
)
@click.option(
    "--pyramid",
    type=click.IntRange(1, 12),
    default=1,
    show_default=True,
    help="Levels of resolution in OME-Zarr, each half the size of the one before, for viewers.",
)
@click.option(
    "--report",
    type=click.Choice(choices.REPORTS),
    default="full",
    show_default=True,
    help="The page that shows the run: full; quick, without pictures and figures of before and after; or none.",
)
@click.option(
    "--watch",
    is_flag=True,
    help="Wait in one folder for stacks, and align each as soon as its file is complete, until Ctrl-C; single frames "
    "are measured as they come, and aligned in the end.",
)
@options.compression
@options.running
@options.cluster
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
    """Align stacks: folders, files or globs of TIFF, OME-Zarr, PNG, ND2, CZI, LIF, MRC, HDF5 and other images.

    Each stack gets OUT/NAME/shifts.csv and OUT/NAME/NAME_aligned.tif (or .ome.zarr); the run gets OUT/report.html and
    OUT/run.json. Exit code: 0 all good, 1 something failed, was flagged as failed, or nothing better than
    the input could be made of a stack, 2 wrong usage.

    \b
    Examples:
      xcorr align movie.ome.tif -o out --max-shift 20
      xcorr align FOLDER -o out --reference template --interpolation cubic
      xcorr align movie.tif -o out --reference pairs:4 --smooth-time 5
      xcorr align turning.tif -o out --motion rigid --interpolation cubic
      xcorr align two_photon.tif -o out --motion patches --reference mean
      xcorr align FOLDER -o out --no-apply --verify none
      xcorr align movie.ome.zarr -o out --pyramid 3
      xcorr align FOLDER -o out --watch
      xcorr align two_channels.tif -o out --align-channel 1 --device cuda
    """
    options.check_modes(given)
    if given["watch"] and (given["dry_run"] or given["explain"] or given["cluster"]):
        raise click.UsageError("--watch waits for what is not there yet: leave --dry-run, --explain and --cluster out")
    from xcorr_app.gpu.runtime.select import begin_loading

    if given["cluster"] is None:
        begin_loading(given["device"])
    from xcorr_app.batch.align.run import align_device, explain_align, plan_align, run_align
    from xcorr_app.cli.memory import keep_freed_memory
    from xcorr_app.cli.printing.align_table import failures_of, print_frames, print_plan, print_results
    from xcorr_app.cli.printing.progress import count_of, display_for
    from xcorr_app.cli.printing.tables import (
        console_for,
        print_decision,
        print_failures,
        print_found,
        print_pace,
        print_timings,
    )
    from xcorr_app.cli.watching import arrivals_of, watching
    from xcorr_app.io import Discovery
    from xcorr_app.pipeline.output import prepared_output

    console, cluster = console_for(sys.stdout), given["cluster"]
    sources, out = [options.absolute(cluster, path) for path in inputs], options.absolute(cluster, given["output"])
    keep_freed_memory()
    modes = {"resume": given["resume"], "overwrite": given["overwrite"]}
    with one_line_failures(WRONG_USAGE, debug=given["debug"]):
        found = Discovery("stacks", (), ()) if given["watch"] else None
        arrivals = arrivals_of(inputs, _options(given), quiet=given["quiet"]) if given["watch"] else None
        plan = plan_align(sources, out, _options(given), **modes, found=found, elsewhere=cluster is not None)
        if given["dry_run"]:
            print_plan(console, plan)
            return
        if given["explain"]:
            for name, decision in explain_align(plan):
                print_decision(console, name, decision)
            return
        click.get_current_context().with_resource(prepared_output(plan.out, **modes))
    with one_line_failures(SOMETHING_FAILED, debug=given["debug"]):
        if not given["quiet"] and arrivals is None:
            print_found(console, plan.discovery, options.device_note(plan.device, given))
        resources = options.read_resources(given)
        halves = given["apply"] or given["report"] == "full"
        frames = partial(_frames, axis=given["axis"])
        silent = given["quiet"] or arrivals is not None
        count = None if silent or cluster else count_of(plan.discovery, frames, halves=halves)
        shown: Any = {
            "quiet": silent,
            "count": count,
            "stages": resources.stages if given["timings"] else None,
            "unit": "stacks" if cluster else "frames",
        }
        with (
            options.workers_of(cluster, align_device) as elsewhere,
            nullcontext(plan) if arrivals is None else watching(plan, arrivals) as taken,
            display_for(console, **shown) as display,
        ):
            result = run_align(
                taken,
                resume=given["resume"],
                stop_at_defects=given["debug"],
                watcher=display.watch,
                resources=resources,
                elsewhere=elsewhere,
                timings=given["timings"],
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
            print_pace(console, result.run.stages)
    ctx.exit(SOMETHING_FAILED if result.run.failed else 0)


def _frames(sizes: dict[str, int], axis: str | None) -> int:
    """How many frames a stack has, of which the sizes are known."""
    return sizes[axis] if axis else sizes["Z"] if sizes["T"] == 1 else sizes["T"]


def _options(given: dict[str, Any]) -> AlignOptions:
    from xcorr_app.batch.align.options import AlignOptions
    from xcorr_app.io import Limits
    from xcorr_app.registration.patches.patch_fit import PatchOptions
    from xcorr_app.registration.settings import Settings
    from xcorr_app.registration.stack.contrast import Contrast
    from xcorr_app.registration.stack.prefilter import Prefilter

    masks = _masks(given)
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
        min_overlap=Settings.overlap(given["min_overlap"], masks),
        min_score=given["min_score"],
        tolerance=given["tolerance"],
        max_sigma=given["max_sigma"],
        smooth_time=given["smooth_time"],
        masks=masks,
    )
    same = (
        "reference",
        "device",
        "verify",
        "apply",
        "interpolation",
        "border",
        "layout",
        "axis",
        "channel",
        "format",
        "report",
    )
    return AlignOptions(
        settings=settings,
        mask=given["mask"],
        flat=options.absolute(given["cluster"], given["flat"]),
        dark=options.absolute(given["cluster"], given["dark"]),
        background=options.absolute(given["cluster"], given["background"]),
        correct=given["correct"],
        motion=given["motion"],
        patches=PatchOptions(given["patch"], given["patch_overlap"], given["max_deviation"]),
        field_csv=given["field_csv"],
        field_ome_tiff=given["field_ome_tiff"],
        doubtful="apply" if given["move_doubtful"] else given["doubtful"],
        align_channel=given["align_channel"][0],
        more_channels=given["align_channel"][1],
        limits=Limits(max_pixels=given["max_pixels"]),
        **{name: options.absolute(given["cluster"], given[name]) for name in same},
    )


def _masks(given: dict[str, Any]) -> Masks | None:
    from xcorr_app.io import Limits, read_stack
    from xcorr_app.registration.masked.rules import Masks

    mask = given["mask"]
    if mask is None:
        if given["mask_moves"]:
            raise click.UsageError("--mask-moves goes with --mask FILE")
        return None
    if isinstance(mask, Path):
        mask = read_stack(mask, limits=Limits(max_pixels=given["max_pixels"])).data
    return Masks.of(mask, moves=given["mask_moves"])
