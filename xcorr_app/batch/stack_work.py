"""The one run of all commands that work on stacks: what a command says of itself, and the plan that is made of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

from xcorr_app.batch.option import options_of
from xcorr_app.batch.shared_options import StackOptions
from xcorr_app.decision import Decision
from xcorr_app.gpu.runtime.select import OF_WORKERS, Device, select_device
from xcorr_app.io import Discovery, discover
from xcorr_app.pipeline.outcome import Run
from xcorr_app.pipeline.output import check_output
from xcorr_app.pipeline.run import explain_stacks, run_stacks
from xcorr_app.pipeline.state import asked_of
from xcorr_app.pipeline.work import Plan, Work

Facts = dict[str, Any]
"""What is known of a stack: counts, times, notes."""
OptionsT = TypeVar("OptionsT", bound=StackOptions)


class StackWork(Work[Any], Generic[OptionsT]):
    """What a command does to stacks; what it finds, where it computes and what it refuses is asked before it writes."""

    def __init__(self, plan: Plan[OptionsT]) -> None:
        self.plan, self.options = plan, plan.options

    @classmethod
    def device(cls, options: OptionsT) -> Device:
        """Choose where to compute, and refuse what cannot run there."""
        return select_device(options.device)

    @classmethod
    def found(cls, inputs: Sequence[Path], options: OptionsT) -> Discovery:
        """Find the stacks."""
        return discover(inputs, options.layout, options.limits, channel=getattr(options, "channel", None))

    @classmethod
    def check(cls, plan: Plan[OptionsT]) -> Plan[OptionsT]:
        """Refuse a plan that cannot be carried out; what comes back is carried out."""
        return plan

    def files(self) -> dict[str, tuple[Path, ...]]:
        """See `Work`: all that options name."""
        named = (each.name for each, known in options_of(type(self.options)) if known.role == "result")
        given = {name: getattr(self.options, name) for name in named}
        return {f"{name}_file": (path,) for name, path in given.items() if isinstance(path, Path)}

    def explain(self) -> list[tuple[str, Decision | str]]:
        """Say for every stack what would compute it, and why; nothing is computed."""
        return explain_stacks(self.plan, self)

    def run(self, **how: Any) -> Run[Any]:
        """Process every stack of the plan, whose output folder is ready: see `run_stacks`."""
        return run_stacks(self.plan, self, resume=self.options.resume, **how)


def plan_stacks(
    work: type[StackWork[OptionsT]],
    inputs: Sequence[Path],
    out: Path,
    options: OptionsT,
    *,
    found: Discovery | None = None,
    elsewhere: bool = False,
) -> Plan[OptionsT]:
    """Choose the device, find the stacks unless they are `found`, check the output folder; nothing is written.

    With `elsewhere`, workers choose their devices.
    """
    device = OF_WORKERS if elsewhere else work.device(options)
    options.check_device(device)
    discovery = found or work.found(inputs, options)
    asked = asked_of(work.program, options.parameters(), inputs)
    check_output(out, discovery, list(inputs), asked, resume=options.resume, overwrite=options.overwrite)
    return work.check(Plan(discovery, device, tuple(inputs), out, options))
