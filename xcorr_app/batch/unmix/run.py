"""A run of ``xcorr unmix``: the channels of every series found are mixed."""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from xcorr_app.batch.unmix.options import UnmixOptions
from xcorr_app.correlation.engines import limits_of
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
from xcorr_app.gpu.runtime.limits import H200
from xcorr_app.gpu.runtime.select import Device, select_device
from xcorr_app.io import Discovery, SeriesSpec, Source, StackMetadata, discover, scan_file
from xcorr_app.io.matrices import read_matrix, read_spectra
from xcorr_app.io.source import plane_positions
from xcorr_app.pipeline.new_channels import with_new_channels
from xcorr_app.pipeline.planes import HostPlanes, over_planes, write_planes
from xcorr_app.pipeline.resources import StackResources
from xcorr_app.pipeline.work import OneFile, StackResult

_ILL_CONDITIONED = 100


class Mixing(NamedTuple):
    """A matrix."""

    matrix: np.ndarray
    names: tuple[str, ...]
    """Of the rows; empty where they are not known."""
    condition_number: float | None = None
    """Of the spectra that were given; None where there are none."""

    @property
    def notes(self) -> list[str]:
        """How far noise grows when spectra are separated."""
        if self.condition_number is None:
            return []
        advice = "; the dyes can hardly be told apart, expect noise" * (self.condition_number > _ILL_CONDITIONED)
        return [f"Condition number of the spectra: {self.condition_number:.3g}{advice}"]


def mixing_of(options: UnmixOptions) -> Mixing:
    """Read or look up the matrix."""
    if options.stain is not None:
        return Mixing(*stain_matrix(options.stain))
    if options.matrix is not None:
        table, file = read_matrix(options.matrix), options.matrix
    else:
        assert options.spectra is not None  # noqa: S101 - one of the three is given
        table, file = read_spectra(options.spectra), options.spectra
    try:
        if options.matrix is not None:
            return Mixing(checked_matrix(table.matrix), table.names)
        inverse = checked_matrix(inverted_spectra(table.matrix))
        return Mixing(inverse, table.names, condition_number(table.matrix))
    except ArgumentError as error:
        raise InputError(f"{file}: {error}") from error


def misfit(shape: tuple[int, ...], channels: int, options: UnmixOptions) -> str:
    """Say what a matrix of this shape needs in place of so many channels, and what may have been meant."""
    rows, columns = shape
    if options.stain:
        return f"stains {options.stain} needs {columns}"
    needs = f"{options.spectra or options.matrix} needs {columns}"
    if rows != channels:
        return needs
    if options.spectra:
        return f"{needs}; it fits when transposed: give one row per channel and one column per dye"
    return (
        f"{needs}; it fits when transposed: --matrix takes one row per channel of the result; spectra as measured, "
        "one column per dye, are for --spectra"
    )


