"""What ImageJ and tifffile say of a TIFF file in its description, read and rewritten without losing any.

ImageJ's is lines of ``key=value`` (ImageJ 1.x, ij.io.FileInfo, ij.io.TiffEncoder, ij.io.FileOpener.decodeDescription),
tifffile's, by which it marks plain files, JSON: ``{"shape": [...], "axes": "..."}``.
"""

import json
import math
import re
from pathlib import Path
from typing import Any, NamedTuple

from xcorr_app.errors import DamagedFileError, InputError
from xcorr_app.io.opened import bounded_int, parsing, positive
from xcorr_app.io.source import Resolution, StackMetadata, calibration

_COUNTS = ("images", "channels", "slices", "frames")
_NO_UNIT = {"", "pixel", "pixels", "inch"}


def is_imagej(description: bytes) -> bool:
    """Tell whether an ImageDescription was written for ImageJ."""
    return description.startswith(b"ImageJ=")


def parse_imagej(
    path: Path, description: bytes, found: int, resolution: Resolution | None = None
) -> tuple[dict[str, int], dict[str, Any]]:
    """Sizes and calibration from an ImageJ description of a file with `found` pages, and its tags of resolution.

    Stacks without any named dimension count as T. A description without any count says nothing of how many images
    there are, as other programs write it: ImageJ then takes the pages it finds, and so does this.
    """
    values = dict(_lines(description))
    counts = {}
    for key in _COUNTS:
        text = values.get(key, "1")
        try:
            counts[key] = bounded_int(text)
        except ValueError:
            counts[key] = 0
        if counts[key] < 1:
            raise DamagedFileError(f"{path}: ImageJ's description says {key}={text[:40]}")
    if not any(key in values for key in _COUNTS):
        counts["images"] = found
    order = values.get("order", "xyczt").lower()
    if order not in ("xyczt", "default"):
        raise InputError(f"{path}: ImageJ planes in order {order} are not read; save the stack again as xyczt")
    product = counts["channels"] * counts["slices"] * counts["frames"]
    if product == 1:
        counts["frames"] = counts["images"]
    elif "images" in values and product != counts["images"]:
        raise DamagedFileError(
            f"{path}: ImageJ's description says {counts['images']} images but {counts['channels']} channels x "
            f"{counts['slices']} slices x {counts['frames']} frames"
        )
    named = _unescape(values.get("unit", "").strip())
    unit = None if named in _NO_UNIT else named
    pixel = (pixel_size(resolution) if unit else None) or (None, None)
    time = positive(values.get("finterval")), _unescape(values.get("tunit", "sec").strip())
    known = calibration(pixel, unit, (positive(values.get("spacing")), unit), time) | {"unit": unit}
    return {"T": counts["frames"], "Z": counts["slices"], "C": counts["channels"]}, known


def pixel_size(resolution: Resolution | None) -> tuple[float, float] | None:
    """Return (row, column) size of a pixel from resolution tags; None where they say nothing."""
    if resolution is None or 0 in (*resolution.x, *resolution.y):
        return None
    return resolution.y[1] / resolution.y[0], resolution.x[1] / resolution.x[0]


def build_imagej(metadata: StackMetadata) -> bytes:
    """Write the description of a stack: its own lines, with counts and calibration brought up to date."""
    old = _lines(metadata.tiff.description) if metadata.tiff and is_imagej(metadata.tiff.description) else []
    lines = dict(old or [("ImageJ", "1.54f")])
    sizes = metadata.sizes
    counts = {"images": metadata.planes, "channels": sizes["C"], "slices": sizes["Z"], "frames": sizes["T"]}
    for key, count in counts.items():
        lines.pop(key, None)
        if count > 1:
            lines[key] = str(count)
    if sizes["C"] > 1 or sizes["T"] > 1:
        lines.setdefault("hyperstack", "true")
    if sizes["C"] > 1:
        lines.setdefault("mode", "composite")
    if metadata.unit is not None and _unescape(lines.get("unit", "").strip()) != metadata.unit:
        lines["unit"] = metadata.unit
    for key, number in (("spacing", metadata.z_step), ("finterval", metadata.time_increment)):
        if number is not None and positive(lines.get(key)) != number:
            lines[key] = repr(float(number))
        if number is None and metadata.kept is not None and key == {"T": "finterval", "Z": "spacing"}[metadata.kept[0]]:
            lines.pop(key, None)
    if metadata.time_unit not in (None, "sec") and "finterval" in lines:
        lines["tunit"] = str(metadata.time_unit)
    lines.setdefault("loop", "false")
    # The counts come right after the version, as ImageJ writes them.
    first = [key for key in ("ImageJ", *counts) if key in lines]
    text = "".join(f"{key}={lines[key]}\n" for key in [*first, *(key for key in lines if key not in first)])
    return re.sub(r"[^\x00-\x7f]", lambda match: f"\\u{ord(match[0]):04X}", text).encode("ascii")


def _lines(description: bytes) -> list[tuple[str, str]]:
    text = description.rstrip(b"\0")
    try:
        decoded = text.decode()
    except UnicodeDecodeError:
        decoded = text.decode("latin-1")
    return [(key, value) for line in decoded.split("\n") if "=" in line for key, value in [line.split("=", 1)]]


def _unescape(text: str) -> str:
    return re.sub(r"\\u([0-9a-fA-F]{4})", lambda match: chr(int(match[1], 16)), text)


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
