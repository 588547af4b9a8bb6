"""What is known of a stack, and of the files that hold one."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, NamedTuple, Self, TypeAlias

import numpy as np

from xcorr_app.errors import ArgumentError

Meter: TypeAlias = Callable[[str, float, float, int], None]
"""``meter(stage, begin, end, bytes)``, in seconds of ``time.perf_counter``; called from any thread."""


@contextmanager
def timed(meter: Meter | None, stage: str, size: int = 0) -> Iterator[None]:
    """Tell the meter, if any, of what happens in the block."""
    begin = time.perf_counter()
    try:
        yield
    finally:
        if meter is not None:
            meter(stage, begin, time.perf_counter(), size)


Kind = Literal["ome", "imagej", "tiff", "png"]

#: Types of pixel that are read, measured and written.
PIXEL_TYPES = ("uint8", "uint16", "int16", "uint32", "float32", "float64")


class Resolution(NamedTuple):
    """TIFF resolution tags: numerator and denominator of pixels per unit, and the unit's code."""

    x: tuple[int, int]
    y: tuple[int, int]
    unit: int


@dataclass(frozen=True)
class TiffTags:
    """Tags of the first page that are kept as they were, for writing back.

    Attributes
    ----------
    description
        ImageDescription, untouched: ImageJ's settings, OME-XML, or what a camera wrote.
    resolution
        XResolution, YResolution, ResolutionUnit; None where absent.
    photometric
        PhotometricInterpretation: 0 white is zero, 1 black is zero, 3 palette.
    colormap
        Palette (red, green, blue ramps one after the other) of `photometric` 3.
    byteorder
        ``<`` or ``>``; ImageJ's binary tags depend on it.
    imagej
        ImageJ's labels, lookup tables, display ranges and overlays: byte counts and the block itself.
    """

    description: bytes = b""
    resolution: Resolution | None = None
    photometric: int = 1
    colormap: tuple[int, ...] | None = None
    byteorder: Literal["<", ">"] = "<"
    imagej: tuple[tuple[int, ...], bytes] | None = None


@dataclass(frozen=True)
class ZarrTags:
    """What an OME-Zarr group says besides axes and calibration, for writing back.

    Attributes
    ----------
    version
        ``0.4`` (zarr 2) or ``0.5`` (zarr 3).
    attributes
        Its other attributes, the ``omero`` block among them, as JSON.
    translation
        Place of the first pixel, by axis, in the axis's unit.
    """

    version: str = "0.5"
    attributes: str = "{}"
    translation: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class StackMetadata:
    """Axes, type and calibration of a stack.

    Attributes
    ----------
    axes
        Order of the axes in the file, without those of size one: a subset of T, Z, C in any order, then ``YX``.
    shape
        Sizes in that order.
    dtype
        Type of a pixel, native byte order.
    kind
        Where it comes from and what it is written back as; ``png`` is written as plain TIFF.
    pixel_size
        (row, column) in `unit`; None where the file does not say.
    z_step
        Distance of neighbouring Z planes in `z_unit`.
    time_increment
        Time between frames in `time_unit`.
    channel_names
        One name a channel, or empty.
    tiff
        Tags to write back unchanged; None for PNG and for arrays.
    zarr
        What OME-Zarr said besides; None for all other files.
    kept
        Axis, and numbers along it of the frames of the input that are here; None where all are.
    """

    axes: str
    shape: tuple[int, ...]
    dtype: np.dtype
    kind: Kind = "tiff"
    pixel_size: tuple[float, float] | None = None
    unit: str | None = None
    z_step: float | None = None
    z_unit: str | None = None
    time_increment: float | None = None
    time_unit: str | None = None
    channel_names: tuple[str, ...] = ()
    tiff: TiffTags | None = None
    zarr: ZarrTags | None = None
    kept: tuple[Literal["T", "Z"], tuple[int, ...]] | None = None

    def __post_init__(self) -> None:
        if (
            not self.axes.endswith("YX")
            or len(set(self.axes)) != len(self.axes)
            or not set(self.axes) <= set("TZCYX")
            or len(self.axes) != len(self.shape)
            or min(self.shape) < 1
        ):
            raise ArgumentError(
                f"axes {self.axes!r} with shape {self.shape}: axes are some of T, Z, C followed by YX, "
                "each once, with one positive size each"
            )
        if self.dtype.name not in PIXEL_TYPES:
            raise ArgumentError(f"dtype {self.dtype}: stacks hold {', '.join(PIXEL_TYPES)}")
        if self.channel_names and len(self.channel_names) != self.sizes["C"]:
            raise ArgumentError(f"{len(self.channel_names)} channel names for {self.sizes['C']} channels")

    @property
    def sizes(self) -> dict[str, int]:
        """Size of every axis, in the order T, Z, C, Y, X; one where the stack has no such axis."""
        known = dict(zip(self.axes, self.shape, strict=True))
        return {axis: known.get(axis, 1) for axis in "TZCYX"}

    @property
    def planes(self) -> int:
        """Number of (Y, X) planes."""
        return math.prod(self.shape[:-2])

    @property
    def plane_bytes(self) -> int:
        """Bytes of one plane."""
        return self.shape[-2] * self.shape[-1] * self.dtype.itemsize

    def with_plane_shape(self, height: int, width: int, top: int = 0, left: int = 0) -> Self:
        """Return the same stack with planes of another size, as after cropping to begin at row `top`, column `left`."""
        zarr = self.zarr
        if zarr is not None and (top or left):
            row, column = self.pixel_size or (1.0, 1.0)
            moved = {"Y": top * row, "X": left * column}
            places = tuple((axis, place + moved.get(axis, 0.0)) for axis, place in zarr.translation)
            zarr = replace(zarr, translation=places)
        return replace(self, shape=(*self.shape[:-2], height, width), zarr=zarr)

    def with_frames(self, axis: Literal["T", "Z"], frames: Sequence[int]) -> Self:
        """Return the stack of some of its frames, at least one; a distance in time or Z that has no one value goes."""
        if len(frames) == self.sizes[axis]:
            return self
        sizes = {name: size for name, size in zip(self.axes, self.shape, strict=True) if name != axis}
        if len(frames) > 1:
            sizes |= {axis: len(frames)}
        axes = "".join(name for name in self.axes if name in sizes)
        steps = {after - before for before, after in pairwise(frames)}
        step = steps.pop() if len(steps) == 1 else None
        name = {"T": "time_increment", "Z": "z_step"}[axis]
        distance = getattr(self, name)
        changes: dict[str, Any] = {name: distance * step if distance and step else None, "kept": (axis, tuple(frames))}
        return replace(self, axes=axes, shape=tuple(sizes[name] for name in axes), **changes)


