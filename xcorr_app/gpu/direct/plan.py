"""Plans: everything about a batch of correlations on a device that does not depend on what the arrays hold.

A launch costs a few microseconds of host time; choosing tiles, looking up compiled functions and making the arguments
costs a hundred. So that is done once for a problem and kept.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.direct.kernels import KERNELS, max_pairs
from xcorr_app.gpu.direct.problem import Part, Problem
from xcorr_app.gpu.direct.tile_launches import sum_of_segments
from xcorr_app.gpu.runtime.arrays import empty
from xcorr_app.gpu.runtime.binder import BoundLaunch
from xcorr_app.gpu.runtime.launch import Launch
from xcorr_app.gpu.runtime.limits import device_limits
from xcorr_app.gpu.runtime.placement import current_device


def _start(launch: Launch, problem: Problem) -> BoundLaunch:
    return BoundLaunch.of(launch, (*problem.arguments(), *launch.extra))


@dataclass(frozen=True)
class _Step:
    """The kernels of one part of the batch."""

    part: Part
    starts: tuple[BoundLaunch, ...]
    zero_first: bool
    segments: int
    sum_segments: BoundLaunch | None

    @classmethod
    def of(cls, part: Part, launch: Launch) -> _Step:
        launches = (launch, launch.then) if launch.then else (launch,)
        adds_up = _start(sum_of_segments(launch, part.problem), part.problem) if launch.segments > 1 else None
        starts = tuple(_start(each, part.problem) for each in launches)
        return cls(part, starts, launch.zero_first, launch.segments, adds_up)

    def run(self, lefts: Any, rights: Any, planes: Any) -> None:
        """Write `planes`; all arrays begin at this part's first matrix."""
        if self.zero_first:
            planes.fill(0)
        target = planes
        if self.sum_segments is not None:
            target = empty((self.segments, *planes.shape), planes.dtype)
        for start in self.starts:
            start(lefts, rights, target)
        if self.sum_segments is not None:
            self.sum_segments(target, planes)


class Plan:
    """How one kernel computes one problem on one device, step after step in the order of the planes."""

    def __init__(self, problem: Problem, steps: tuple[_Step, ...]) -> None:
        self.problem, self._steps = problem, steps

    def run(self, lefts: Any, rights: Any, planes: Any) -> None:
        """Start the kernels on dense arrays, leading axes split in any way; returns before they have finished."""
        if len(self._steps) == 1:
            self._steps[0].run(lefts, rights, planes)
            return
        lefts = lefts.reshape(self.problem.lefts, -1)
        rights = rights.reshape(self.problem.rights, -1)
        planes = planes.reshape(self.problem.pairs, -1)
        for step in self._steps:
            part = step.part
            step.run(lefts[part.left :], rights[part.right :], planes[part.plane : part.plane + part.problem.pairs])


def plan_of(
    problem: Problem,
    variant: str,
    *,
    left_type: str = "float32",
    right_type: str = "float32",
    tuning: Mapping[str, int] | None = None,
) -> Plan:
    """Make the plan of a kernel on the current device, or take the one that was made before; large batches in parts."""
    if variant not in KERNELS:
        raise ArgumentError(f"unknown variant {variant!r}; choose from {', '.join(KERNELS)}")
    macros = tuple(sorted(tuning.items())) if tuning else ()
    return _plan(current_device(), problem, variant, left_type, right_type, macros)


@functools.lru_cache(maxsize=256)
def _plan(
    device: int,
    problem: Problem,
    variant: str,
    left_type: str,
    right_type: str,
    macros: tuple[tuple[str, int], ...],
) -> Plan:
    def launch(part: Part) -> Launch:
        chosen: Launch = KERNELS[variant].launch(
            part.problem,
            left_type=left_type,
            right_type=right_type,
            device=device_limits(device),
            tuning=dict(macros),
        )
        return chosen

    parts = problem.parts(max_pairs(variant, problem, distributed=bool(dict(macros).get("DISTRIBUTION"))))
    return Plan(problem, tuple(_Step.of(part, launch(part)) for part in parts))
