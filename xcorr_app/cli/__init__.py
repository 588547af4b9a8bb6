"""The command ``xcorr``: one file a subcommand, no computing here."""

from __future__ import annotations

import click

from xcorr_app import __version__
from xcorr_app.cli.align import align
from xcorr_app.cli.correlate import correlate
from xcorr_app.cli.env import env
from xcorr_app.cli.filter import filter_command
from xcorr_app.cli.unmix import unmix


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="xcorr")
def main() -> None:
    """Image cross-correlation and registration.

    \b
    Examples:
      xcorr align FOLDER -o OUT
      xcorr correlate LEFT RIGHT -o plane.tif
      xcorr filter FOLDER -o OUT --gaussian 1.5
    """


main.add_command(align)
main.add_command(correlate)
main.add_command(env)
main.add_command(filter_command)
main.add_command(unmix)
