"""MRC: tilt series, movies of electron microscopes, volumes; memory-mapped by mrcfile.

Source: MRC2014, doi:10.1016/j.jsb.2015.04.002. Bytes become int16 and half floats float32, without loss.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from xcorr_app.io.declared import FormatImage, Limits, check_image, stamp_of
from xcorr_app.io.opened import library, warnings_as
from xcorr_app.io.source import calibration, make_metadata

_WIDER: dict[str, np.dtype] = {"int8": np.dtype(np.int16), "float16": np.dtype(np.float32)}


def scan(path: Path, inner: str, limits: Limits, *, colour: bool = False) -> FormatImage:  # noqa: ARG001 - one protocol
    """Check an MRC file: a volume has an axis Z, a stack of images an axis T."""
    array, header, is_stack = _mapped(path)
    dtype = _WIDER.get(array.dtype.name, array.dtype.newbyteorder("="))
    sizes = {"T": 1, "Z": 1, "C": 1, "Y": array.shape[-2], "X": array.shape[-1]}
    if array.ndim == 4:
        sizes |= {"T": array.shape[0], "Z": array.shape[1]}
    elif array.ndim == 3:
        sizes["T" if is_stack else "Z"] = array.shape[0]
    check_image(path, limits, sizes, dtype)
    z, y, x = (float(header[name]) for name in "zyx")
    known = calibration((y, x), "Å", (z if sizes["Z"] > 1 else None, "Å"))
    metadata = replace(make_metadata(sizes, "TZYX", dtype, "ome"), **known)
    planes = array.reshape(-1, *array.shape[-2:])

    def plane(t: int, z: int, _: int) -> np.ndarray:
        return np.asarray(planes[t * sizes["Z"] + z], dtype)

    return FormatImage(path, metadata, plane, stamp_of(path))


def _mapped(path: Path) -> tuple[np.ndarray, Any, bool]:
    mrcfile = library("mrcfile", "formats", path)
    # It warns of notes in the header; sizes that do not fit are errors.
    with warnings_as("ignore"), mrcfile.mmap(path, mode="r", permissive=False) as mrc:
        # The map lives as long as the array does.
        return mrc.data, mrc.voxel_size, bool(mrc.is_image_stack()) or path.suffix.lower() != ".mrc"
