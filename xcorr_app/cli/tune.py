"""``xcorr tune``: measures what ``auto`` chooses from, on this GPU."""

from __future__ import annotations

import sys

import click

from xcorr_app.cli.failures import SOMETHING_FAILED, one_line_failures
from xcorr_app.cli.options import Value
from xcorr_app.errors import ArgumentError


def _sizes(text: str) -> tuple[tuple[int, int], ...]:
    found = []
    for size in text.split(","):
        height, cross, width = size.strip().partition("x")
        if not (cross and height.isdecimal() and width.isdecimal() and min(int(height), int(width)) >= 16):
            raise ArgumentError(
                f"{size.strip()!r}: write rows x columns of frames, 16 or more, such as 512x512,1024x768"
            )
        found.append((int(height), int(width)))
    return tuple(found)


@click.command("tune")
@click.option(
    "--minutes",
    type=click.FloatRange(min=0.1, max=120),
    default=3.0,
    show_default=True,
    help="How long to measure; more problems make choices better.",
)
@click.option(
    "--sizes",
    type=Value("YxX,...", _sizes),
    help="Measure frames of these sizes alone, where they are what you work on.  [default: sizes of all kinds]",
)
@click.option(
    "--device",
    type=Value("cuda[:N]", str),
    default="cuda",
    show_default=True,
    help="The GPU to measure.",
)
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def command(minutes: float, sizes: tuple[tuple[int, int], ...] | None, device: str, debug: bool) -> None:
    """Time every candidate on this GPU, so that engine auto chooses by these measurements.

    Without it, auto chooses by measurements of one H200, scaled to this GPU. What is measured is kept in the cache
    folder that `xcorr env` prints, for this GPU, driver and version; `xcorr env` says which is in use. Nothing else
    should run on the GPU meanwhile.

    \b
    Examples:
      xcorr tune
      xcorr tune --minutes 1 --sizes 512x512,2048x2048
    """
    with one_line_failures(SOMETHING_FAILED, debug=debug):
        from xcorr_app.cli.printing.tables import console_for, say
        from xcorr_app.tuning.command import measure_device

        console = console_for(sys.stdout)
        measure_device(device, 60 * minutes, sizes or (), lambda text: say(console, text))
