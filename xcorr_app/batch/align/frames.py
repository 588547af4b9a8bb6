"""A source of planes seen as the frames that are measured, and the images that options name."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from numpy.typing import NDArray

from xcorr_app.batch.align.options import AlignOptions
from xcorr_app.errors import InputError
from xcorr_app.gpu.runtime.arrays import Array
from xcorr_app.io import Source, read_stack, scan_file
from xcorr_app.io.finding.scan import scan_channel
from xcorr_app.io.source import ImageFile, plane_positions
from xcorr_app.pipeline.planes import HostPlanes
from xcorr_app.pipeline.stack_upload import StackUpload
from xcorr_app.registration.correction import CorrectedFrames, Correction, correction_for
from xcorr_app.registration.stack.frames import Frames


@dataclass(frozen=True)
class SourceFrames(HostPlanes):
    """Frames of one channel along one axis; planes along the other axis are averaged for measuring."""

    axis: Literal["T", "Z"] = "T"
    channel: int = 0

    def origin(self, frame: int) -> tuple[str, int]:
        """Name of the file and page in it that a frame comes from (the first of the planes averaged)."""
        path, page = self.source.origin(**self.positions[frame * self.averaged])
        return path.name, page

    def origins(self) -> list[tuple[str, int]]:
        """The same of all frames."""
        return [self.origin(frame) for frame in range(self.count)]


def frames_along(source: Source, axis: Literal["T", "Z"], channel: int, xp: Any) -> SourceFrames:
    """Frames of a channel along an axis. Raises InputError where there is no such channel."""
    if channel >= (channels := source.sizes["C"]):
        raise InputError(f"{source.paths[0]}: has {channels} channel(s): --channel counts from 0")
    along, across = ("T", "Z") if axis == "T" else ("Z", "T")
    positions = [at | {"c": channel} for at in plane_positions(source.metadata, along + across)]
    return SourceFrames(source, positions, source.sizes[across], xp, axis=axis, channel=channel)


def frames_of(source: Source, options: Any, xp: Any, channel: int = 0) -> SourceFrames:
    """Frames of a channel along the axis that options name, else T, else Z where there is no T."""
    sizes, wanted = source.sizes, options.axis
    usual: Literal["T", "Z"] = "Z" if sizes["T"] == 1 and sizes["Z"] > 1 else "T"
    if wanted is not None and wanted != usual and sizes[wanted] == 1 and sizes[usual] > 1:
        raise InputError(
            f"{source.paths[0]}: has one plane along {wanted} and {sizes[usual]} along {usual}; "
            f"leave --axis out or use --axis {usual}"
        )
    return frames_along(source, wanted or usual, channel, xp)


def settled(frames: Frames) -> Frames:
    """Frames as an array on the device, once all of a stack that fits there has arrived; else as they are."""
    return frames.settled() if isinstance(frames, StackUpload) else frames


def correction_of(options: AlignOptions, frames: Frames) -> Correction | None:
    """Correction of a stack; None where none was asked for."""
    if not options.corrects:
        return None
    background = options.background
    return correction_for(
        frames,
        _image(options.flat, options),
        _image(options.dark, options),
        _image(background, options) if isinstance(background, Path) else background,
    )


def corrected(frames: Frames, correction: Correction | None) -> Frames:
    """Frames as they are measured."""
    return frames if correction is None else CorrectedFrames(frames, correction)


def check_correction(options: AlignOptions, frames: SourceFrames) -> None:
    """Refuse to write corrected frames of several channels, of which the images show one."""
    if options.correct and frames.source.sizes["C"] > 1:
        raise InputError(f"{frames.source.paths[0]}: has several channels, and --correct images of one: use --channel")


def _image(path: Path | None, options: AlignOptions) -> NDArray[Any] | None:
    if path is None:
        return None
    stack = read_stack(path, limits=options.limits)
    if stack.data.ndim != 2:
        raise InputError(f"{path}: holds axes {stack.metadata.axes}; to correct by, give a single image")
    return stack.data


def reference_of(options: AlignOptions, frames: SourceFrames) -> str | int | Array:
    """Reference as the measurement takes it; a file is read here."""
    if not isinstance(options.reference, Path):
        return options.reference
    image = scan_reference(options)
    sizes = image.metadata.sizes
    if sizes["T"] * sizes["Z"] > 1:
        raise InputError(f"{options.reference}: holds {sizes['T'] * sizes['Z']} images; a reference is a single one")
    channel = frames.channel if sizes["C"] > 1 else 0
    if channel >= sizes["C"]:
        raise InputError(f"{options.reference}: has {sizes['C']} channels; --channel {channel} does not exist")
    plane = image.read(image.page_at(0, 0, channel))
    if plane.shape != frames.shape:
        raise InputError(
            f"{options.reference}: is {plane.shape[0]} x {plane.shape[1]}, the frames are "
            f"{frames.shape[0]} x {frames.shape[1]}; the reference must have the size of a frame"
        )
    return frames.xp.asarray(plane)


def scan_reference(options: AlignOptions) -> ImageFile:
    """Check the file of a reference image; of a colour image, the channel that is measured is taken."""
    path = Path(str(options.reference))
    if options.single_channel is None:
        return scan_file(path, options.limits)
    return scan_channel(path, options.limits, channel=options.single_channel, lenient=True)
