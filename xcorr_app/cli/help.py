"""Help in groups: ``--help`` shows what most people need, ``--help-all`` every option."""

from __future__ import annotations

from typing import Any

import click

from xcorr_app.batch.option import GROUPS

_ALL = "xcorr.help_all"


class GroupedOption(click.Option):
    """An option that stands in a group of help."""

    def __init__(self, *args: Any, group: str, is_brief: bool, bare: str | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.group, self.is_brief, self.bare = group, is_brief, bare


class GroupedCommand(click.Command):
    """A command whose ``--help`` shows some of its options."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Options of the command, and those that show help."""
        everything = click.Option(
            ["--help-all"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_show_all,
            help="Show every option and exit.",
        )
        *own, brief = super().get_params(ctx)
        return [*own, everything, brief]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Let an option that may stand alone take no word after it for its value."""
        known = [option for option in self.params if isinstance(option, GroupedOption) and option.bare]
        alone = {flag: f"{flag}={option.bare}" for option in known for flag in option.opts}
        until = args.index("--") if "--" in args else len(args)
        return super().parse_args(ctx, [alone.get(arg, arg) for arg in args[:until]] + args[until:])

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options in groups."""
        own = [option for option in self.get_params(ctx) if isinstance(option, GroupedOption) and not option.hidden]
        shown = [option for option in own if option.is_brief or ctx.meta.get(_ALL)]
        for title in GROUPS:
            rows = [option.get_help_record(ctx) for option in shown if option.group == title]
            if rows:
                with formatter.section(title):
                    formatter.write_dl([row for row in rows if row is not None])
        hidden = len(own) - len(shown)
        more = [("--help-all", f"Show {hidden} more options.")] if hidden else []
        with formatter.section("Help"):
            formatter.write_dl([*more, ("-h, --help", "Show this message and exit.")])


def _show_all(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        ctx.meta[_ALL] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()
