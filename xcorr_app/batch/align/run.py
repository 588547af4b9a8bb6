"""What ``xcorr align`` does: every series found is aligned, and a report shows them all."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from xcorr_app.batch.align.frames import SourceFrames, frames_of, scan_reference
from xcorr_app.batch.align.motions import ENGINE as PATCHES_ENGINE
from xcorr_app.batch.align.motions import FILES
from xcorr_app.batch.align.options import AlignOptions
from xcorr_app.batch.align.pages import SECTION, write_page
from xcorr_app.batch.align.stack import align_stack
from xcorr_app.batch.shared_options import explains_another, limits_for
from xcorr_app.correlation.engines import choose_engine
from xcorr_app.decision import Decision
from xcorr_app.errors import InputError
from xcorr_app.gpu.runtime.select import Device, select_device
from xcorr_app.io import SeriesSpec
from xcorr_app.io.outputs import ENDINGS
from xcorr_app.pipeline.resources import StackResources
from xcorr_app.pipeline.stages import Stages
from xcorr_app.pipeline.state import REPORT, State
from xcorr_app.pipeline.work import Finished, Outcome, Work
from xcorr_app.registration import quality
from xcorr_app.registration.choice import decide_registration
from xcorr_app.registration.results.frame_table import parse_shifts_csv
from xcorr_app.registration.solver.basis import PATCHES, is_more_than_a_shift
from xcorr_app.registration.stack.passes import Pass
from xcorr_app.report.html import load_template
from xcorr_app.report.records import StackReport
from xcorr_app.report.summary import summarise

_OF_ONE_IMAGE = ("first", "last")
"""References by name that all frames share; a mean, say, leaves out the frame that is measured."""


class Align(Work[AlignOptions]):
    """Aligns stacks."""

    program = "xcorr align"
    less_memory = "measure a part with --roi, or use a machine with more"

    @classmethod
    def chosen_device(cls, options: AlignOptions) -> Device:
        """Choose the device, and refuse an engine that cannot run there."""
        device = select_device(options.device)
        if not explains_another(options):
            choose_engine(options.settings.engine, device.xp, kernel_options=options.settings.kernel_options)
        return device

    def checked(self) -> Self:
        """Refuse a reference that cannot be used, and results of earlier runs that nobody named one by one."""
        if isinstance(self.options.reference, Path):
            scan_reference(self.options)
        for spec in self.discovery.series:
            file = Path(os.path.abspath(spec.paths[0]))  # noqa: PTH100 - links stay
            stack, known = file.parent, State(file.parent.parent)
            asked = known.asked() if known.knows(stack.name) else None
            if asked and asked.program == self.program and not (self._is_named(file) or self._is_named(stack)):
                raise InputError(
                    f"{stack.parent}: is an output folder of {self.program}, whose results would be aligned again; "
                    f"name what they were made of, or each stack in it by itself, as {stack}"
                )
        if self.options.report != "none":
            threading.Thread(target=load_template, args=["stack.html.j2"], name="xcorr-template", daemon=True).start()
        return self

    def _is_named(self, path: Path) -> bool:
        """Whether a user named just this, or gave its form, and no folder that holds it."""
        named = [os.path.abspath(given) for given in self.inputs]  # noqa: PTH100 - links stay
        return str(path) in named or any(map(path.match, named))

    def outputs(self, name: str) -> list[Path]:
        """See `Work`."""
        stacks = [f"{name}_aligned{ending}" for ending in ENDINGS.values()]
        files = [self.out / name / file for file in ("shifts.csv", "motion.csv", *FILES, REPORT, *stacks)]
        return [*files, self.state.attachment(name, SECTION)]

    def decide(self, spec: SeriesSpec) -> Decision:
        """See `Work`."""
        options = self.options
        if options.model == PATCHES:
            cut = f"{options.patches.patch} x {options.patches.patch} pixels"
            why = f"from the shift of each frame, patches of {cut} are matched, and one smooth field is fitted to all"
            return Decision(PATCHES_ENGINE, reason=why)
        if is_more_than_a_shift(options.model):
            why = "frames that turn are found by the Fourier-Mellin transform and refined by Gauss-Newton"
            return Decision("gauss-newton", reason=why)
        with spec.open() as source:
            frames = frames_of(source, options, self.device.xp, options.first_channel)
        # As long as no weighting of frequencies is needed.
        limits, (rows, columns) = limits_for(options, frames.xp), frames.shape
        together = Pass(frames.count, rows * columns, on_device=limits is not None).images_at_once
        shared = not isinstance(options.reference, str) or options.reference in _OF_ONE_IMAGE
        how = frames.shape, str(frames.dtype), together, options.settings, limits
        return decide_registration(*how, shared_reference=shared)

    def begin(self, spec: SeriesSpec, resources: StackResources, *, ahead: bool = False) -> SourceFrames | None:
        """See `Work`."""
        source, options, xp = spec.open(), self.options, self.device.xp
        return resources.begin(frames_of(source, options, xp, options.first_channel), xp, ahead=ahead)

    def process(self, spec: SeriesSpec, resources: StackResources, opened: SourceFrames) -> Finished:
        """See `Work`."""
        return align_stack(spec, self, resources, opened)

    def restored(self, name: str, record: dict[str, Any]) -> StackReport | None:
        """See `Work`."""
        table = (self.out / name / "shifts.csv").read_text(encoding="utf-8")
        return StackReport.from_record(name, record["report"], parse_shifts_csv(table))

    def is_flagged(self, result: StackReport) -> bool:
        """See `Work`."""
        return summarise(result).is_no_better or any(quality.FAILS_THE_RUN & set(row.flags) for row in result.rows)

    def report(self, outcomes: Sequence[Outcome], stages: Stages) -> Path | None:
        """See `Work`."""
        return write_page(self, outcomes, stages)
