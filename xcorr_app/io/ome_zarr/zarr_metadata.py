"""What OME-Zarr says of an image, read into a `StackMetadata` and written from one.

Axes, scales, translations, names of channels and rendering settings (the ``omero`` block) go the whole way.
Source: OME-NGFF 0.4 and 0.5, https://ngff.openmicroscopy.org.
"""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from xcorr_app.errors import InputError
from xcorr_app.io.source import StackMetadata, ZarrTags, calibration, make_metadata

_UNITS = {
    "µm": "micrometer",
    "nm": "nanometer",
    "mm": "millimeter",
    "cm": "centimeter",
    "m": "meter",
    "pm": "picometer",
    "Å": "angstrom",
    "s": "second",
    "ms": "millisecond",
    "µs": "microsecond",
    "ns": "nanosecond",
    "min": "minute",
    "h": "hour",
    "d": "day",
}
_SHORT = {long: short for short, long in _UNITS.items()}
_OTHER_NAMES = {"um": "µm", "μm": "µm", "micron": "µm", "microns": "µm", "sec": "s", "\\u00B5m": "µm"}
_TYPES = {"T": "time", "C": "channel", "Z": "space", "Y": "space", "X": "space"}
_ORDER = "TCZYX"
"""Of the axes in a file: the format demands time, channel, space."""
_LONGEST_KEPT = 1 << 20


def read_metadata(
    path: Path, attributes: dict[str, Any], shape: tuple[int, ...], dtype: np.dtype
) -> tuple[StackMetadata, str]:
    """Metadata of an image of this shape, and the order of its axes with those of size one."""
    scales = attributes["multiscales"][0]
    axes = [axis if isinstance(axis, dict) else {"name": axis} for axis in scales["axes"]]
    order = "".join(_letter(axis) for axis in axes)
    if len(order) != len(shape) or len(set(order)) != len(order) or not order.endswith("YX"):
        raise InputError(f"{path}: has axes {[axis.get('name') for axis in axes]} for an array of shape {shape}")
    odd = [axis["name"] for axis, letter, size in zip(axes, order, shape, strict=True) if letter not in _TYPES]
    if odd:
        raise InputError(f"{path}: has an axis {odd[0]!r}, which is not time, channel, z, y or x")
    sizes = dict.fromkeys("TZCYX", 1) | dict(zip(order, shape, strict=True))
    scale, translation = _transform(scales, len(order))
    units = {
        letter: _SHORT.get(str(axis.get("unit")), axis.get("unit")) for letter, axis in zip(order, axes, strict=True)
    }
    step = dict(zip(order, scale, strict=True))
    known = {letter: step[letter] for letter in order if step[letter] > 0 and (units[letter] or step[letter] != 1)}
    pixel = (known.get("Y"), known.get("X")) if units["Y"] == units["X"] else (None, None)
    kept = {key: value for key, value in attributes.items() if key not in ("multiscales", "version")}
    text = json.dumps({**kept, "name": scales.get("name")})
    omero = attributes.get("omero")
    return replace(
        make_metadata(sizes, order, dtype, "ome"),
        **calibration(pixel, units["Y"], (known.get("Z"), units.get("Z")), (known.get("T"), units.get("T"))),
        channel_names=_channel_names(omero, sizes["C"]),
        zarr=ZarrTags(
            version="0.5" if attributes.get("version") == "0.5" else "0.4",
            attributes=text if len(text) < _LONGEST_KEPT else "{}",
            translation=tuple(zip(order, translation, strict=True)),
        ),
    ), order


def stored_order(metadata: StackMetadata) -> str:
    """Axes of the array that is written, in its order."""
    return "".join(axis for axis in _ORDER if axis in metadata.axes)


def place_of(metadata: StackMetadata, number: int, order: str) -> tuple[int, ...]:
    """Index of a plane along the axes before Y and X of an array whose axes have this order."""
    outer = metadata.shape[:-2]
    at = dict(zip(metadata.axes, np.unravel_index(number, outer) if outer else (), strict=False))
    return tuple(int(at.get(axis, 0)) for axis in order[:-2])


