"""``xcorr filter``: a folder of stacks in, the same stacks filtered out."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xcorr_app.batch.filter.options import FilterOptions
from xcorr_app.cli import options as cli_options

if TYPE_CHECKING:
    from xcorr_app.pipeline.outcome import Outcome, Run

_HEADINGS = ("planes", "shape", "type", "clipped", "seconds")
_SHOWN = 5
"""Planes that cannot be read and are named, where not all of them are to be."""


@cli_options.command("filter", FilterOptions, cli_options.inputs_argument())
def command(options: FilterOptions, inputs: tuple[Path, ...]) -> int:
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
      xcorr filter cells.tif -o out --bank gabor:8,4 --device cuda
      xcorr filter cells.tif -o out --taps taps.csv --kernel exchange --kernel-option row-reuse=no
    """
    from xcorr_app.batch.filter.run import Filter
    from xcorr_app.cli.printing.tables import print_run
    from xcorr_app.cli.stack_run import planes_of, run_command

    remarks = partial(_remarks, every=options.verbose)
    shown = partial(print_run, headings=_HEADINGS, numbers=_numbers, done="filtered", remarks=remarks)
    return run_command(Filter, inputs, options, shown, failures=_failures_of, counted=planes_of)


def _failures_of(run: Run) -> list[tuple[str, str]]:
    """Name and reasons of every stack that failed, wholly or in part."""
    return [(each.name, "; ".join(_remarks(each, every=False))) for each in run.outcomes if each.failed]


def _numbers(facts: dict[str, Any]) -> list[str]:
    shape = " x ".join(map(str, facts["shape"]))
    return [
        str(facts["planes"]),
        shape,
        facts["dtype"],
        str(facts["clipped_pixels"]),
        f"{facts['seconds']['filter']:.2f}",
    ]


def _remarks(outcome: Outcome, *, every: bool) -> list[str]:
    if outcome.failure is not None:
        return [outcome.failure]
    facts = outcome.facts
    lines = list(facts["notes"])
    if clipped := facts["clipped_pixels"]:
        what = "pixel did" if clipped == 1 else "pixels did"
        lines.append(
            f"{clipped} {what} not fit {facts['dtype']} and took the nearest end of its range; "
            "--dtype float32 keeps their values"
        )
    if unusual := facts["non_finite_pixels"]:
        lines.append(f"{unusual} {'pixel is' if unusual == 1 else 'pixels are'} NaN or infinite")
    unreadable = list(facts["unreadable"].items())
    shown = unreadable if every else unreadable[:_SHOWN]
    lines += [f"plane {plane} is unreadable and was written as zeros: {reason}" for plane, reason in shown]
    if len(shown) < len(unreadable):
        lines.append(f"... and {len(unreadable) - len(shown)} more planes; -v lists them all")
    return lines
