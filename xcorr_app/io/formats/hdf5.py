"""HDF5: one array of a file, ``FILE.h5:/path``; found by itself where the layout is known or there is but one.

Known layouts: EMD of Berkeley (groups with ``emd_group_type``), EBSD patterns of kikuchipy, EDAX and Bruker
(``.../EBSD/Data/patterns``), and dimension labels as h5py, ilastik and pandas write them.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from xcorr_app.errors import InputError
from xcorr_app.io.declared import FormatImage, Limits, check_image, stamp_of
from xcorr_app.io.formats import Readers
from xcorr_app.io.formats.hdf5_storage import (
    CheckedFile,
    check_chunks,
    check_storage,
    node_at,
)
from xcorr_app.io.names import inner_path
from xcorr_app.io.source import StackMetadata, calibration, make_metadata

_PATTERNS = ("patterns", "rawpatterns", "pattern")
_SHOWN = 8
_DEFAULT_AXES = {2: "YX", 3: "TYX"}
_LENGTHS = {"um": "µm", "[u_m]": "µm", "[n_m]": "nm", "n_m": "nm", "u_m": "µm"}


def images(path: Path) -> list[str]:
    """Paths of all arrays within that are images, if the layout tells which; else none."""
    with _READERS.of(path, stamp_of(path)) as file:
        return _known(file)


def scan(path: Path, inner: str, limits: Limits, *, colour: bool = False) -> FormatImage:  # noqa: ARG001 - one protocol
    """Check one array of a file."""
    stamp = stamp_of(path)
    with _READERS.of(path, stamp) as file:
        name = "/" + inner if inner else _only(path, file)
        array = node_at(path, file, name)
        if array is None or not hasattr(array, "chunks"):
            raise InputError(f"{path}: has no array {name}; {_listed(path, file)}")
        name, shape, dtype = array.name, tuple(array.shape), array.dtype.newbyteorder("=")
        order, outer = _axes(path, array, name)
        sizes = dict.fromkeys("TZCYX", 1) | dict(zip(order, (*outer, *shape[-2:]), strict=True))
        check_image(path, limits, sizes, dtype)
        check_storage(path, array, limits)
        metadata = _calibrated(path, file, make_metadata(sizes, order, dtype, "ome"), array)
    checked: set[tuple[int, ...]] = set()

    def plane(t: int, z: int, c: int) -> np.ndarray:
        at = {"T": t, "Z": z, "C": c}
        place = tuple(at[axis] for axis in order[:-2])
        index = place if len(place) == len(shape) - 2 else tuple(map(int, np.unravel_index(t, shape[:-2])))
        with _READERS.of(path, stamp) as file:
            values = file[name]
            check_chunks(path, values, index, checked)
            return np.asarray(values[index])

    return FormatImage(path, metadata, plane, stamp)


_READERS = Readers("h5py", lambda h5py, file: h5py.File(CheckedFile(file.fileno()), "r"))


def _arrays(file: Any) -> list[Any]:
    """Arrays of numbers with at least two axes, that lie in the file itself."""
    found: list[Any] = []

    def look(_: str, node: Any) -> None:
        if hasattr(node, "dtype") and node.dtype.kind in "biuf" and node.ndim >= 2 and min(node.shape) > 1:
            found.append(node)

    file.visititems(look)
    return found


def _known(file: Any) -> list[str]:
    arrays = _arrays(file)
    emd = [node.name for node in arrays if "emd_group_type" in node.parent.attrs and node.name.endswith("/data")]
    ebsd = [
        node.name for node in arrays if "/EBSD/Data/" in node.name and node.name.rsplit("/")[-1].lower() in _PATTERNS
    ]
    found = emd or ebsd or [node.name for node in arrays]
    return [name.lstrip("/") for name in found] if emd or ebsd or len(found) == 1 else []


def _only(path: Path, file: Any) -> str:
    names = _known(file)
    if len(names) != 1:
        raise InputError(f"{path}: {_listed(path, file)}")
    return "/" + names[0]


def _listed(path: Path, file: Any) -> str:
    arrays = _arrays(file)
    if not arrays:
        return "holds no array of images"
    some = ", ".join(f"{node.name} {node.shape} {node.dtype}" for node in arrays[:_SHOWN])
    more = f", ... and {len(arrays) - _SHOWN} more" if len(arrays) > _SHOWN else ""
    return f"holds {len(arrays)} arrays ({some}{more}); name one as {inner_path(path, arrays[0].name.lstrip('/'))}"


def _axes(path: Path, array: Any, name: str) -> tuple[str, tuple[int, ...]]:
    """Axes of an array, and its sizes before Y and X; rows of a scan become one axis T."""
    labels = _labels(array)
    if labels and set(labels) <= set("TZCYX") and len(set(labels)) == array.ndim and labels.endswith("YX"):
        return labels, tuple(array.shape[:-2])
    if array.ndim in _DEFAULT_AXES:
        return _DEFAULT_AXES[array.ndim], tuple(array.shape[:-2])
    if array.ndim == 4 and "/EBSD/" in name:
        return "TYX", (array.shape[0] * array.shape[1],)
    raise InputError(
        f"{path}: {name} is of shape {array.shape}, and nothing says which axis is time, depth or channel; label its "
        "dimensions in h5py (data.dims[0].label = 't'), or save it as OME-TIFF"
    )


def _labels(array: Any) -> str:
    if "axistags" in array.attrs:  # ilastik
        tags = json.loads(array.attrs["axistags"])
        return "".join(str(axis["key"]).upper() for axis in tags["axes"])
    return "".join(str(dimension.label)[:1].upper() for dimension in array.dims)


def _calibrated(path: Path, file: Any, metadata: StackMetadata, array: Any) -> StackMetadata:
    sizes = array.attrs.get("element_size_um")  # as the HDF5 plug-ins of ImageJ write it: z, y, x
    if sizes is not None and len(sizes) == 3 and all(float(size) > 0 for size in sizes):
        z, y, x = (float(size) for size in sizes)
        return replace(metadata, **calibration((y, x), "µm", (z if metadata.sizes["Z"] > 1 else None, "µm")))
    steps = [_emd_step(path, file, array.parent, number) for number in (array.ndim - 1, array.ndim)]
    if all(steps) and steps[0] and steps[1] and steps[0][1] == steps[1][1]:
        return replace(metadata, pixel_size=(steps[0][0], steps[1][0]), unit=steps[0][1])
    return metadata


def _emd_step(path: Path, file: Any, group: Any, number: int) -> tuple[float, str] | None:
    """Distance of pixels along an axis, of which EMD lists every place."""
    places = node_at(path, file, f"{group.name}/dim{number}") if "emd_group_type" in group.attrs else None
    if places is None or len(places) < 2 or places.external or places.is_virtual or places.compression:
        return None
    unit = places.attrs.get("units", "")
    unit = unit.decode() if isinstance(unit, bytes) else str(unit)
    step = float(places[1] - places[0])
    return (step, _LENGTHS.get(unit, unit.strip("[]").replace("_", ""))) if step > 0 and unit else None
