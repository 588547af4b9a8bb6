"""Click's options, made of what the dataclass of a command declares, and help in groups.

``--help`` shows what most people need, ``--help-all`` every option. Nothing here imports what computes.
"""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Callable
from dataclasses import Field
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from xcorr_app.batch import values
from xcorr_app.batch.option import GROUPS, CommandOptions, OneOf, Option, Text, Within, options_of
from xcorr_app.cli.process import WRONG_USAGE, one_line_failures

if TYPE_CHECKING:
    from xcorr_app.gpu.runtime.select import Device


_ALL = "xcorr.help_all"


class GroupedOption(click.Option):
    """An option that stands in a group of help."""

    def __init__(self, *args: Any, group: str, is_brief: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.group, self.is_brief = group, is_brief


class GroupedCommand(click.Command):
    """A command whose ``--help`` shows some of its options."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options in groups."""
        own = [option for option in self.get_params(ctx) if isinstance(option, GroupedOption)]
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


_HELP_ALL = click.Option(
    ["--help-all"],
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_all,
    help="Show every option and exit.",
)
OptionsT = TypeVar("OptionsT", bound=CommandOptions)


def command(
    name: str,
    kind: type[OptionsT],
    *arguments: click.Argument,
    begin: Callable[[dict[str, Any]], object] = dict,
) -> Callable[[Callable[..., int]], GroupedCommand]:
    """Make a command of a function of its options and arguments that returns the exit code.

    It may `begin` something as soon as the values are known, before they are checked.
    """

    def decorate(function: Callable[..., int]) -> GroupedCommand:
        @click.pass_context
        def callback(ctx: click.Context, /, **given: Any) -> None:
            places = [given.pop(argument.name) for argument in arguments]
            with one_line_failures(WRONG_USAGE, debug=given["debug"]):
                read = values.PATH.read
                places = [read(place) if isinstance(place, str) else tuple(map(read, place)) for place in places]
                begin(given)
                options = kind(**given)
            ctx.exit(function(options, *places))

        own = [argument(each.name) for each, known in options_of(kind) if known.argument]
        made = [_click_option(each, known) for each, known in options_of(kind) if not known.argument]
        text = inspect.cleandoc(function.__doc__ or "")
        return GroupedCommand(name, params=[*own, *arguments, *made, _HELP_ALL], callback=callback, help=text)

    return decorate


def inputs_argument(form: str = "INPUT...") -> click.Argument:
    """The files and folders that a command works on."""
    return click.Argument(["inputs"], metavar=form, nargs=-1, required=True, type=click.Path())


def argument(name: str) -> click.Argument:
    """One file or folder."""
    return click.Argument([name], metavar=name.upper(), type=click.Path())


def _click_option(each: Field[Any], known: Option) -> GroupedOption:
    flag, short = known.flag(each.name), [flag for flag in known.flags if not flag.startswith("--")]
    how: dict[str, Any] = {"help": known.text, "required": known.required}
    if not known.required:  # to click a default, even None, answers for an option that is not given
        how["default"] = each.default
    if known.kind is bool:
        if each.default:
            flag += f"/--no-{flag[2:]}"
            how["help"] += f"  [default: {known.flag(each.name)}]"
        how["is_flag"] = True
    else:
        how |= {"type": _type(known.kind), "multiple": known.gather is not None}
        how["metavar"] = getattr(known.kind, "form", None)
        how["show_default"] = each.default is not None
    if known.unit:
        how["help"] += f"  [default: {known.unit}]"
    return GroupedOption([*short, flag, each.name], group=known.group, is_brief=known.brief, **how)


def _type(kind: Any) -> Any:
    """What click makes of a value; what is written in a form of its own is read with the other options."""
    match kind:
        case Text():
            return str
        case OneOf():
            return click.Choice(kind.names)
        case Within(whole=True):
            return click.IntRange(kind.low, kind.high)
        case Within():
            return float
    return kind


def device_note(device: Device, options: Any) -> str | None:
    """Why no GPU is used: for those who have CuPy, and those who ask by ``-v`` or by naming a device."""
    named = click.get_current_context().get_parameter_source("device") is not ParameterSource.DEFAULT
    return device.note if getattr(options, "verbose", False) or named or _has_cupy() else None


def _has_cupy() -> bool:
    try:
        return importlib.util.find_spec("cupy") is not None
    except ValueError:  # a module that somebody else put there
        return True
