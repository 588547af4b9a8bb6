"""The one run of all commands that work on stacks: what a command says of itself, and the plan that is made of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

from xcorr_app.batch.shared_options import StackOptions
from xcorr_app.decision import Decision
from xcorr_app.gpu.runtime.select import OF_WORKERS, Device, select_device
from xcorr_app.io import Discovery, SeriesSpec, discover
from xcorr_app.pipeline.outcome import Run
from xcorr_app.pipeline.output import check_output
from xcorr_app.pipeline.resources import StackResources
from xcorr_app.pipeline.run import explain_stacks, run_stacks
from xcorr_app.pipeline.state import asked_of
from xcorr_app.pipeline.work import Finished, Plan

Facts = dict[str, Any]
"""What is known of a stack: counts, times, notes."""
OptionsT = TypeVar("OptionsT", bound=StackOptions)


class StackWork(Generic[OptionsT]):
    """What a command does to stacks: see `xcorr_app.pipeline.work.Work`, of which it says what is the same for all.

    What a command finds, where it computes and what it refuses is asked before anything is written.
    """

    program: str
    less_memory: str = "use a machine with more"

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
        """See `Work`."""
        return {}

    def decide(self, spec: SeriesSpec) -> Decision:
        """See `Work`."""
        raise NotImplementedError

    def outputs(self, name: str) -> list[Path]:
        """See `Work`."""
        raise NotImplementedError

    def ahead(self, spec: SeriesSpec, resources: StackResources) -> None:
        """See `Work`: nothing is, unless a command says so."""

    def process(self, spec: SeriesSpec, resources: StackResources) -> Finished[Any]:
        """See `Work`."""
        raise NotImplementedError

    def restored(self, name: str, record: dict[str, Any]) -> Any:
        """See `Work`: the facts, unless a command says otherwise."""
        return record["facts"]

    def is_flagged(self, finished: Finished[Any]) -> bool:
        """See `Work`: nothing is, unless a command says so."""
        return False

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
