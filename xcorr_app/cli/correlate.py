"""``xcorr correlate``: two files in; their correlation planes, or the peaks of them, out."""

import sys
from pathlib import Path

from xcorr_app.batch.correlate.options import CorrelateOptions
from xcorr_app.cli import options as cli_options
from xcorr_app.cli.process import SOMETHING_FAILED, WRONG_USAGE, one_line_failures


@cli_options.command("correlate", CorrelateOptions, cli_options.argument("left"), cli_options.argument("right"))
def command(options: CorrelateOptions, left: Path, right: Path) -> int:
    """Cross-correlate images: write the plane, print its peak.

    LEFT and RIGHT are image or .npy files of one image or a stack. A peak at (dy, dx) means that
    LEFT shows RIGHT displaced by dy rows down and dx columns right: the shift to add to RIGHT to land on LEFT.

    \b
    one-to-one   1 left,  1 right        plane (ny, nx)
    one-to-many  1 left,  M right        planes (M, ny, nx)
    n-to-mn      N left,  N x M right    planes (N, M, ny, nx): each left with its own M right
    n-to-m       N left,  M right        planes (N, M, ny, nx): every left with every right

    --peaks writes a table instead: shift dy, dx, score (or plain sum) and ratio to the second peak of every pair.

    The .tif is an ImageJ stack whose description gives, in JSON, the shift of the first element. Exit
    code: 0 all good, 1 a plane has no peak or differs from the FFT reference, 2 wrong usage.

    \b
    Examples:
      xcorr correlate left.tif right.tif -o plane.tif
      xcorr correlate reference.tif movie.tif -o shifts.csv --form one-to-many -m 16 --peaks
      xcorr correlate a.npy b.npy -o sums.npy --form n-to-m --normalization none --engine direct
    """
    from xcorr_app.batch.correlate.plan import plan_correlation
    from xcorr_app.batch.correlate.run import run_correlation
    from xcorr_app.cli.printing.peak_table import failures_of, print_operands, print_peaks, print_verdict
    from xcorr_app.cli.printing.progress import display_for
    from xcorr_app.cli.printing.tables import console_for, print_decision, print_failures

    console = console_for(sys.stdout)
    with one_line_failures(WRONG_USAGE, debug=options.debug):
        plan = plan_correlation(left, right, options.output or Path(), options)
        if options.explain:
            print_decision(console, plan.out.name, plan.decision())
            return 0
    with one_line_failures(SOMETHING_FAILED, debug=options.debug):
        if not options.quiet:
            print_operands(console, plan, cli_options.device_note(plan.device, options))
        with display_for(console, quiet=options.quiet, unit="planes") as watch:
            planes = run_correlation(plan, watch(plan.out.name))
        if options.quiet:
            print_failures(failures_of(planes))
        else:
            print_peaks(console, planes, every=options.verbose, ratio=options.peaks)
            print_verdict(console, plan, planes)
    return SOMETHING_FAILED if failures_of(planes) else 0
