"""The JSON description by which tifffile marks plain TIFF files: ``{"shape": [...], "axes": "..."}``."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, NamedTuple

from xcorr_app.errors import DamagedFileError
from xcorr_app.io.parsing import bounded_int, parsing

if TYPE_CHECKING:
    from pathlib import Path

    from xcorr_app.io.source import StackMetadata


_MAX_AXES = 32


class ShapedSeries(NamedTuple):
    """What one description declares: planes, their axes (empty where not said), and whether one page stands for all."""

    planes: int
    axes: str
    shape: tuple[int, ...]
    truncated: bool


def is_shaped(description: bytes) -> bool:
    """Tell whether an ImageDescription is tifffile's: JSON with a list of sizes, at any place among its keys."""
    if description.startswith(b'{"shape":'):
        return True
    if not description.startswith(b"{") or b'"shape":' not in description:
        return False
    try:
        shape = json.loads(description.rstrip(b"\0"))["shape"]
    except (ValueError, RecursionError):
        return False
    return isinstance(shape, list) and all(isinstance(size, int) for size in shape)


def parse_shaped(path: Path, description: bytes, height: int, width: int) -> ShapedSeries:
    """Read the description of a series whose pages are `height` x `width`."""
    with parsing(path, "its shape description cannot be read"):
        values = json.loads(description.rstrip(b"\0"))
        shape = tuple(bounded_int(str(size)) for size in values["shape"])
        axes = str(values.get("axes", ""))
        truncated = bool(values.get("truncated", False))
    if len(shape) > _MAX_AXES:
        raise DamagedFileError(f"{path}: declares an array of {len(shape)} axes")
    pixels = math.prod(shape)
    if min(shape, default=0) < 1 or pixels % (height * width):
        raise DamagedFileError(f"{path}: declares an array of shape {shape}, its pages are {height} x {width}")
    known = (
        len(axes) == len(shape) and axes.endswith("YX") and set(axes) <= set("TZCYX") and len(set(axes)) == len(axes)
    )
    if not known or shape[-2:] != (height, width):
        axes = ""
    return ShapedSeries(pixels // (height * width), axes, shape, truncated)


def build_shaped(metadata: StackMetadata) -> bytes:
    """Write the description of a stack."""
    return json.dumps({"shape": list(metadata.shape), "axes": metadata.axes}).encode()
