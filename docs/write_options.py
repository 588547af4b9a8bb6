"""Writes docs/options.md: every option of every command, from what declares them (python docs/write_options.py)."""

from __future__ import annotations

from dataclasses import MISSING
from pathlib import Path
from typing import Any

from xcorr_app.batch.align.options import AlignOptions
from xcorr_app.batch.apply.options import ApplyOptions
from xcorr_app.batch.correlate.options import CorrelateOptions
from xcorr_app.batch.field.options import FieldOptions
from xcorr_app.batch.filter.options import FilterOptions
from xcorr_app.batch.option import GROUPS, CommandOptions, OneOf, Option, Text, Within, options_of
from xcorr_app.batch.unmix.options import UnmixOptions

COMMANDS: dict[str, type[CommandOptions]] = {
    "align": AlignOptions,
    "apply": ApplyOptions,
    "field": FieldOptions,
    "filter": FilterOptions,
    "unmix": UnmixOptions,
    "correlate": CorrelateOptions,
}
HEAD = """# Options

Every option of the [commands](commands.md), as `--help-all` shows it; this page is written by `docs/write_options.py`
from the same declarations. `run.json` records those that decide the results by their names here, with underscores (of
those that may be given several times, in the plural), and `--resume` compares them. `xc.align` takes all of `align` as
keywords but those marked with *, which are for the terminal alone. An option that would change nothing beside the
others is refused.
"""


def page() -> str:
    """The page as text."""
    return "\n".join([HEAD, *(line for name, kind in COMMANDS.items() for line in _section(name, kind))])


def _section(name: str, kind: type[CommandOptions]) -> list[str]:
    known = list(options_of(kind))
    lines = [f"## xcorr {name}", "", "| option | default | |", "|---|---|---|"]
    for title in GROUPS:
        rows = [(each, option) for each, option in known if option.group == title]
        if rows:
            lines.append(f"| **{title}** | | |")
            lines += [_row(each.name, option, each.default) for each, option in rows]
    return [*lines, ""]


def _row(name: str, option: Option, default: Any) -> str:
    flags = ", ".join([*(flag for flag in option.flags if not flag.startswith("--")), option.flag(name)])
    mark = "*" if option.role == "terminal" else ""
    if default is True:
        flags += f", --no-{name}"
    shown = option.unit or ("" if any(default is each for each in (None, MISSING, False, ())) else _shown(default))
    cells = (f"`{flags}{_values(option.kind)}`{mark}", shown, option.text)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _values(kind: Any) -> str:
    if isinstance(kind, OneOf):
        return f" {'|'.join(kind.names)}"
    if isinstance(kind, Text):
        return f" {kind.form}"
    if isinstance(kind, Within):
        return f" {'N' if kind.whole else 'X'} ({kind})"
    return {int: " N", float: " X"}.get(kind, "")


def _shown(default: Any) -> str:
    if isinstance(default, tuple):
        return ", ".join(default)
    return "yes" if default is True else str(default)


if __name__ == "__main__":
    Path(__file__).with_name("options.md").write_text(page(), encoding="utf-8")