class Unmix(OneFile[UnmixOptions]):
    """Mixes the channels of stacks."""

    program = "xcorr unmix"
    done = "unmixed"
    less_memory = "cut the image into parts, or use a machine with more"

    @cached_property
    def _mixing(self) -> Mixing:
        return mixing_of(self.options)

    @classmethod
    def chosen_device(cls, options: UnmixOptions) -> Device:
        """Choose the device, and refuse what cannot run there, or a matrix that cannot be used."""
        device = options.computes_on(select_device(options.device))
        mixing_of(options)
        return device

    @classmethod
    def found(cls, inputs: Sequence[Path], options: UnmixOptions) -> Discovery:
        """Find the stacks.

        Files with one page are one each, unless the layout says otherwise, T holds the channels, or names number them.
        """
        single: Literal["frames", "stacks"] = "frames" if options.channel_axis == "T" else "stacks"
        return discover(inputs, options.layout, options.limits, partial(scan_file, colour=True), single=single)

    def decide(self, spec: SeriesSpec) -> Decision:
        """What mixes the channels of a stack; where that is to be explained, with the plan of dynamic blocking.

        Without a device that plan is one for an H200.
        """
        (source, metadata), options, matrix = self._checked(spec), self.options, self._mixing.matrix
        limits, pixels = limits_of(self.device.xp), math.prod(metadata.shape[-2:])
        how: Any = {"density": options.by_density, "clip": options.clip, "named": mixing_name(options.asked_kernel)}
        types = source.metadata.dtype, metadata.dtype
        decided = decide_mixing(*types, matrix.shape, 1, pixels, limits, **how)
        if not options.explain:
            return decided
        blocking = options.asked_kernel if isinstance(options.asked_kernel, BlockingOptions) else AS_PUBLISHED
        filters, channels = matrix.shape
        planned = plan_pointwise(filters, channels, pixels, limits or H200, blocking)
        lines = ["Plan of dynamic blocking (kernel pointwise):", *planned.explain().splitlines()]
        return replace(decided, reason="\n  ".join([decided.reason, *lines]))

    def begin(self, spec: SeriesSpec, resources: StackResources, *, ahead: bool = False) -> HostPlanes | None:
        """See `Work`; None of colour images, which are read whole: three channels at once."""
        source, _ = self._checked(spec)
        if spec.samples > 1:
            return None
        known, axis = source.metadata, self.options.channel_axis
        # All channels of one place after the other.
        ordered = plane_positions(known, known.axes[:-2].replace(axis, "") + axis)
        return resources.begin(HostPlanes(source, ordered), self.device.xp, once=True, ahead=ahead)

    def process(self, spec: SeriesSpec, resources: StackResources, opened: HostPlanes | None) -> StackResult:
        """See `Work`: all channels of one place together.

        Where a device's memory does not suffice for a place, the CPU mixes it and those after it.
        """
        options, mixing, (source, metadata) = self.options, self._mixing, self._checked(spec)
        sides, number = metadata.shape[-2:], mixing.matrix.shape[1]
        places = plane_positions(metadata, metadata.axes[:-2].removesuffix("C"))

        def job(start: int, stop: int, xp: Any) -> tuple[Array, int]:
            if opened is None:
                planes = xp.asarray(np.stack([source.plane(**place) for place in places[start:stop]]))
            else:
                chunk = opened.read_for(xp, start * number, stop * number)
                for plane in sorted(chunk.unreadable):
                    raise InputError(chunk.unreadable[plane])
                planes = chunk.frames.reshape(stop - start, number, *sides)
            how: Any = {name: getattr(options, name) for name in ("white", "clip", "dtype")}
            how["kernel"] = options.asked_kernel if is_device_array(planes) else "auto"
            return unmix_counted(planes, mixing.matrix, from_log=options.by_density, **how)

        target = self.target(spec.name)
        clipped, notes, pixels = 0, [*spec.notes, *mixing.notes], number * math.prod(sides)
        with resources.step("unmix"), resources.writer(target, metadata) as writer:
            mixed = over_planes(self.device.xp, len(places), pixels, job, ("unmix", "mixed"), resources.progress, notes)
            for planes, beyond in mixed:
                clipped += beyond
                write_planes(writer, planes)
                del planes  # not kept while the next ones are computed
        resources.close()
        facts = {
            "shape": list(metadata.shape),
            "axes": metadata.axes,
            "dtype": metadata.dtype.name,
            "channel_axis": options.channel_axis,
            "channels": list(mixing.names),
            "matrix": mixing.matrix.tolist(),
            "condition_number": mixing.condition_number,
            "clipped_values": clipped,
            "notes": [*notes, *resources.notes],
        }
        return StackResult(facts, [target], facts)

    def _checked(self, spec: SeriesSpec) -> tuple[Source, StackMetadata]:
        """A stack whose matrix fits, and what is known of the result; no pixel is read."""
        options, mixing, source, path = self.options, self._mixing, spec.open(), spec.paths[0]
        old, axis = source.metadata, options.channel_axis
        if axis not in old.axes:
            others = " or ".join(other for other in old.axes[:-2] if other in "TZC")
            choice = (
                f"choose the one that holds them with --channel-axis {others}" if others else "it is a single image"
            )
            raise InputError(f"{path}: has axes {old.axes} and no axis {axis} of channels; {choice}")
        if spec.samples > 1 and axis != "C":
            raise InputError(f"{path}: is a colour image, whose channels are its colours; use --channel-axis C")
        if mixing.matrix.shape[1] != old.sizes[axis]:
            raise InputError(
                f"{path}: has {old.sizes[axis]} channels along {axis} (axes {old.axes}), "
                f"{misfit(mixing.matrix.shape, old.sizes[axis], options)}"
            )
        if axis != "C" and "C" in old.axes:
            raise InputError(
                f"{path}: has axes {old.axes}; with --channel-axis {axis} the result would have two axes of "
                "channels: save one part of C as a file of its own"
            )
        dtype = mixed_type(old.dtype, options.dtype, from_log=options.by_density)
        return source, with_new_channels(old, axis, len(mixing.matrix), mixing.names, dtype)
