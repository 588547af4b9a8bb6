"""AVI and MP4 videos, decoded by ffmpeg: their luminance, or red, green and blue where one channel is asked for.

A video can only be decoded in order. So its frames are decoded once, into a file without a name in the temporary
folder, which is mapped; every frame is then at hand. Compression of videos moves details between frames: measure
what a camera wrote without loss where there is a choice.
"""

import math
import tempfile
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np

from xcorr_app.errors import DamagedFileError
from xcorr_app.io.declared import FormatImage, Limits, check_image, check_unchanged, stamp_of
from xcorr_app.io.opened import library, parsing
from xcorr_app.io.source import make_metadata

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
    lock, kept = threading.Lock(), list[np.ndarray]()

    def plane(t: int, _z: int, _c: int) -> np.ndarray:
        with lock:
            if not kept:
                check_unchanged(path, stamp)
                kept.append(_decoded(path, (count, height, width, samples)[: 4 if colour else 3]))
        frame: np.ndarray = kept[0][t]
        return np.moveaxis(frame, -1, 0) if colour else frame

    return FormatImage(path, metadata, plane, stamp, samples)


def _decoded(path: Path, shape: tuple[int, ...]) -> np.ndarray:
    """The frames of a video, decoded when the first one is asked for."""
    ffmpeg, size = library("imageio_ffmpeg", "formats", path), math.prod(shape[1:])
    with tempfile.TemporaryFile(prefix="xcorr-video-") as file:
        # As many frames as the file has: none repeated or left out to keep a rate.
        stream = ffmpeg.read_frames(
            str(path),
            pix_fmt="gray" if len(shape) == 3 else "rgb24",
            bits_per_pixel=8 * math.prod(shape[3:]),
            output_params=["-fps_mode", "passthrough"],
        )
        next(stream)
        count = 0
        for frame in stream:
            if len(frame) != size:
                raise DamagedFileError(f"{path}: frame {count} has {len(frame)} bytes, declared are {size}")
            file.write(frame)
            count += 1
            if count > shape[0]:
                break
        if count != shape[0]:
            raise DamagedFileError(f"{path}: {count} frames can be decoded, {shape[0]} are declared; it is damaged")
        file.flush()
        return np.memmap(file, np.uint8, "r", shape=shape)
