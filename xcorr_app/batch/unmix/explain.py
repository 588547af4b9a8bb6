"""How the kernels would mix the channels of a file: what ``xcorr unmix --explain`` prints, with or without a GPU."""

from __future__ import annotations

import math

import numpy as np

from xcorr_app.batch.decisions import decide_unmix, limits_for
from xcorr_app.batch.unmix.options import UnmixOptions
from xcorr_app.batch.unmix.stack import UnmixPlan, mixing_of, plan_stack
from xcorr_app.decision import Decision
from xcorr_app.errors import XcorrError
from xcorr_app.filtering.array_choice import has_kernel
from xcorr_app.filtering.kernel_names import macros_of, mixing_name
from xcorr_app.gpu.pointwise.blocking_options import AS_PUBLISHED, BlockingOptions
from xcorr_app.gpu.pointwise.kernels import pointwise_launch
from xcorr_app.gpu.pointwise.planner import plan_pointwise
from xcorr_app.gpu.pointwise.problem import PointwiseProblem
from xcorr_app.gpu.runtime.launch import Launch
from xcorr_app.gpu.runtime.limits import DeviceLimits, device_limits, limits_by_name
from xcorr_app.gpu.runtime.placement import current_device
from xcorr_app.pipeline.work import Plan

_WITHOUT_A_DEVICE = "h200"


def explain_file(plan: UnmixPlan) -> tuple[Decision, list[str]]:
    """Say what mixes the channels of a stack, and how the kernels would cut the work of one place of it.

    That is by the limits of the device that ``--explain-for`` names, else of the one that computes; where the CPU does,
    the lines are those of an H200.
    """
    return decide_unmix(plan, limits_for(plan.options, plan.device.xp)), _planned(plan)


def explain_many(plan: Plan[UnmixOptions]) -> list[tuple[str, Decision | str, list[str]]]:
    """Say the same of every stack; of one that would fail, why."""
    mixing = mixing_of(plan.options)
    explained: list[tuple[str, Decision | str, list[str]]] = []
    for spec in plan.discovery.series:
        try:
            stack = plan_stack(spec, plan.out, mixing, plan.device, plan.options)
        except XcorrError as error:
            explained.append((spec.name, str(error), []))
        else:
            explained.append((spec.name, *explain_file(stack)))
    return explained


def _planned(plan: UnmixPlan) -> list[str]:
    on_device = plan.device.xp is not np
    limits, whose = _limits(plan, plan.options.explain_for, on_device=on_device)
    filters, channels = plan.matrix.shape
    pixels, source, target = math.prod(plan.metadata.shape[-2:]), plan.stack.metadata.dtype, plan.metadata.dtype
    where = "" if on_device else "; this run computes on the CPU"
    lines = [f"Plan by the limits of {whose}{where}:"]
    if has_kernel(source, target, plan.matrix.shape, pixels):
        problem = PointwiseProblem(
            1, channels, filters, pixels, source.name, target.name, plan.options.by_density, plan.options.clip
        )
        named, tuning = mixing_name(plan.options.asked_kernel), macros_of(plan.options.asked_kernel)
        lines += _explained(pointwise_launch(problem, named, limits=limits, tuning=tuning))
    else:
        lines.append(f"no kernel mixes {channels} channels of {source} into {filters} of {target}: the library does")
    blocking = plan.options.asked_kernel if isinstance(plan.options.asked_kernel, BlockingOptions) else AS_PUBLISHED
    tiles = plan_pointwise(filters, channels, pixels, limits, blocking).explain().splitlines()
    return [lines[0], *(f"  {line}" for line in [*lines[1:], "dynamic blocking (kernel pointwise):", *tiles])]


def _limits(plan: UnmixPlan, name: str | None, *, on_device: bool) -> tuple[DeviceLimits, str]:
    if name or not on_device:
        name = name or _WITHOUT_A_DEVICE
        return limits_by_name(name), f"{name.upper()}, by name"
    return device_limits(current_device()), plan.device.description


def _explained(launch: Launch) -> list[str]:
    macros = launch.defines
    size = f"{launch.threads} threads a block, {launch.blocks} blocks"
    if launch.entry == "pointwise":
        return ["kernel pointwise", size]
    if launch.entry == "shallow":
        share = f"{macros['PIXELS_X']} x {macros['PIXELS_Y']} pixels a thread, {macros['GROUP']} results at once"
        return [f"kernel shallow: {share}, {launch.extra[0]} of a block", size]
    share = f"{macros['PIXELS']} pixels x {macros['FILTERS']} results a thread"
    loads = f"{macros['VECTOR']} pixels a load, {macros['LOADS']} channels in flight"
    return [
        f"kernel {launch.entry}: {share}, {loads}, sums in {macros['SUM_TYPE']}",
        size,
    ]
