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

Every option of the [commands](commands.md), as `--help-all` shows it (written by `docs/write_options.py`); those that
several commands have are [at the end](#options-of-several-commands). `run.json` records those that decide the results,
with underscores, and `--resume` compares them. `xc.align` takes those of `align` as keywords, except those marked with
*, which are for the terminal alone. An option that is not used beside the others is refused.
"""
TABLE = ["", "| option | default | |", "|---|---|---|"]


def page() -> str:
    """The page as text: what several commands have in common once, then what each has of its own."""
    sections = {name: _rows(kind) for name, kind in COMMANDS.items()}
    owners: dict[str, list[str]] = {}
    for name, groups in sections.items():
        for row in (row for rows in groups.values() for row in rows):
            owners.setdefault(row, []).append(name)
    lines = [HEAD]
    for name, groups in sections.items():
        lines += [f"## xcorr {name}", *TABLE]
        for title, rows in groups.items():
            own = [row for row in rows if len(owners[row]) == 1]
            lines += [f"| **{title}** | | |", *own] if own else []
        lines.append("")
    lines += ["## Options of several commands", "", "| option | default | | of |", "|---|---|---|---|"]
    lines += [f"{row} {_of(names)} |" for row, names in owners.items() if len(names) > 1]
    return "\n".join([*lines, ""])


def _of(names: list[str]) -> str:
    missing = [name for name in COMMANDS if name not in names]
    if not missing:
        return "all"
    return f"all but {', '.join(missing)}" if len(missing) < len(names) else ", ".join(names)


def _rows(kind: type[CommandOptions]) -> dict[str, list[str]]:
    """Rows of a command's options by the heading under which its help shows them."""
    groups: dict[str, list[str]] = {title: [] for title in GROUPS}
    for each, option in options_of(kind):
        groups[option.group].append(_row(each.name, option, each.default))
    return groups


def _row(name: str, option: Option, default: Any) -> str:
    flags = ", ".join([*(flag for flag in option.flags if not flag.startswith("--")), option.flag(name)])
    mark = "*" if option.role == "terminal" else ""
    if default is True:
        flags += f", --no-{name}"
    shown = option.unit or ("" if any(default is each for each in (None, MISSING, False, ())) else _shown(default))
    written = name.upper() if option.argument else flags + _values(option.kind)
    cells = (f"`{written}`{mark}", shown, option.text)
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
