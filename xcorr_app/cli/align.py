"""``xcorr align``: a folder of stacks in; registered stacks, shifts and a report out."""

from functools import partial
from pathlib import Path
from typing import Any

from xcorr_app.batch.align.options import AlignOptions
from xcorr_app.cli.options import command as new_command
from xcorr_app.cli.options import inputs_argument


def _begin_loading(given: dict[str, Any]) -> None:
    """Let what a device needs be loaded while what reads options is."""
    if given["cluster"] is None:
        from xcorr_app.gpu.runtime.select import begin_loading

        begin_loading(given["device"])


@new_command("align", AlignOptions, inputs_argument(), begin=_begin_loading)
def command(options: AlignOptions, inputs: tuple[Path, ...]) -> int:
    """Align stacks: folders, files or globs of TIFF, OME-Zarr, PNG, ND2, CZI, LIF, MRC, HDF5 and other images.

    Each stack gets OUT/NAME/shifts.csv and OUT/NAME/NAME_aligned.tif (or .ome.zarr); the run gets OUT/report.html and
    OUT/run.json. Exit code: 0 all good, 1 something failed, was flagged as failed, or could not be made better than
    the input, 2 wrong usage.

    \b
    Examples:
      xcorr align FOLDER -o OUT -m 20                  shifts of up to 20 pixels
      xcorr align movie.tif -o OUT -r template         noisy: compared with the mean of all others
      xcorr align movie.tif -o OUT --motion rigid      frames that turn
      xcorr align FOLDER -o OUT --no-apply             measure only
    """
    from xcorr_app.batch.align.run import Align
    from xcorr_app.cli.printing.align_table import failures_of, print_results
    from xcorr_app.cli.stack_run import run_command
    from xcorr_app.cli.watching import watch_of

    shown = partial(print_results, every=options.verbose)
    how: Any = {"failures": failures_of, "counted": partial(_frames, axis=options.axis)}
    how["halves"] = options.apply or options.report == "full"
    return run_command(Align, inputs, options, shown, **how, **watch_of(inputs, options))


def _frames(sizes: dict[str, int], axis: str | None) -> int:
    """How many frames a stack has, of which the sizes are known."""
    return sizes[axis] if axis else sizes["Z"] if sizes["T"] == 1 else sizes["T"]
