"""A source of planes seen as the frames that are measured, and as the planes that are moved."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from xcorr_app.batch.align.options import AlignOptions
from xcorr_app.errors import InputError
from xcorr_app.io import HeldSource, SeriesSpec, Source
from xcorr_app.io.reading import is_plain, read_planes
from xcorr_app.pipeline.resources import StackResources
from xcorr_app.pipeline.stack_upload import StackUpload
from xcorr_app.registration.stack.frames import Chunk, Frames
from xcorr_app.registration.stack.passes import is_shared


@dataclass(frozen=True)
class SourceFrames:
    """Frames of one channel along one axis; planes along the other axis are averaged for measuring.

    With CuPy as `xp`, frames are handed out as device arrays. Raises InputError where there is no such channel.
    """

    source: Source
    axis: Literal["T", "Z"]
    channel: int
    xp: Any

    def __post_init__(self) -> None:
        channels = self.source.sizes["C"]
        if self.channel >= channels:
            raise InputError(f"{self.source.paths[0]}: has {channels} channel(s): --align-channel counts from 0")

    @property
    def count(self) -> int:
        """Number of frames."""
        return self.source.sizes[self.axis]

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.source.sizes["Y"], self.source.sizes["X"]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of a pixel as stored."""
        return self.source.metadata.dtype

    @property
    def read_dtype(self) -> np.dtype[Any]:
        """Type of a pixel of what is read: means are float64."""
        return self.dtype if self.averaged == 1 else np.dtype(np.float64)

    @property
    def is_plain(self) -> bool:
        """Whether who reads them side by side has to wait for each other."""
        return is_plain(self.source)

    @property
    def averaged(self) -> int:
        """How many planes are averaged into one measured frame."""
        return self.source.sizes["Z" if self.axis == "T" else "T"]

    def read(self, start: int, stop: int) -> Chunk:
        """Read frames; one that cannot be read is zero and named with the reason."""
        if self.averaged == 1:
            frames, errors = self._planes([self._position(i, 0) for i in range(start, stop)])
            unreadable = {start + i: str(error) for i, error in errors.items()}
        else:
            frames, unreadable = self._averages(start, stop)
        return Chunk(start, self.xp.asarray(frames), unreadable)

    def fill(self, start: int, stop: int, out: np.ndarray) -> dict[int, str]:
        """Read frames into a buffer; returns why some cannot be read, by frame number."""
        if self.averaged > 1:
            out[:], unreadable = self._averages(start, stop)
            return unreadable
        positions = [self._position(i, 0) for i in range(start, stop)]
        source = self.source
        errors = source.fill(positions, out) if isinstance(source, HeldSource) else read_planes(source, positions, out)
        return {start + i: str(error) for i, error in errors.items()}

    def on_host(self) -> SourceFrames:
        """Return the same frames, handed out as NumPy arrays."""
        return replace(self, xp=np)

    def origin(self, frame: int) -> tuple[str, int]:
        """Name of the file and page in it that a frame comes from (the first of the planes averaged)."""
        path, page = self.source.origin(**self._position(frame, 0))
        return path.name, page

    def _planes(self, positions: list[dict[str, int]]) -> tuple[np.ndarray, dict[int, InputError]]:
        if isinstance(self.source, HeldSource):
            return self.source.planes(positions)
        planes = np.empty((len(positions), *self.shape), self.dtype)
        return planes, read_planes(self.source, positions, planes)

    def _averages(self, start: int, stop: int) -> tuple[np.ndarray, dict[int, str]]:
        """Means over the other axis, float64."""
        frames = np.zeros((stop - start, *self.shape))
        unreadable: dict[int, str] = {}
        for i in range(start, stop):
            planes, errors = self._planes([self._position(i, other) for other in range(self.averaged)])
            if errors:
                unreadable[i] = str(next(iter(errors.values())))
                continue
            for plane in planes:
                frames[i - start] += plane
        return frames / self.averaged, unreadable

    def _position(self, frame: int, other: int) -> dict[str, int]:
        along, across = ("t", "z") if self.axis == "T" else ("z", "t")
        return {along: frame, across: other, "c": self.channel}


@dataclass(frozen=True)
class BegunStack:
    """A stack of which reading has begun."""

    frames: SourceFrames
    measured: Frames
    """The same, or on the way to the device."""

    @property
    def source(self) -> Source:
        """Where the frames come from."""
        return self.frames.source

    @property
    def to_measure(self) -> Frames:
        """The frames that are measured: an array on the device, once all of a stack that fits there has arrived.

        Workers that share passes walk over the ranges of frames that are read, whether the stack fits or not.
        """
        if isinstance(self.measured, StackUpload) and not is_shared():
            return self.measured.settled()
        return self.measured


def begin_stack(spec: SeriesSpec, options: AlignOptions, xp: Any, resources: StackResources) -> BegunStack:
    """Open a stack and begin to read it, unless that was done ahead."""
    begun = resources.begun(lambda: _begun(spec, options, xp, resources))
    assert begun is not None  # noqa: S101 - for the type checker
    return begun


def begin_ahead(spec: SeriesSpec, options: AlignOptions, xp: Any, resources: StackResources) -> None:
    """Begin to read a stack while another is worked on, if that takes nothing from it: if a device has room for both.

    A CPU that reads ahead would not measure meanwhile, and the system is told of the next stack.
    """
    if xp is not np:
        resources.begun(lambda: _begun(spec, options, xp, resources, ahead=True))


def _begun(
    spec: SeriesSpec, options: AlignOptions, xp: Any, resources: StackResources, *, ahead: bool = False
) -> BegunStack | None:
    source = spec.open()
    frames = SourceFrames(source, choose_axis(source, options.axis), options.first_channel, xp)
    # Frames that are all there is of the stack are kept once: where they are measured.
    alone = xp is not np and frames.count == source.metadata.planes
    elsewhere = alone and resources.fits_on_device(source.metadata.planes * source.metadata.plane_bytes)
    if ahead and not elsewhere:
        return None
    elsewhere = elsewhere or (xp is np and is_plain(source) and not resources.keeps_plain(source))
    frames = replace(frames, source=resources.open(source, elsewhere=elsewhere))
    return BegunStack(frames, resources.on_device(frames, xp))


def choose_axis(source: Source, wanted: Literal["T", "Z"] | None) -> Literal["T", "Z"]:
    """Axis to align along: the one asked for, else T, else Z where there is no T."""
    sizes = source.sizes
    if wanted is not None:
        other: Literal["T", "Z"] = "Z" if wanted == "T" else "T"
        if sizes[wanted] == 1 and sizes[other] > 1:
            raise InputError(
                f"{source.paths[0]}: has one plane along {wanted} and {sizes[other]} along {other}; "
                f"leave --axis out or use --axis {other}"
            )
        return wanted
    return "Z" if sizes["T"] == 1 and sizes["Z"] > 1 else "T"
