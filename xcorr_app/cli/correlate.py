"""``xcorr correlate``: two files in; the correlation planes, and the peak of every plane, or the peaks alone, out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from xcorr_app.cli import choices, options, values
from xcorr_app.cli.failures import SOMETHING_FAILED, WRONG_USAGE, one_line_failures
from xcorr_app.cli.help import GroupedCommand

if TYPE_CHECKING:
    from xcorr_app.batch.correlate.plan import CorrelateOptions

_SHOWN = {
    "Results": ("output", "peaks", "overwrite"),
    "Measuring": ("form", "max_shift", "normalization", "subpixel", "channel", "device"),
}
"""Options that ``--help`` shows."""


@click.command("correlate", cls=GroupedCommand, groups=_SHOWN)
@click.argument("left", metavar="LEFT", type=values.PATH)
@click.argument("right", metavar="RIGHT", type=values.PATH)
@options.output("File for the planes: .tif (float32) or .npy; for --peaks .csv or .npz.")
@click.option(
    "--form",
    type=click.Choice(choices.FORMS),
    default="one-to-one",
    show_default=True,
    help="Which left image is correlated with which right one; n-to-mn gives each left its own group of rights.",
)
@click.option(
    "--peaks",
    is_flag=True,
    help="Find the shift, score and ratio of every pair alone; only the check by the FFT (--verify) makes planes.",
)
@options.max_shift("the full plane")
@options.normalization
@options.min_overlap("Smallest fraction of the smaller image that must overlap (zncc only); less is NaN.")
@options.subpixel("How the printed peak is located between whole pixels.")
@options.channel(
    "Channel to use from files with several, counted from 0, or R, G, B or gray of colour images.  [default: 0; colour "
    "images are refused]"
)
@options.engine
@options.kernel_options
@options.device
@click.option(
    "--verify/--no-verify",
    default=True,
    help="Compare every plane's peak with that of the float64 FFT.  [default: --verify]",
)
@options.tolerance("Largest accepted difference in that comparison, in pixels.")
@options.max_pixels("Refuse images that declare more pixels than this.")
@options.overwrite("Replace the output file if it exists.")
@options.explain
@options.quiet
@options.verbose("Print every plane, not only the first 20.")
@options.debug
@click.pass_context
def command(ctx: click.Context, /, left: Path, right: Path, **given: Any) -> None:
    """Cross-correlate images: write the plane, print its peak.

    LEFT and RIGHT are TIFF, LSM, PNG, BMP, JPEG or .npy files of one image or a stack. A peak at (dy, dx) means that
    LEFT shows RIGHT displaced by dy rows down and dx columns right: the shift to add to RIGHT to land on LEFT.

    \b
    one-to-one   1 left,  1 right        plane (ny, nx)
    one-to-many  1 left,  M right        planes (M, ny, nx)
    n-to-mn      N left,  N x M right    planes (N, M, ny, nx): each left with its own M right
    n-to-m       N left,  M right        planes (N, M, ny, nx): every left with every right

    --peaks writes a table instead: shift dy, dx, score (or plain sum) and ratio to the second peak of every pair. On a
    GPU kernels then find peaks as they sum.

    The .tif is an ImageJ stack (T is M, or T and Z are N and M) whose description gives, in JSON, the shift of the
    first element. Exit code: 0 all good, 1 a plane has no peak or differs from the FFT reference, 2 wrong usage.

    \b
    Examples:
      xcorr correlate left.tif right.tif -o plane.tif
      xcorr correlate reference.tif movie.tif -o planes.npy --form one-to-many --max-shift 16
      xcorr correlate reference.tif movie.tif -o shifts.csv --form one-to-many --max-shift 16 --peaks
      xcorr correlate a.npy b.npy -o sums.npy --form n-to-m --normalization none --engine direct
    """
    from xcorr_app.batch.correlate.plan import plan_correlation
    from xcorr_app.batch.correlate.run import run_correlation
    from xcorr_app.batch.decisions import decide_correlate
    from xcorr_app.cli.printing.peak_table import failures_of, print_operands, print_peaks, print_verdict
    from xcorr_app.cli.printing.progress import display_for
    from xcorr_app.cli.printing.tables import console_for, print_decision, print_failures

    console = console_for(sys.stdout)
    with one_line_failures(WRONG_USAGE, debug=given["debug"]):
        plan = plan_correlation(left, right, given["output"], _options(given), overwrite=given["overwrite"])
        if given["explain"]:
            print_decision(console, plan.out.name, decide_correlate(plan))
            return
    with one_line_failures(SOMETHING_FAILED, debug=given["debug"]):
        if not given["quiet"]:
            print_operands(console, plan, options.device_note(plan.device, given))
        with display_for(console, quiet=given["quiet"], unit="planes") as display:
            result = run_correlation(plan, display.watch(plan.out.name))
        if given["quiet"]:
            print_failures(failures_of(result))
        else:
            print_peaks(console, result, every=given["verbose"], ratio=given["peaks"])
            print_verdict(console, plan, result)
    ctx.exit(SOMETHING_FAILED if result.problems else 0)


def _options(given: dict[str, Any]) -> CorrelateOptions:
    from xcorr_app.batch.correlate.plan import CorrelateOptions
    from xcorr_app.io import Limits
    from xcorr_app.registration.settings import Settings

    of_settings = ("max_shift", "normalization", "subpixel", "engine", "min_overlap", "tolerance")
    same = ("form", "device", "verify", "peaks", "channel")
    return CorrelateOptions(
        settings=Settings(
            **{name: given[name] for name in of_settings}, kernel_options=options.read_kernel_options(given)
        ),
        limits=Limits(max_pixels=given["max_pixels"]),
        **{name: given[name] for name in same},
    )
