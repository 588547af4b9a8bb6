"""The command ``xcorr``: one file a subcommand, no computing here."""

from __future__ import annotations

import click

from xcorr_app import __version__
from xcorr_app.cli.align import align
from xcorr_app.cli.env import env


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="xcorr")
def main() -> None:
    """Image cross-correlation and registration.

    \b
    Example:
      xcorr align FOLDER -o OUT
    """


main.add_command(align)
main.add_command(env)
