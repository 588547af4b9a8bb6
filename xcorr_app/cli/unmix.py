"""``xcorr unmix``: a file with channels in; mixed channels out."""

from __future__ import annotations

import glob
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from xcorr_app.batch.unmix.options import UnmixOptions
from xcorr_app.cli import options as cli_options
from xcorr_app.cli.failures import SOMETHING_FAILED, WRONG_USAGE, one_line_failures

if TYPE_CHECKING:
    pass


@cli_options.command("unmix", UnmixOptions, cli_options.inputs_argument())
def command(options: UnmixOptions, inputs: tuple[Path, ...]) -> int:
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
      xcorr unmix 'SLIDES/*.png' -o out --stain he
      xcorr unmix cells.ome.tif -o pure.ome.tif --spectra spectra.csv --clip
    """
    if _is_one_file(inputs):
        return _unmix_file(inputs[0], options)
    from xcorr_app.batch.unmix.run import Unmix
    from xcorr_app.batch.unmix.stack import spectra_condition
    from xcorr_app.cli.printing.unmix_table import print_mixed, told_of_spectra
    from xcorr_app.cli.stack_run import run_command

    return run_command(
        Unmix,
        inputs,
        options,
        print_mixed,
        remarks=lambda plan: told_of_spectra(spectra_condition(plan.options)),
        unit="images",
    )


def _is_one_file(inputs: tuple[Path, ...]) -> bool:
    path = inputs[0]
    return len(inputs) == 1 and not path.is_dir() and (path.exists() or not glob.has_magic(str(path)))


def _unmix_file(path: Path, options: UnmixOptions) -> int:
    if options.resume:
        raise click.UsageError("--resume is for several files; a single file is written whole or not at all")
    from xcorr_app.batch.unmix.stack import decision_of, plan_file, run_unmix
    from xcorr_app.cli.printing.progress import display_for
    from xcorr_app.cli.printing.tables import console_for, print_decision, print_timings
    from xcorr_app.cli.printing.unmix_table import print_plan, print_result

    console = console_for(sys.stdout)
    with one_line_failures(WRONG_USAGE, debug=options.debug):
        plan = plan_file(path, options.output or Path(), options)
        options.check_device(plan.device)
        if options.explain or options.explain_for:
            print_decision(console, plan.out.name, decision_of(plan))
            return 0
    with one_line_failures(SOMETHING_FAILED, debug=options.debug):
        if not options.quiet:
            print_plan(console, plan, cli_options.device_note(plan.device, options))
        resources = options.resources()
        with display_for(console, quiet=options.quiet, unit="images") as watch:
            result = run_unmix(plan, watch(plan.out.name), resources)
        if not options.quiet:
            print_result(console, plan, result)
        if options.timings:
            print_timings(console, resources.stages)
    return 0
