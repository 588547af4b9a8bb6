"""One file with channels becomes a file of mixed channels, and a record of how."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from xcorr_app.batch.environment import own_version, versions
from xcorr_app.batch.output_file import check_output_file
from xcorr_app.batch.unmix_metadata import mixed_metadata
from xcorr_app.errors import ArgumentError, InputError, LimitError, XcorrError
from xcorr_app.filtering.stains import stain_matrix
from xcorr_app.filtering.unmix import MixedType, checked_matrix, mixed_type, unmix_counted
from xcorr_app.gpu.runtime.arrays import Array, to_host
from xcorr_app.gpu.runtime.memory import attempt, release_unused
from xcorr_app.gpu.runtime.select import Device, select_device
from xcorr_app.io import Limits, StackMetadata, StackWriter, atomic_write_text
from xcorr_app.io.channels import ChannelFile, scan_channels
from xcorr_app.io.mixing_matrix import read_matrix
from xcorr_app.registration.passes import Progress

NOTE = "The device's memory did not suffice for the channels of one image: the CPU mixed them, and those after it."


@dataclass(frozen=True)
class UnmixOptions:
    """What one run of ``xcorr unmix`` is asked to do.

    Raises
    ------
    ArgumentError
        If not exactly one of `matrix` and `stain` is given, or `white` does not belong here.
    """

    matrix: Path | None = None
    stain: str | None = None
    """A name that `stain_matrix` knows; stains are always separated by optical density."""
    channel_axis: str = "C"
    from_log: bool = False
    white: float | None = None
    clip: bool = False
    dtype: MixedType | None = None
    device: str = "auto"
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if (self.matrix is None) == (self.stain is None):
            raise ArgumentError("give either --matrix FILE or --stain NAME")
        if self.white is not None:
            if not self.by_density:
                raise ArgumentError("--white is the intensity of an empty field for --from-log or --stain; add one")
            if not (math.isfinite(self.white) and self.white > 0):
                raise ArgumentError(f"--white {self.white:g}: give the intensity of an empty field, above 0")

    @property
    def by_density(self) -> bool:
        """Whether the optical density is taken first."""
        return self.from_log or self.stain is not None


@dataclass(frozen=True)
class UnmixPlan:
    """A file that was checked, and what will be made of it."""

    file: ChannelFile
    matrix: np.ndarray
    names: tuple[str, ...]
    """Of the rows; empty where they are not known."""
    metadata: StackMetadata
    """Of the result."""
    out: Path
    device: Device
    options: UnmixOptions

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


def plan_unmix(path: Path, out: Path, options: UnmixOptions, *, overwrite: bool = False) -> UnmixPlan:
    """Check the file, the matrix, the output's name and the device; no pixel is read, nothing is written.

    Raises
    ------
    InputError, OutputError, ArgumentError, DeviceError
        If it cannot be done as asked.
    """
    device = select_device(options.device)
    if not out.name.lower().endswith((".tif", ".tiff")):
        raise ArgumentError(f"{out}: mixed channels are written as .tif or .ome.tif; choose one by the ending")
    inputs = (path,) if options.matrix is None else (path, options.matrix)
    check_output_file(out, inputs, overwrite=overwrite)
    file = scan_channels(path, options.channel_axis, options.limits)
    names: tuple[str, ...]
    if options.stain is not None:
        matrix, names = stain_matrix(options.stain)
    else:
        matrix, names = read_matrix(options.matrix or Path())
        try:
            matrix = checked_matrix(matrix)
        except ArgumentError as error:
            raise InputError(f"{options.matrix}: {error}") from error
    if matrix.shape[1] != file.channels:
        what = f"stains {options.stain}" if options.stain else str(options.matrix)
        raise InputError(
            f"{path}: has {file.channels} channels along {file.axis} (axes {file.metadata.axes}), {what} "
            f"needs {matrix.shape[1]}"
        )
    dtype = mixed_type(file.metadata.dtype, options.dtype, from_log=options.by_density)
    metadata = mixed_metadata(file, len(matrix), names, dtype)
    if out.name.lower().endswith((".ome.tif", ".ome.tiff")):
        metadata = replace(metadata, kind="ome")
    plan = UnmixPlan(file, matrix, names, metadata, out, device, options)
    check_output_file(plan.record, inputs, overwrite=overwrite)
    return plan


def run_unmix(plan: UnmixPlan, progress: Progress | None = None) -> UnmixResult:
    """Read, mix and write a plan's channels, all those of one place at a time.

    Where the device's memory does not suffice for a place, the CPU mixes it and those after it.

    Raises
    ------
    InputError
        If a plane cannot be read.
    LimitError
        If the channels of one place need more memory than there is.
    OutputError
        If the file cannot be written; nothing is left behind then.
    """
    tell = progress or (lambda _stage, _done, _total: None)
    axes = plan.metadata.axes[:-2].removesuffix("C")
    sizes = [plan.metadata.sizes[axis] for axis in axes]
    total, clipped, mixer = math.prod(sizes), 0, _Mixer(plan)
    tell("unmix", 0, total)
    try:
        with StackWriter(plan.out, plan.metadata) as writer:
            for done, place in enumerate(np.ndindex(*sizes), 1):
                planes, beyond = mixer.mix(plan.file.read(dict(zip(axes, place, strict=True))))
                for plane in planes:
                    writer.write(plane)
                clipped += beyond
                tell("unmix", done, total)
    except MemoryError as error:
        if isinstance(error, XcorrError):
            raise
        raise LimitError(
            f"{plan.file.path}: its {plan.file.channels} channels of {plan.metadata.shape[-2:]} pixels need more "
            "memory than there is; cut the image into parts, or use a machine with more"
        ) from None
    result = UnmixResult(math.prod(plan.metadata.shape), clipped, mixer.notes)
    atomic_write_text(plan.record, json.dumps(_facts(plan, result), indent=1) + "\n")
    return result


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
            release_unused()
            self._xp, self.notes = np, (NOTE,)
        return self._on(np, channels)

    def _on(self, xp: Any, channels: np.ndarray) -> tuple[np.ndarray, int]:
        options = self._plan.options
        stack: Array = xp.asarray(channels)
        how: Any = {"white": options.white, "clip": options.clip, "dtype": options.dtype}
        planes, beyond = unmix_counted(stack, self._plan.matrix, from_log=options.by_density, **how)
        return to_host(planes), beyond


def _facts(plan: UnmixPlan, result: UnmixResult) -> dict[str, Any]:
    options = plan.options
    return {
        "program": f"xcorr unmix {own_version()}",
        "input": str(plan.file.path),
        "channel_axis": plan.file.axis,
        "channels": list(plan.names),
        "matrix": plan.matrix.tolist(),
        "matrix_from": options.stain or str(options.matrix),
        "from_log": options.by_density,
        "white": options.white,
        "clip": options.clip,
        "dtype": plan.metadata.dtype.name,
        "device": plan.device.description,
        "notes": list(result.notes),
        "clipped_values": result.clipped,
        "versions": versions(),
    }
