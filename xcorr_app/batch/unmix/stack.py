"""One stack with channels becomes a file of mixed channels, and a record of how."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from xcorr_app.batch import choices
from xcorr_app.batch.shared_options import limits_for
from xcorr_app.batch.unmix.options import UnmixOptions
from xcorr_app.decision import Decision
from xcorr_app.errors import ArgumentError, InputError
from xcorr_app.filtering.array_choice import decide_mixing
from xcorr_app.filtering.kernel_names import mixing_name
from xcorr_app.filtering.spectra import condition_number, inverted_spectra
from xcorr_app.filtering.stains import stain_matrix
from xcorr_app.filtering.unmix import checked_matrix, mixed_type, unmix_counted
from xcorr_app.gpu.pointwise.blocking_options import AS_PUBLISHED, BlockingOptions
from xcorr_app.gpu.pointwise.planner import plan_pointwise
from xcorr_app.gpu.runtime.arrays import Array, is_device_array
from xcorr_app.gpu.runtime.download import download_in_parts
from xcorr_app.gpu.runtime.limits import limits_by_name
from xcorr_app.gpu.runtime.select import Device, select_device
from xcorr_app.io import SeriesSpec, StackMetadata, StackWriter, atomic_write_text
from xcorr_app.io.channels import ChannelSource, channels_of, scan_with_colours
from xcorr_app.io.finding.discover import series_of_file
from xcorr_app.io.mixing_matrix import read_matrix, read_spectra
from xcorr_app.io.outputs import Writer
from xcorr_app.pipeline.environment import own_version, versions
from xcorr_app.pipeline.failures import memory_as_limit
from xcorr_app.pipeline.new_channels import with_new_channels
from xcorr_app.pipeline.output import check_output_file
from xcorr_app.pipeline.planes import Begun, HostPlanes, over_planes
from xcorr_app.pipeline.resources import Resources
from xcorr_app.registration.stack.passes import Progress


class Mixing(NamedTuple):
    """The matrix of a run, and what its rows are."""

    matrix: np.ndarray
    names: tuple[str, ...]
    """Of the rows; empty where they are not known."""


@dataclass(frozen=True)
class UnmixPlan:
    """A stack that was checked, and what will be made of it."""

    stack: ChannelSource
    matrix: np.ndarray
    names: tuple[str, ...]
    """Of the rows; empty where they are not known."""
    metadata: StackMetadata
    """Of the result."""
    out: Path
    device: Device
    options: UnmixOptions

    @property
    def condition_number(self) -> float | None:
        """Of the spectra that were given; None where there are none."""
        return spectra_condition(self.options)

    @property
    def record(self) -> Path:
        """File that says how the result was made."""
        return self.out.with_name(self.out.name + ".json")


@dataclass(frozen=True)
class UnmixResult:
    """What a run did."""

    values: int
    """Written."""
    clipped: int
    """Of these, set to the nearest limit of the integer type."""
    notes: tuple[str, ...] = ()
    """What a user should know of how it went."""


def mixing_of(options: UnmixOptions) -> Mixing:
    """Read or look up the matrix."""
    if options.stain is not None:
        return Mixing(*stain_matrix(options.stain))
    file = options.file or Path()
    table = read_matrix(file) if options.spectra is None else read_spectra(file)
    try:
        matrix = table.matrix if options.spectra is None else inverted_spectra(table.matrix)
        return Mixing(checked_matrix(matrix), table.names)
    except ArgumentError as error:
        raise InputError(f"{file}: {error}") from error


def spectra_condition(options: UnmixOptions) -> float | None:
    """Condition number of the spectra that were given; None where there are none."""
    return None if options.spectra is None else condition_number(read_spectra(options.spectra).matrix)


def plan_file(path: Path, out: Path, options: UnmixOptions) -> UnmixPlan:
    """Check a file, the matrix, the output's name and the device; no pixel is read, nothing is written."""
    device = options.computes_on(select_device(options.device))
    if not out.name.lower().endswith((".tif", ".tiff")):
        raise ArgumentError(f"{out}: mixed channels are written as .tif or .ome.tif; choose one by the ending")
    inputs = (path,) if options.file is None else (path, options.file)
    check_output_file(out, inputs, overwrite=options.overwrite)
    spec = series_of_file(path, options.limits, scan_with_colours)
    plan = plan_stack(spec, out, mixing_of(options), device, options)
    check_output_file(plan.record, inputs, overwrite=options.overwrite)
    return plan


def plan_stack(spec: SeriesSpec, out: Path, mixing: Mixing, device: Device, options: UnmixOptions) -> UnmixPlan:
    """Check that a matrix fits a stack; no pixel is read."""
    stack = channels_of(spec, options.channel_axis)
    old, path = stack.metadata, stack.path
    if mixing.matrix.shape[1] != stack.channels:
        raise InputError(
            f"{path}: has {stack.channels} channels along {stack.axis} (axes {old.axes}), "
            f"{_misfit(mixing.matrix.shape, stack.channels, options)}"
        )
    if stack.axis != "C" and "C" in old.axes:
        raise InputError(
            f"{path}: has axes {old.axes}; with --channel-axis {stack.axis} the result would have two axes of "
            "channels: save one part of C as a file of its own"
        )
    dtype = mixed_type(old.dtype, options.dtype, from_log=options.by_density)
    metadata = with_new_channels(old, stack.axis, len(mixing.matrix), mixing.names, dtype)
    if out.name.lower().endswith((".ome.tif", ".ome.tiff")):
        metadata = replace(metadata, kind="ome")
    return UnmixPlan(stack, *mixing, metadata, out, device, options)


