"""Help in groups: ``--help`` shows what most people need, ``--help-all`` every option."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

FURTHER: dict[str, tuple[str, ...]] = {
    "Details": (
        "passes", "median_threshold", "subpixel", "upsample", "normalization", "weighting", "prefilter", "contrast",
        "roi", "min_overlap", "axis", "channel", "mask", "mask_moves", "match", "interpolation", "border", "doubtful",
        "min_score", "max_sigma",
    ),
    "Frames that bend (--motion patches)": (
        "patch", "patch_overlap", "max_deviation", "field_csv", "field_ome_tiff",
    ),
    "Correction of frames": ("flat", "dark", "background", "correct"),
    "Checks": ("verify", "tolerance", "max_pixels"),
    "Run": (
        "apply", "report", "format", "pyramid", "compression", "layout", "memory", "gpu_memory", "device", "watch",
        "cluster", "dry_run", "explain", "explain_for", "timings",
    ),
    "Engines and kernels": (
        "engine", "kernel", "kernel_options", "stride", "variant", "distribution", "rows_per_worker", "rights", "lefts",
        "shifts", "left_rows", "phases", "warps", "threads", "shifts_per_block", "sums", "precision",
    ),
    "What is printed": ("quiet", "verbose", "debug"),
}  # fmt: skip
"""Groups of ``--help-all``, by the names of parameters; an option that a command shows anyway is not repeated."""
_REST = "More options"


class GroupedCommand(click.Command):
    """A command whose ``--help`` shows some of its options.

    Parameters
    ----------
    groups
        Heading and names of parameters that ``--help`` shows.
    """

    def __init__(self, *args: Any, groups: Mapping[str, Sequence[str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.groups = groups

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

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options in groups."""
        shown = [option for option in self.get_params(ctx) if isinstance(option, click.Option)]
        records = {option.name: option.get_help_record(ctx) for option in shown}
        lines: dict[str | None, Any] = {name: record for name, record in records.items() if record is not None}
        helps = [lines.pop(option.name) for option in shown[-2:]]
        sections = self._taken(lines, self.groups)
        hidden = len(lines)
        if ctx.meta.get(_ALL):
            sections += [*self._taken(lines, FURTHER), (_REST, list(lines.values()))]
        elif hidden:
            helps[0] = helps[0][0], f"Show {hidden} more options."
        for title, rows in [*sections, ("Help", helps)]:
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)

    @staticmethod
    def _taken(lines: dict[str | None, Any], groups: Mapping[str, Sequence[str]]) -> list[tuple[str, list[Any]]]:
        """Take the lines of the groups' options out of `lines`."""
        return [(title, [lines.pop(name) for name in names if name in lines]) for title, names in groups.items()]


_ALL = "xcorr.help_all"


def _show_all(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        ctx.meta[_ALL] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()