def runs_of(numbers: Sequence[int]) -> str:
    """``0-4, 6, 8-11``."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    return ", ".join("-".join(map(str, run)) for run in runs)


def make_metadata(sizes: dict[str, int], order: str, dtype: np.dtype, kind: Kind) -> StackMetadata:
    """Metadata of a stack whose axes `order` may hold axes of size one, which are left out."""
    axes = "".join(axis for axis in order if axis in "YX" or sizes[axis] > 1)
    return StackMetadata(axes, tuple(sizes[axis] for axis in axes), dtype, kind)


def calibration_of(metadata: StackMetadata) -> dict[str, Any]:
    """Distances and times of a stack."""
    return {name: getattr(metadata, name) for name in calibration()}


def calibration(
    pixel: tuple[float | None, float | None] = (None, None),
    unit: str | None = None,
    z: tuple[float | None, str | None] = (None, None),
    time: tuple[float | None, str | None] = (None, None),
) -> dict[str, Any]:
    """Distances and times of metadata, each with its unit; what is not above zero is not known."""
    (row, column), (step, step_unit), (increment, time_unit) = pixel, z, time
    known: dict[str, Any] = (
        {"pixel_size": (row, column), "unit": unit} if row and column and min(row, column) > 0 else {}
    )
    known |= {"z_step": step, "z_unit": step_unit} if step and step > 0 else {}
    known |= {"time_increment": increment, "time_unit": time_unit} if increment and increment > 0 else {}
    return dict.fromkeys(("pixel_size", "unit", "z_step", "z_unit", "time_increment", "time_unit")) | known


def plane_number(metadata: StackMetadata, t: int, z: int, c: int) -> int:
    """Place of a plane in the order of the file."""
    at, number = {"T": t, "Z": z, "C": c}, 0
    for axis, size in zip(metadata.axes[:-2], metadata.shape, strict=False):
        number = number * size + at[axis]
    return number


def plane_positions(metadata: StackMetadata, axes: str | None = None) -> list[dict[str, int]]:
    """Position (t, z, c) of every plane, in the order of the file, or along some `axes`, the last one fastest."""
    axes = metadata.axes[:-2] if axes is None else axes
    sizes = [metadata.sizes[axis] for axis in axes]
    return [
        {"t": 0, "z": 0, "c": 0} | dict(zip(axes.lower(), map(int, index), strict=True)) for index in np.ndindex(*sizes)
    ]


class Closable:
    """What is given up when the block ends in which it is used."""

    def close(self) -> None:
        """Give up what is held: nothing, unless a class says otherwise."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class ImageFile:
    """One file that was checked against what it declares; holds no open file."""

    path: Path
    metadata: StackMetadata
    samples: int = 1
    """Values a pixel: 1, or 3 for red, green and blue, which are read together."""

    @property
    def page_count(self) -> int:
        """Number of planes in the file; a colour image counts as one."""
        return self.metadata.planes // self.samples

    @property
    def parts(self) -> Sequence[Any]:
        """The files that the image is in."""
        return (self,)

    def page_at(self, t: int, z: int, c: int) -> int:
        """Page that holds a plane."""
        return t if self.samples > 1 else plane_number(self.metadata, t, z, c)

    def origin(self, page: int) -> tuple[Path, int]:
        """File that holds a page, and page within it."""
        return self.path, page

    def read(self, page: int) -> np.ndarray:
        """Read one page, (Y, X) or (samples, Y, X) in native byte order."""
        raise NotImplementedError

    def read_into(self, pages: Sequence[int], out: np.ndarray, checksum: Any = None) -> None:
        """Read pages into `out`, one entry each; a `checksum` may be told of the bytes."""
        for i, page in enumerate(pages):
            out[i] = self.read(page)
