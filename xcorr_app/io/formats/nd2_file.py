"""ND2 of Nikon, through the library nd2: every position is an image, channels may be colours of one camera image."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from xcorr_app.errors import InputError
from xcorr_app.io.declared import FormatImage, Limits, check_image, stamp_of
from xcorr_app.io.formats import Readers, number_of
from xcorr_app.io.source import StackMetadata, calibration, make_metadata

_KNOWN = set("TPZCYX")


def images(path: Path) -> list[str]:
    """Numbers of the positions."""
    stamp = stamp_of(path)
    with _READERS.of(path, stamp) as file:
        return [str(number) for number in range(file.sizes.get("P", 1))]


def scan(path: Path, inner: str, limits: Limits, *, colour: bool = False) -> FormatImage:  # noqa: ARG001 - one protocol
    """Check one position of a file."""
    stamp = stamp_of(path)
    with _READERS.of(path, stamp) as file:
        found = dict(file.sizes)
        if odd := set(found) - _KNOWN:
            raise InputError(
                f"{path}: has axes {', '.join(found)}, of which {min(odd)} is not read; convert it to OME-TIFF"
            )
        position = number_of(path, inner, found.get("P", 1), "position")
        sizes = {axis: found.get(axis, 1) for axis in "TZCYX"}
        dtype = np.dtype(file.dtype).newbyteorder("=")
        check_image(path, limits, sizes, dtype)
        # Axes of the sequence in the order in which frames were taken; a frame holds all channels.
        loops = [axis for axis in found if axis not in "CYX"]
        frames = [found[axis] for axis in loops]
        metadata = _calibrated(make_metadata(sizes, "TZCYX", dtype, "ome"), file)

    def plane(t: int, z: int, c: int) -> np.ndarray:
        at = {"T": t, "Z": z, "P": position}
        number = int(np.ravel_multi_index([at[axis] for axis in loops], frames)) if loops else 0
        with _READERS.of(path, stamp) as file:
            return np.asarray(file.read_frame(number).reshape(sizes["C"], sizes["Y"], sizes["X"])[c])

    return FormatImage(path, metadata, plane, stamp)


_READERS = Readers("nd2", lambda nd2, file: nd2.ND2File(file))


def _calibrated(metadata: StackMetadata, file: Any) -> StackMetadata:
    size = file.voxel_size()
    names = [channel.channel.name for channel in (getattr(file.metadata, "channels", None) or ())]
    seconds = [
        loop.parameters.periodMs / 1000
        for loop in (file.experiment or ())
        if loop.type == "TimeLoop" and loop.parameters.periodMs > 0
    ]
    z = size.z if metadata.sizes["Z"] > 1 else None
    known = calibration((size.y, size.x), "µm", (z, "µm"), (seconds[0] if seconds else None, "s"))
    named = tuple(names) if len(names) == metadata.sizes["C"] and any(names) else ()
    return replace(metadata, **known, channel_names=named)
