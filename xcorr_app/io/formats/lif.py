"""LIF of Leica, through the library readlif: every image of the project by itself."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from xcorr_app.errors import InputError
from xcorr_app.io.declared import FormatImage, Limits, check_image, stamp_of
from xcorr_app.io.formats import Readers, number_of
from xcorr_app.io.source import calibration, make_metadata

_TYPES: dict[int, np.dtype] = {8: np.dtype(np.uint8), 16: np.dtype(np.uint16)}


def images(path: Path) -> list[str]:
    """Numbers of the images."""
    with _READERS.of(path, stamp_of(path)) as file:
        return [str(number) for number in range(file.num_images)]


def scan(path: Path, inner: str, limits: Limits, *, colour: bool = False) -> FormatImage:  # noqa: ARG001 - one protocol
    """Check one image of a file."""
    stamp = stamp_of(path)
    with _READERS.of(path, stamp) as file:
        number = number_of(path, inner, file.num_images, "image")
        image = file.get_image(number)
        dims, bits = image.dims, {int(bits) for bits in image.bit_depth}
        if image.dims.m > 1:
            raise InputError(f"{path}: image {number} is a mosaic of {dims.m} tiles; stitch it and export OME-TIFF")
        stored = {8 if depth <= 8 else max(16, depth) for depth in bits}
        if len(stored) != 1 or not stored <= set(_TYPES):
            raise InputError(f"{path}: image {number} has {sorted(bits)} bits a pixel; export it as OME-TIFF")
        sizes = {"T": dims.t, "Z": dims.z, "C": image.channels, "Y": dims.y, "X": dims.x}
        dtype = _TYPES[stored.pop()]
        check_image(path, limits, sizes, dtype)
        # Pixels for each micrometre, planes for each micrometre, frames for each second.
        per_x, per_y, per_z, per_second = (*image.scale, None, None, None, None)[:4]
        of_stack = per_y, per_x, per_z if dims.z > 1 else None, per_second if dims.t > 1 else None
        y, x, z, time = (1 / abs(scale) if scale else None for scale in of_stack)
        known = calibration((y, x), "µm", (z, "µm"), (time, "s"))
        metadata = replace(make_metadata(sizes, "TZCYX", dtype, "ome"), **known)

    def plane(t: int, z: int, c: int) -> np.ndarray:
        with _READERS.of(path, stamp) as file:
            # Pillow gives images of 16 bits in a type of its own, with the same values.
            return np.asarray(file.get_image(number).get_frame(z=z, t=t, c=c), dtype)

    return FormatImage(path, metadata, plane, stamp)


_READERS = Readers("readlif.reader", lambda reader, file: reader.LifFile(file))
