"""Small files of every kind, made with tifffile, and crafted ones made byte by byte."""

import inspect
import struct
from functools import partial

import numpy as np
import tifffile

from tests.pixels import pixels
from xcorr_app.io import write_stack

TYPES = ("uint8", "uint16", "int16", "uint32", "float32", "float64")


def noise(shape, dtype="uint16", seed=0):
    """Values over the whole range of the type, no zeros (so that zeros in a result are noticed)."""
    values = pixels(np.random.default_rng(seed), shape, dtype, 100.0, 1000.0)
    values[values == 0] = 1
    return values


def _as(kind):
    """The argument that asks tifffile for OME or ImageJ: ``kind=`` in newer releases, a flag in older ones."""
    named = "kind" in inspect.signature(tifffile.imwrite).parameters
    return {"kind": kind} if named else {kind: True}


def write_plain(path, data, **options):
    with tifffile.TiffWriter(
        path, bigtiff=options.pop("bigtiff", False), byteorder=options.pop("byteorder", "<")
    ) as tif:
        for plane in data.reshape(-1, *data.shape[-2:]):
            tif.write(plane, metadata=None, photometric="minisblack", contiguous=False, **options)


def write_shaped(path, data, axes=None, **options):
    tifffile.imwrite(path, data, photometric="minisblack", metadata={"axes": axes} if axes else {}, **options)


def write_ome(path, data, axes, **options):
    metadata = {
        "axes": axes,
        "PhysicalSizeX": 0.325,
        "PhysicalSizeXUnit": "µm",
        "PhysicalSizeY": 0.65,
        "PhysicalSizeYUnit": "µm",
        "PhysicalSizeZ": 1.5,
        "PhysicalSizeZUnit": "µm",
        "TimeIncrement": 2.5,
        "TimeIncrementUnit": "s",
    }
    if "C" in axes:
        metadata["Channel"] = {"Name": [f"dye {index}" for index in range(data.shape[axes.index("C")])]}
    tifffile.imwrite(path, data, **_as("ome"), photometric="minisblack", metadata=metadata, **options)


def write_imagej(path, data, axes, **extra):
    """tifffile writes one ImageJ label a plane, lookup tables and ranges when they are given in `extra`."""
    metadata = {"axes": axes, "unit": "\\u00B5m", "finterval": 2.5, "spacing": 1.5, **extra}
    tifffile.imwrite(
        path, data, **_as("imagej"), photometric="minisblack", resolution=(1 / 0.25, 1 / 0.5), metadata=metadata
    )


def tiff_bytes(pages, *, order="<", tail=b""):
    """A classic TIFF from lists of (tag, type, count, value) with inline values; `tail` follows the directories."""
    content = bytearray((b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "I", 8))
    for index, tags in enumerate(pages):
        end = len(content) + 2 + 12 * len(tags) + 4
        following = end if index + 1 < len(pages) else 0
        content += struct.pack(order + "H", len(tags))
        for code, kind, count, value in sorted(tags):
            inline = struct.pack(order + "HH", value, 0) if kind == 3 else struct.pack(order + "I", value)
            content += struct.pack(order + "HHI", code, kind, count) + inline
        content += struct.pack(order + "I", following)
    return bytes(content + tail)


def page_tags(height, width, offset, count, *, bits=8, **changes):
    """Tags of a one-strip grey page; changes by tag number as ``t278=...`` (None leaves the tag out)."""
    values = {256: width, 257: height, 258: bits, 259: 1, 262: 1, 273: offset, 277: 1, 278: height, 279: count}
    values |= {int(name[1:]): value for name, value in changes.items()}
    short = (258, 259, 262, 277, 339)
    return [(code, 3 if code in short else 4, 1, value) for code, value in values.items() if value is not None]


WRITERS = {
    "plain": write_plain,
    "big": partial(write_plain, bigtiff=True, byteorder=">"),
    "described": partial(write_plain, description="of every page", resolution=(3.0, 2.0)),
    "strips": partial(write_plain, rowsperstrip=2),
    "zlib": partial(write_plain, compression="zlib", predictor=True, rowsperstrip=3),
    "lzw": partial(write_plain, compression="lzw"),
    "zstd-tiles": partial(write_plain, compression="zstd", tile=(16, 16)),
    "shaped": write_shaped,
    "shaped-series": lambda path, data: [
        write_shaped(path, half, append=True) for half in (data[: len(data) // 2], data[len(data) // 2 :])
    ],
    "shaped-one-directory": partial(write_shaped, truncate=True),
    "imagej": partial(write_imagej, axes="TYX"),
    "ome": partial(write_ome, axes="TYX"),
    "ome-zlib": partial(write_ome, axes="TYX", compression="zlib"),
    "ours": write_stack,
}
"""Of movies (T, Y, X), as TIFF of every kind."""
