"""What OME-Zarr says of an image, read and written; no array is touched."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from xcorr_app.errors import InputError
from xcorr_app.io.ome_zarr.zarr_metadata import build_attributes, read_metadata
from xcorr_app.io.source import StackMetadata, ZarrTags

PATH, TYPE = Path("a.zarr"), np.dtype(np.uint16)
SIZES = {"T": 3, "Z": 4, "C": 2, "Y": 5, "X": 6}
STEPS = {"T": 0.5, "C": 1.0, "Z": 2.0, "Y": 0.25, "X": 0.125}
PLACES = {"T": 7.0, "C": 0.0, "Z": -3.0, "Y": 11.0, "X": 13.0}
LONG = {"T": "second", "Z": "nanometer", "Y": "micrometer", "X": "micrometer"}
KINDS = {"T": "time", "C": "channel", "Z": "space", "Y": "space", "X": "space"}
UNITS = [("µm", "micrometer"), ("nm", "nanometer"), ("mm", "millimeter"), ("cm", "centimeter"), ("m", "meter")]
UNITS += [("pm", "picometer"), ("Å", "angstrom"), ("s", "second"), ("ms", "millisecond"), ("µs", "microsecond")]
UNITS += [("ns", "nanosecond"), ("min", "minute"), ("h", "hour"), ("d", "day")]


def said(order, steps=STEPS, places=PLACES, units=LONG, **others):
    """Attributes of a group as its version 0.4 has them."""
    axes = [
        {"name": axis.lower(), "type": KINDS[axis]} | ({"unit": units[axis]} if axis in units else {}) for axis in order
    ]
    transforms = [{"type": "scale", "scale": [steps[axis] for axis in order]}]
    if places:
        transforms.append({"type": "translation", "translation": [places[axis] for axis in order]})
    return {
        "multiscales": [{"axes": axes, "datasets": [{"path": "0", "coordinateTransformations": transforms}]}]
    } | others


def read(attributes, shape):
    return read_metadata(PATH, attributes, shape, TYPE)


def scales_of(attributes):
    return attributes["multiscales"][0] if "multiscales" in attributes else attributes["ome"]["multiscales"][0]


@pytest.mark.parametrize("order", ["YX", "TYX", "ZYX", "CYX", "TCYX", "TZYX", "CZYX", "TCZYX"])
@pytest.mark.parametrize("version", ["0.4", "0.5"])
def test_every_set_of_axes_goes_the_whole_way(order, version):
    shape = tuple(SIZES[axis] for axis in order)
    found, axes = read(said(order, version=version), shape)
    assert axes == order
    assert (found.axes, found.shape, found.dtype, found.kind) == (order, shape, TYPE, "ome")
    assert (found.pixel_size, found.unit) == ((0.25, 0.125), "µm")
    assert (found.time_increment, found.time_unit) == ((0.5, "s") if "T" in order else (None, None))
    assert (found.z_step, found.z_unit) == ((2.0, "nm") if "Z" in order else (None, None))
    assert found.channel_names == ()
    assert found.zarr == ZarrTags(version, json.dumps({"name": None}), tuple((axis, PLACES[axis]) for axis in order))
    written = build_attributes(found, version, 1)
    assert set(written) == ({"multiscales"} if version == "0.4" else {"ome"})
    assert (written["ome"] if version == "0.5" else scales_of(written))["version"] == version
    scales = scales_of(written)
    assert [axis["name"] for axis in scales["axes"]] == list(order.lower())
    assert [axis["type"] for axis in scales["axes"]] == [KINDS[axis] for axis in order]
    assert [axis.get("unit") for axis in scales["axes"]] == [LONG.get(axis) for axis in order]
    assert scales["datasets"] == [
        {
            "path": "0",
            "coordinateTransformations": [
                {"type": "scale", "scale": [STEPS[axis] for axis in order]},
                {"type": "translation", "translation": [PLACES[axis] for axis in order]},
            ],
        }
    ]
    assert not {"type", "name"} & set(scales)


@pytest.mark.parametrize(("short", "long"), UNITS)
def test_units_have_long_names_in_the_file(short, long):
    found, _ = read(said("YX", units=dict.fromkeys("YX", long)), (5, 6))
    assert found.unit == short
    assert scales_of(build_attributes(found, "0.5", 1))["axes"][1]["unit"] == long


@pytest.mark.parametrize(
    ("unit", "long"),
    [
        ("um", "micrometer"),
        ("μm", "micrometer"),
        ("micron", "micrometer"),
        ("microns", "micrometer"),
        ("\\u00B5m", "micrometer"),
        ("sec", "second"),
        ("second", "second"),
        ("furlong", None),
        (None, None),
    ],
)
def test_other_names_of_units(unit, long):
    known = StackMetadata("YX", (5, 6), TYPE, "ome", pixel_size=(0.1, 0.2), unit=unit)
    assert scales_of(build_attributes(known, "0.4", 1))["axes"][0].get("unit") == long


@pytest.mark.parametrize(
    ("names", "shape", "message"),
    [
        ("tyx", (5, 6), "for an array of shape"),
        ("yx", (3, 5, 6), "for an array of shape"),
        ("tyxz", (3, 5, 6, 4), "for an array of shape"),
        ("txy", (3, 5, 6), "for an array of shape"),
        ("ttyx", (3, 3, 5, 6), "for an array of shape"),
        ("qyx", (3, 5, 6), "an axis 'q'"),
    ],
)
def test_axes_that_are_not_read(names, shape, message):
    attributes = said("YX")
    attributes["multiscales"][0]["axes"] = [{"name": name} for name in names]
    with pytest.raises(InputError, match=message):
        read(attributes, shape)


@pytest.mark.parametrize("values", [[1.0], [1.0, math.nan], [math.inf, 1.0], [1.0, 1.0, 1.0]])
@pytest.mark.parametrize("kind", ["scale", "translation"])
def test_transforms_that_cannot_be(kind, values):
    attributes = said("YX")
    attributes["multiscales"][0]["datasets"][0]["coordinateTransformations"] = [{"type": kind, kind: values}]
    with pytest.raises(ValueError, match="values for 2 axes"):
        read(attributes, (5, 6))


def channels(*names):
    return {"channels": [{"label": name, "color": "00FF00"} for name in names], "rdefs": {"model": "color"}}


def test_rendering_settings_stay_with_their_channels():
    attributes = said("CYX", omero=channels("A", "B"), more=[1, 2])
    attributes["multiscales"][0]["name"] = "cells"
    both, _ = read(attributes, (2, 5, 6))
    assert both.channel_names == ("A", "B")
    written = build_attributes(both, "0.4", 1)
    assert written["omero"] == channels("A", "B")
    assert written["more"] == [1, 2]
    assert scales_of(written)["name"] == "cells"
    assert "name" not in written
    one = replace(both, axes="YX", shape=(5, 6), channel_names=("B",))
    assert build_attributes(one, "0.5", 1)["ome"]["omero"] == channels("B")
    assert build_attributes(one, "0.5", 1)["ome"]["more"] == [1, 2]
    # Those of nobody knows which channel are left out, as are those without a list.
    assert "omero" not in build_attributes(replace(one, channel_names=("C",)), "0.4", 1)
    odd = replace(both, zarr=ZarrTags("0.4", json.dumps({"omero": {"version": "0.4"}})), channel_names=())
    assert "omero" not in build_attributes(odd, "0.4", 1)


@pytest.mark.parametrize(
    ("omero", "names"),
    [
        (channels("A", "B"), ("A", "B")),
        (channels("A", ""), ("A", "")),
        ({"channels": [{}, {"label": 5}]}, ("", "5")),
        (channels("", ""), ()),
        (channels("A"), ()),
        (channels("A", "B", "C"), ()),
        ({"channels": {}}, ()),
        ([], ()),
        (None, ()),
    ],
)
def test_names_of_channels_are_those_of_all_of_them(omero, names):
    assert read(said("CYX", omero=omero), (2, 5, 6))[0].channel_names == names