def _misfit(shape: tuple[int, ...], channels: int, options: UnmixOptions) -> str:
    """Say what a matrix of this shape needs in place of so many channels, and what may have been meant."""
    rows, columns = shape
    if options.stain:
        return f"stains {options.stain} needs {columns}"
    needs = f"{options.file} needs {columns}"
    if rows != channels:
        return needs
    if options.spectra:
        return f"{needs}; it fits when transposed: give one row per channel and one column per dye"
    return (
        f"{needs}; it fits when transposed: --matrix takes one row per channel of the result; spectra as measured, "
        "one column per dye, are for --spectra"
    )


def run_unmix(plan: UnmixPlan, progress: Progress | None = None, resources: Resources | None = None) -> UnmixResult:
    """Read, mix and write a plan's channels, and the record of how."""
    lent = resources or Resources()
    with lent.stages.step("unmix"):
        writer = StackWriter(plan.out, plan.metadata, compression=lent.compression, meter=lent.stages.meter)
        result = mix(plan, writer, progress)
    atomic_write_text(plan.record, record_of(plan, result))
    return result


def channels_in_order(stack: ChannelSource) -> list[dict[str, int]]:
    """Positions (t, z, c) of all channels of every place, those of one place after the other."""
    axes = stack.metadata.axes[:-2].replace(stack.axis, "")
    places = np.ndindex(*(stack.metadata.sizes[axis] for axis in axes))
    ats = [{"t": 0, "z": 0, "c": 0} | dict(zip(axes.lower(), place, strict=True)) for place in places]
    return [at | {stack.axis.lower(): channel} for at in ats for channel in range(stack.channels)]


def mix(
    plan: UnmixPlan, new: Writer, progress: Progress | None = None, begun: Begun[HostPlanes] | None = None
) -> UnmixResult:
    """Read, mix and write a plan's channels, all those of one place together.

    Planes `channels_in_order` may have been `begun` to be read. Where a device's memory does not suffice for a place,
    the CPU mixes it and those after it.
    """
    stack, options = plan.stack, plan.options
    axes, channels, sides = plan.metadata.axes[:-2].removesuffix("C"), stack.channels, plan.metadata.shape[-2:]
    places = [dict(zip(axes, at, strict=True)) for at in np.ndindex(*(plan.metadata.sizes[axis] for axis in axes))]

    def job(start: int, stop: int, xp: Any) -> tuple[Array, int]:
        if begun is None:
            planes = xp.asarray(np.stack([stack.read(place) for place in places[start:stop]]))
        else:
            chunk = begun.read(start * channels, stop * channels, xp)
            for number in sorted(chunk.unreadable):
                raise InputError(chunk.unreadable[number])
            planes = chunk.frames.reshape(stop - start, channels, *sides)
        how: Any = {"white": options.white, "clip": options.clip, "dtype": options.dtype}
        how["kernel"] = options.asked_kernel if is_device_array(planes) else "auto"
        return unmix_counted(planes, plan.matrix, from_log=options.by_density, **how)

    too_large = (
        f"{stack.path}: its {channels} channels of {sides} pixels need more memory than there is; cut the image into "
        "parts, or use a machine with more"
    )
    clipped, notes, pixels = 0, list[str](), channels * math.prod(sides)
    with memory_as_limit(too_large), new as writer:
        mixed = over_planes(plan.device.xp, len(places), pixels, job, ("unmix", "mixed"), progress, notes)
        for planes, beyond in mixed:
            clipped += beyond
            for part in download_in_parts(planes):
                for plane in part.reshape(-1, *part.shape[-2:]):
                    writer.write(plane)
            del planes  # not kept while the next ones are computed
    return UnmixResult(math.prod(plan.metadata.shape), clipped, tuple(notes))


def decision_of(plan: UnmixPlan) -> Decision:
    """What mixes the channels of a stack, and why; where that is to be explained, with the plan of dynamic blocking.

    Without a device that plan is one for an H200.
    """
    options = plan.options
    limits = limits_for(options, plan.device.xp)
    pixels, (filters, channels) = math.prod(plan.metadata.shape[-2:]), plan.matrix.shape
    how: Any = {"density": options.by_density, "clip": options.clip, "named": mixing_name(options.asked_kernel)}
    decided = decide_mixing(plan.stack.metadata.dtype, plan.metadata.dtype, plan.matrix.shape, 1, pixels, limits, **how)
    if not (options.explain or options.explain_for):
        return decided
    blocking = options.asked_kernel if isinstance(options.asked_kernel, BlockingOptions) else AS_PUBLISHED
    there = limits or limits_by_name(choices.DEVICES[0])
    planned = plan_pointwise(filters, channels, pixels, there, blocking)
    lines = ["Plan of dynamic blocking (kernel pointwise):", *planned.explain().splitlines()]
    return replace(decided, reason="\n  ".join([decided.reason, *lines]))


def record_of(plan: UnmixPlan, result: UnmixResult) -> str:
    """What the file says of how the result was made."""
    return json.dumps(_facts(plan, result), indent=1) + "\n"


def _facts(plan: UnmixPlan, result: UnmixResult) -> dict[str, Any]:
    options = plan.options
    return {
        "program": f"xcorr unmix {own_version()}",
        "input": ", ".join(map(str, plan.stack.source.paths)),
        "channel_axis": plan.stack.axis,
        "channels": list(plan.names),
        "matrix": plan.matrix.tolist(),
        "matrix_from": options.stain or str(options.file),
        "condition_number": plan.condition_number,
        "from_log": options.by_density,
        "white": options.white,
        "clip": options.clip,
        "dtype": plan.metadata.dtype.name,
        "device": plan.device.description,
        "kernel": options.kernel,
        "kernel_options": list(options.kernel_options),
        "notes": list(result.notes),
        "clipped_values": result.clipped,
        "versions": versions(),
    }
