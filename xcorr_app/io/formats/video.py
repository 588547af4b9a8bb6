"""AVI and MP4 videos, decoded by ffmpeg: their luminance, or red, green and blue where one channel is asked for.

A video can only be decoded in order. So its frames are decoded once, into a file without a name in the temporary
folder, which is mapped; every frame is then at hand. Compression of videos moves details between frames: measure
what a camera wrote without loss where there is a choice.
"""

from __future__ import annotations

import tempfile
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from xcorr_app.errors import DamagedFileError
from xcorr_app.io.optional import library
from xcorr_app.io.parsing import parsing
from xcorr_app.io.plane_image import FormatImage, check_image, check_unchanged, stamp_of
from xcorr_app.io.source import make_metadata

if TYPE_CHECKING:
    from pathlib import Path

    from xcorr_app.io.limits import Limits

_COLOURS = 3


def scan(path: Path, inner: str, limits: Limits, *, colour: bool = False) -> FormatImage:  # noqa: ARG001 - one protocol
    """Check a video and count its frames, none of which is decoded."""
    ffmpeg = library("imageio_ffmpeg", "formats", path)
    stamp = stamp_of(path)
    with parsing(path, "cannot be read as a video"):
        stream = ffmpeg.read_frames(str(path), pix_fmt="gray", bits_per_pixel=8)
        known = next(stream)
        stream.close()
        width, height = known["source_size"]
        limits.check_plane(path, height, width, np.dtype(np.uint8))
        count, _ = ffmpeg.count_frames_and_secs(str(path))
    samples = _COLOURS if colour else 1
    sizes = {"T": count, "Z": 1, "C": samples, "Y": height, "X": width}
    check_image(path, limits, sizes, np.dtype(np.uint8))
    metadata = make_metadata(sizes, "TCYX", np.dtype(np.uint8), "tiff")
    if known.get("fps", 0) > 0:
        metadata = replace(metadata, time_increment=1 / known["fps"], time_unit="s")
    decoded = _Decoded(path, stamp, (count, height, width), samples)

    def plane(t: int, _z: int, _c: int) -> np.ndarray:
        frame: np.ndarray = decoded.frames()[t]
        return frame if samples == 1 else np.moveaxis(frame, -1, 0)

    return FormatImage(path, metadata, plane, stamp, samples)


class _Decoded:
    """The frames of a video, decoded when the first one is asked for."""

    def __init__(self, path: Path, stamp: tuple[int, ...], shape: tuple[int, int, int], samples: int) -> None:
        self._path, self._stamp, self._samples = path, stamp, samples
        self._shape = shape if samples == 1 else (*shape, samples)
        self._format = "gray" if samples == 1 else "rgb24"
        self._frames: Any = None
        self._lock = threading.Lock()

    def frames(self) -> Any:
        with self._lock:
            if self._frames is None:
                self._frames = self._decode()
            return self._frames

    def _decode(self) -> np.ndarray:
        check_unchanged(self._path, self._stamp)
        ffmpeg = library("imageio_ffmpeg", "formats", self._path)
        size = int(np.prod(self._shape[1:]))
        with tempfile.TemporaryFile(prefix="xcorr-video-") as file:
            # As many frames as the file has: none repeated or left out to keep a rate.
            stream = ffmpeg.read_frames(
                str(self._path),
                pix_fmt=self._format,
                bits_per_pixel=8 * self._samples,
                output_params=["-fps_mode", "passthrough"],
            )
            next(stream)
            count = 0
            for frame in stream:
                if len(frame) != size:
                    raise DamagedFileError(f"{self._path}: frame {count} has {len(frame)} bytes, declared are {size}")
                file.write(frame)
                count += 1
                if count > self._shape[0]:
                    break
            if count != self._shape[0]:
                raise DamagedFileError(
                    f"{self._path}: {count} frames can be decoded, {self._shape[0]} are declared; it is damaged"
                )
            file.flush()
            return np.memmap(file, np.uint8, "r", shape=self._shape)
