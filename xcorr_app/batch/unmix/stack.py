"""One stack with channels becomes a file of mixed channels, and a record of how."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from xcorr_app.batch.unmix.options import UnmixOptions
from xcorr_app.errors import ArgumentError, DeviceMemoryError, InputError
from xcorr_app.filtering.spectra import condition_number, inverted_spectra
from xcorr_app.filtering.stains import stain_matrix
from xcorr_app.filtering.unmix import checked_matrix, mixed_type, unmix_counted
from xcorr_app.gpu.runtime.arrays import Array, is_device_array, to_host
from xcorr_app.gpu.runtime.download import download_in_parts
from xcorr_app.gpu.runtime.memory import attempt, in_parts, release_unused
from xcorr_app.gpu.runtime.select import Device, select_device
from xcorr_app.io import SeriesSpec, StackMetadata, StackWriter, atomic_write_text
from xcorr_app.io.channels import ChannelSource, channels_of, scan_with_colours
from xcorr_app.io.finding.discover import series_of_file
from xcorr_app.io.mixing_matrix import read_matrix, read_spectra
from xcorr_app.io.outputs import Writer
from xcorr_app.pipeline.environment import own_version, versions
from xcorr_app.pipeline.failures import memory_as_limit
from xcorr_app.pipeline.new_channels import with_new_channels
from xcorr_app.pipeline.output_file import check_output_file
from xcorr_app.pipeline.resources import Resources
from xcorr_app.registration.stack.frames import Frames
from xcorr_app.registration.stack.passes import Pass, Progress

NOTE = "The device's memory did not suffice for the channels of one image: the CPU mixed them, and those after it."


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


def mix(plan: UnmixPlan, new: Writer, progress: Progress | None = None, brought: Frames | None = None) -> UnmixResult:
    """Read, mix and write a plan's channels, all those of one place at a time.

    Planes `channels_in_order` that are `brought` to the device are mixed there, many places at once. Where the device's
    memory does not suffice for a place, the CPU mixes it and those after it.
    """
    tell = progress or (lambda _stage, _done, _total: None)
    axes = plan.metadata.axes[:-2].removesuffix("C")
    sizes = [plan.metadata.sizes[axis] for axis in axes]
    total, clipped, mixer = math.prod(sizes), 0, _Mixer(plan)
    tell("unmix", 0, total)
    too_large = (
        f"{plan.stack.path}: its {plan.stack.channels} channels of {plan.metadata.shape[-2:]} pixels need more "
        "memory than there is; cut the image into parts, or use a machine with more"
    )
    with memory_as_limit(too_large), new as writer:
        done = 0
        for stop, planes, beyond in () if brought is None else mixer.brought(brought):
            for part in download_in_parts(planes):
                for plane in part.reshape(-1, *part.shape[-2:]):
                    writer.write(plane)
            done, clipped = stop, clipped + beyond
            tell("unmix", done, total)
        for place in islice(np.ndindex(*sizes), done, None):
            planes, beyond = mixer.mix(plan.stack.read(dict(zip(axes, place, strict=True))))
            for plane in planes:
                writer.write(plane)
            clipped += beyond
            done += 1
            tell("unmix", done, total)
    return UnmixResult(math.prod(plan.metadata.shape), clipped, mixer.notes)


def record_of(plan: UnmixPlan, result: UnmixResult) -> str:
    """What the file says of how the result was made."""
    return json.dumps(_facts(plan, result), indent=1) + "\n"


class _Mixer:
    """Mixes the channels of one place after another: on the plan's device, or on the CPU once its memory ran out."""

    def __init__(self, plan: UnmixPlan) -> None:
        self._plan = plan
        self._xp: Any = plan.device.xp
        self.notes: tuple[str, ...] = ()

    def mix(self, channels: np.ndarray) -> tuple[np.ndarray, int]:
        """Return the mixed channels, in host memory, and the number of values that were clipped."""
        if self._xp is not np:
            if results := attempt(self._on, self._xp, channels):
                return results[0]
            self._give_up()
        planes, beyond = self._on(np, channels)
        return planes, beyond

    def brought(self, frames: Frames) -> Iterator[tuple[int, Array, int]]:
        """Yield places done, mixed channels (n, C, Y, X) on the device, and clipped values; as far as memory allows."""
        channels, shape = self._plan.stack.channels, frames.shape
        count = frames.count // channels

        def job(start: int, stop: int) -> tuple[Array, int]:
            chunk = frames.read(start * channels, stop * channels)
            for number in sorted(chunk.unreadable):
                raise InputError(chunk.unreadable[number])
            return self._mixed(chunk.frames.reshape(stop - start, channels, *shape))

        at_once = Pass(count, channels * shape[0] * shape[1], on_device=True).images_at_once
        try:
            for stop, (planes, beyond) in in_parts(job, count, at_once=at_once):
                yield stop, planes, beyond
        except DeviceMemoryError:
            self._give_up()

    def _give_up(self) -> None:
        """Leave the rest to the CPU."""
        release_unused()
        self._xp, self.notes = np, (NOTE,)

    def _on(self, xp: Any, channels: np.ndarray) -> tuple[np.ndarray, int]:
        planes, beyond = self._mixed(xp.asarray(channels))
        return to_host(planes), beyond

    def _mixed(self, stack: Array) -> tuple[Array, int]:
        options = self._plan.options
        how: Any = {"white": options.white, "clip": options.clip, "dtype": options.dtype}
        how["kernel"] = options.asked_kernel if is_device_array(stack) else "auto"
        return unmix_counted(stack, self._plan.matrix, from_log=options.by_density, **how)


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
