"""``xcorr correlate``: two files in; the correlation planes, and the peak of every plane, out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from xcorr_app.batch.correlate import run_correlation
from xcorr_app.batch.correlation_plan import CorrelateOptions, plan_correlation
from xcorr_app.cli import options as values
from xcorr_app.cli.failures import SOMETHING_FAILED, WRONG_USAGE, one_line_failures
from xcorr_app.cli.peak_table import print_operands, print_peaks, print_verdict
from xcorr_app.cli.progress import display_for
from xcorr_app.cli.tables import console_for
from xcorr_app.correlation.engines import ENGINES
from xcorr_app.correlation.forms import FORMS
from xcorr_app.correlation.plane import DEFAULT_MIN_OVERLAP, NORMALIZATIONS
from xcorr_app.correlation.subpixel import METHODS
from xcorr_app.io import Limits
from xcorr_app.registration.settings import DEFAULT_TOLERANCE, Settings


@click.command()
@click.argument("left", metavar="LEFT", type=values.PATH)
@click.argument("right", metavar="RIGHT", type=values.PATH)
@click.option("-o", "--output", required=True, type=values.PATH, help="File for the planes: .tif (float32) or .npy.")
@click.option(
    "--form",
    type=click.Choice(FORMS),
    default="one-to-one",
    show_default=True,
    help="Which left image meets which right one; n-to-mn gives each left its own share of the right ones.",
)
@click.option(
    "--max-shift", type=values.MAX_SHIFT, help="Largest shift in pixels, or rows,columns.  [default: the full plane]"
)
@click.option(
    "--normalization",
    type=click.Choice(NORMALIZATIONS),
    default="zncc",
    show_default=True,
    help="zncc: zero-mean and normalised over the true overlap; none: plain sums; phase: phase correlation.",
)
@click.option(
    "--min-overlap",
    type=float,
    default=DEFAULT_MIN_OVERLAP,
    show_default=True,
    help="Smallest fraction of the smaller image that must overlap (zncc only); less is NaN.",
)
@click.option(
    "--subpixel",
    type=click.Choice(METHODS),
    default="gaussian",
    show_default=True,
    help="How the printed peak is located between whole pixels.",
)
@click.option(
    "--channel",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Channel that is taken from files with several.",
)
@click.option(
    "--engine",
    type=click.Choice(["auto", *ENGINES]),
    default="auto",
    show_default=True,
    help="What computes the correlation; `xcorr env` says which can run.",
)
@values.kernel_options
@click.option(
    "--device",
    default="auto",
    show_default=True,
    metavar="auto|cpu|cuda[:N]",
    help="Where to compute; auto takes a GPU where there is one that works.",
)
@click.option(
    "--verify/--no-verify",
    default=True,
    help="Compare every plane's peak with that of the float64 FFT.  [default: --verify]",
)
@click.option(
    "--tolerance",
    type=float,
    default=DEFAULT_TOLERANCE,
    show_default=True,
    help="Largest accepted difference of that comparison, in pixels.",
)
@click.option(
    "--max-pixels",
    type=click.IntRange(1),
    default=Limits().max_pixels,
    show_default=True,
    help="Refuse images that declare more pixels.",
)
@click.option("--overwrite", is_flag=True, help="Replace the output file if it exists.")
@click.option("-q", "--quiet", is_flag=True, help="Print only the results.")
@click.option("-v", "--verbose", is_flag=True, help="Print every plane, not only the first 20.")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.pass_context
def correlate(ctx: click.Context, /, left: Path, right: Path, **given: Any) -> None:
    """Cross-correlate images: write the plane, print its peak.

    LEFT and RIGHT are TIFF, PNG or .npy files of one image or a stack. A peak at (dy, dx) means that LEFT shows
    RIGHT displaced by dy rows down and dx columns right: the shift to add to RIGHT to land on LEFT.

    \b
    one-to-one   1 left,  1 right        plane (ny, nx)
    one-to-many  1 left,  M right        planes (M, ny, nx)
    n-to-mn      N left,  N x M right    planes (N, M, ny, nx): each left with its own M
    n-to-m       N left,  M right        planes (N, M, ny, nx): every left with every right

    The .tif is an ImageJ stack (T is M, or T and Z are N and M) whose description says in JSON which shift is the
    first element's. Exit code: 0 all good, 1 a plane has no peak or not the peak of the FFT reference, 2 wrong usage.

    \b
    Examples:
      xcorr correlate left.tif right.tif -o plane.tif
      xcorr correlate reference.tif movie.tif -o planes.npy --form one-to-many --max-shift 16
      xcorr correlate a.npy b.npy -o sums.npy --form n-to-m --normalization none --engine warp-shuffle
    """
    console = console_for(sys.stdout)
    with one_line_failures(WRONG_USAGE, debug=given["debug"]):
        plan = plan_correlation(left, right, given["output"], _options(given), overwrite=given["overwrite"])
    with one_line_failures(SOMETHING_FAILED, debug=given["debug"]):
        if not given["quiet"]:
            print_operands(console, plan)
        with display_for(console, quiet=given["quiet"]) as display:
            result = run_correlation(plan, display.watch(plan.out.name))
        print_peaks(console, result, every=given["verbose"])
        print_verdict(console, plan, result)
    ctx.exit(SOMETHING_FAILED if result.problems else 0)


def _options(given: dict[str, Any]) -> CorrelateOptions:
    of_settings = ("max_shift", "normalization", "subpixel", "engine", "min_overlap", "tolerance")
    same = ("form", "device", "verify", "channel")
    return CorrelateOptions(
        settings=Settings(
            **{name: given[name] for name in of_settings}, kernel_options=values.read_kernel_options(given)
        ),
        limits=Limits(max_pixels=given["max_pixels"]),
        **{name: given[name] for name in same},
    )