def build_attributes(metadata: StackMetadata, version: str, levels: int) -> dict[str, Any]:
    """OME attributes of a group that holds `levels` arrays, each of half the size of the one before, named 0, 1, ..."""
    order = stored_order(metadata)
    old: dict[str, Any] = json.loads(metadata.zarr.attributes) if metadata.zarr else {}
    shifts = dict(metadata.zarr.translation) if metadata.zarr else {}
    step = dict.fromkeys(order, 1.0)
    units: dict[str, str | None] = {"T": metadata.time_unit, "Z": metadata.z_unit}
    if metadata.pixel_size is not None:
        step["Y"], step["X"] = metadata.pixel_size
        units["Y"] = units["X"] = metadata.unit
    if metadata.time_increment is not None and "T" in order:
        step["T"] = metadata.time_increment
    if metadata.z_step is not None and "Z" in order:
        step["Z"] = metadata.z_step
    long = {axis: unit for axis in order if (unit := _long_unit(units.get(axis))) is not None}
    named = [{"name": axis.lower(), "type": _TYPES[axis]} for axis in order]
    axes = [entry | ({"unit": long[axis]} if axis in long else {}) for axis, entry in zip(order, named, strict=True)]
    datasets = []
    for level in range(levels):
        factor = dict.fromkeys("YX", 2.0**level)
        scale = [step[axis] * factor.get(axis, 1.0) for axis in order]
        # A pixel of a level is the mean of 2 x 2 of the one before: its centre lies between theirs.
        moved = [shifts.get(axis, 0.0) + step[axis] * (factor.get(axis, 1.0) - 1) / 2 for axis in order]
        transforms: list[dict[str, Any]] = [{"type": "scale", "scale": scale}]
        if any(moved):
            transforms.append({"type": "translation", "translation": moved})
        datasets.append({"path": str(level), "coordinateTransformations": transforms})
    scales: dict[str, Any] = {"axes": axes, "datasets": datasets}
    if (name := old.pop("name", None)) is not None:
        scales["name"] = name
    if levels > 1:
        scales["type"] = "mean"
    omero = _omero(old.pop("omero", None), metadata)
    found = {**old, **({"omero": omero} if omero else {})}
    if version == "0.4":
        return {"multiscales": [{"version": "0.4", **scales}], **found}
    return {"ome": {"version": "0.5", "multiscales": [scales], **found}}


def _letter(axis: dict[str, Any]) -> str:
    kind = {"time": "T", "channel": "C"}.get(str(axis.get("type")))
    return kind or str(axis.get("name")).upper()


def _transform(scales: dict[str, Any], axes: int) -> tuple[list[float], list[float]]:
    """Scale and translation of the full image: those of its dataset, then those of all."""
    scale, translation = [1.0] * axes, [0.0] * axes
    for step in [
        *scales["datasets"][0].get("coordinateTransformations", []),
        *scales.get("coordinateTransformations", []),
    ]:
        values = step.get(step.get("type"))
        if step.get("type") not in ("scale", "translation"):
            continue
        if len(values) != axes or not all(math.isfinite(value) for value in values):
            raise ValueError(f"a {step['type']} of {len(values)} values for {axes} axes")
        if step["type"] == "scale":
            scale = [a * b for a, b in zip(scale, values, strict=True)]
            translation = [a * b for a, b in zip(translation, values, strict=True)]
        else:
            translation = [a + b for a, b in zip(translation, values, strict=True)]
    return [float(value) for value in scale], [float(value) for value in translation]


def _channel_names(omero: Any, channels: int) -> tuple[str, ...]:
    if not isinstance(omero, dict) or not isinstance(omero.get("channels"), list):
        return ()
    names = tuple(str(channel.get("label", "")) for channel in omero["channels"])
    return names if len(names) == channels and any(names) else ()


def _omero(old: dict[str, Any] | None, metadata: StackMetadata) -> dict[str, Any] | None:
    """Rendering settings of the channels that are left; with names alone where there were none."""
    channels, names = metadata.sizes["C"], metadata.channel_names
    if old is not None and isinstance(old.get("channels"), list):
        kept = old["channels"]
        if len(kept) != channels:
            kept = [channel for channel in kept if channel.get("label") in names]
        return {**old, "channels": kept} if len(kept) == channels else None
    # A viewer needs a window and a colour with each name, and nothing here knows them.
    return None if not names else {"channels": [_named(name, metadata.dtype) for name in names]}


def _named(name: str, dtype: np.dtype) -> dict[str, Any]:
    largest = float(2 ** (8 * dtype.itemsize) - 1) if dtype.kind in "iu" else 1.0
    window = {"min": 0.0, "max": largest, "start": 0.0, "end": largest}
    return {"label": name, "color": "FFFFFF", "window": window, "active": True}


def _long_unit(unit: str | None) -> str | None:
    if unit is None:
        return None
    return _UNITS.get(_OTHER_NAMES.get(unit, unit), unit if unit in _SHORT else None)
