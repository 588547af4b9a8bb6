"""The command ``xcorr``: one file a subcommand, imported only when that is invoked or its own help is asked."""

import atexit
import gc
import importlib
from typing import Any

import click

from xcorr_app import __version__

GROUPS = {
    "Commands": {
        "align": "Align stacks: folders, files or globs of TIFF, OME-Zarr, PNG, ND2, CZI, LIF, MRC, HDF5 and others.",
        "apply": "Move stacks by known shifts: other channels, cameras, raw data.",
        "field": "Measure the displacement of a pattern on a grid: flow (PIV), strain (DIC), deformation.",
        "filter": "Filter every plane of stacks: folders, files or globs of images.",
        "unmix": "Mix channels: spectral unmixing, stain separation.",
    },
    "Correlation planes and kernels": {
        "correlate": "Cross-correlate images: write the plane, print its peak.",
        "env": "Print device, driver, versions, cache folder, and which engines can run.",
    },
    "Help": {
        "help": "Show the help of a command: xcorr help align.",
    },
}
"""First line of each command's help; the command ``NAME`` is ``command`` in the module ``NAME``."""
COMMANDS = {name: text for group in GROUPS.values() for name, text in group.items() if name != "help"}


class _Lazy(click.Group):
    """Names its commands without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"{__name__}.{cmd_name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] == "help":
            # As `git help` and its like: what follows is asked for its own help.
            if not args[1:]:
                click.echo(ctx.get_help())
                ctx.exit()
            args = [args[1], "--help"]
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            from difflib import get_close_matches

            similar = get_close_matches(args[0], COMMANDS)
            hint = f"Did you mean {similar[0]}?" if similar else f"Choose from: {', '.join(COMMANDS)}."
            ctx.fail(f"No such command {args[0]!r}. {hint}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        from xcorr_app.cli.process import ended_by, signals_as_interrupts

        # All that is left at the end goes with the process; to search it for garbage takes a tenth of a second.
        atexit.register(gc.freeze)
        try:
            with signals_as_interrupts():
                return super().invoke(ctx)
        except KeyboardInterrupt as interrupt:
            ctx.exit(ended_by(interrupt))
        except click.exceptions.Exit as done:
            from xcorr_app.cli.process import LOST

            if done.exit_code == 0 and ctx.meta.get(LOST):
                ctx.exit(1)
            raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, commands in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl(list(commands.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        from click.shell_completion import CompletionItem

        known = {name: text for group in GROUPS.values() for name, text in group.items()}
        names = [CompletionItem(name, help=text) for name, text in known.items() if name.startswith(incomplete)]
        return names + click.Command.shell_complete(self, ctx, incomplete)


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="xcorr")
def main() -> None:
    """Register image stacks: measure how far every frame has moved, and remove it.

    Also displacement fields, filters, unmixing and correlation planes. Each command has its own --help.

    \b
    Examples:
      xcorr align FOLDER -o OUT
      xcorr apply OUT OTHER_CHANNELS -o OUT2
      xcorr correlate LEFT RIGHT -o plane.tif
      xcorr field a.bmp b.bmp -o OUT
      xcorr filter FOLDER -o OUT --gaussian 1.5
      xcorr unmix slide.tif -o OUT --stain he
    """
