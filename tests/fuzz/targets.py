"""Sound files of every kind, and what reads them. A new reader joins by one line in `TARGETS`."""

import importlib.util
import io
import json
import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import imagecodecs
import numpy as np
import tifffile

from tests.formats import test_formats as formats
from tests.formats.nd2_files import write_nd2
from tests.fuzz import fields, rules
from tests.io.formats.test_formats import smooth
from tests.io.samples import noise, write_imagej, write_ome, write_plain, write_shaped
from xcorr_app.batch.align.options import AlignOptions
from xcorr_app.batch.align.run import Align
from xcorr_app.batch.filter.choice import parse_bank, read_taps
from xcorr_app.errors import OutputError
from xcorr_app.gpu.runtime.select import Device
from xcorr_app.io import Limits, scan_file
from xcorr_app.io.matrices import read_matrix, scan_matrices
from xcorr_app.io.ome_zarr.zarr_write import ZarrWriter
from xcorr_app.io.series import Discovery
from xcorr_app.io.shift_table import load_shifts
from xcorr_app.io.source import StackMetadata, ZarrTags
from xcorr_app.pipeline.output import check_output
from xcorr_app.pipeline.stack_steps import outcome_of
from xcorr_app.pipeline.state import State, asked_of
from xcorr_app.registration.results.frame_table import parse_shifts_csv, shifts_csv
from xcorr_app.report.records import FrameRow

LIMITS = Limits(max_pixels=2**20, max_pages=1000)
GREY = smooth((24, 20))
RGB = np.ascontiguousarray(np.stack([GREY, GREY[::-1], GREY // 2], -1))
STACK = noise((3, 14, 11))


def hdf5(path, **how):
    """Of chunks that are encoded, lengths in them, and of them, are what may lie."""
    with formats.h5(path) as file:
        file.create_dataset("data", data=STACK, **how)


def hdf5_virtual(path):
    """An array that is found by its group, beside one that is virtual, which the library parses to look for others."""
    import h5py

    layout = h5py.VirtualLayout(STACK.shape, STACK.dtype)
    layout[:] = h5py.VirtualSource("source.h5", "data", STACK.shape)
    with formats.h5(path) as file:
        file.create_virtual_dataset("virtual", layout)
        file["emd/data"] = STACK
        file["emd"].attrs["emd_group_type"] = 1


def ome_behind_a_comment(path, data, axes):
    """OME-XML whose first element comes late."""
    write_ome(path, data, axes)
    with tifffile.TiffFile(path) as file:
        xml = file.pages[0].description.encode()
    start = xml.index(b"<OME")
    planes = data.reshape(-1, *data.shape[-2:])
    write_plain(path, planes, description=xml[:start] + b"<!--" + b" <OME " * 500 + b"-->" + xml[start:])


class Target(NamedTuple):
    """A kind of file: how a sound one is made, where its fields are, what reads it, and what no reader can know."""

    make: Callable[[Any], bytes]
    fields: Callable[[bytes], list[fields.Field]]
    read: Callable[[Any], Any]
    unknown: dict[str, Callable[[Any, Any], bool]]
    suffix: str = ".tif"


declared = [0]
"""Bytes that the file that was looked at last has by its own account: its planes, or a chunk, if that is larger."""


def images(path, *, colour=False):
    """All planes of an image file, (T, Z, C, Y, X)."""
    file = scan_file(path, LIMITS, colour=colour)
    about, sizes = file.metadata, file.metadata.sizes
    chunk = math.prod(getattr(getattr(file, "array", None), "chunks", (0,)))
    declared[0] = max(math.prod(about.shape), chunk) * about.dtype.itemsize
    found = np.empty(tuple(sizes.values()), about.dtype)
    together = file.samples > 1
    for t, z, c in np.ndindex(sizes["T"], sizes["Z"], 1 if together else sizes["C"]):
        plane = file.read(file.page_at(t, z, c))
        assert plane.dtype == about.dtype
        place = found[t, z] if together else found[t, z, c]
        assert plane.shape == place.shape
        place[...] = plane
    return found


def colours(path):
    return images(path, colour=True)


def matrices(path):
    return scan_matrices(path, limits=LIMITS).read()


def shifts(path):
    parse_shifts_csv(path.read_text(encoding="utf-8", errors="replace"))


def shifts_to_apply(path):
    return load_shifts(path, missing="interpolate")


def store_beside(path, version, compression=None):
    """An OME-Zarr store that a changed file of it is put into; errors name the file by the store's name."""
    store = path.with_name(f"{path.name}-{version}-{compression}.zarr")
    if not store.exists():
        metadata = StackMetadata("TYX", STACK.shape, STACK.dtype, "ome", (0.5, 0.25), "µm", zarr=ZarrTags(version))
        with ZarrWriter(store, metadata, compression=compression) as writer:
            for plane in STACK:
                writer.write(plane)
    return store


def mixing(path):
    return read_matrix(path).matrix


def bank(path):
    return parse_bank(str(path)).filters


def records(path):
    """Everything that reads what an earlier run left, in a folder beside which a file lies that nobody may touch."""
    out = path.parent / "out"
    (out / ".xcorr").mkdir(parents=True, exist_ok=True)
    keep = path.parent / "keep.csv"
    keep.write_text("kept")
    content = path.read_bytes()
    for place in (out / ".xcorr" / "a.json", out / ".xcorr" / "run", out / "run.json"):
        place.write_bytes(content)
    state = State(out)
    known = state.load("a", "f")
    if known is not None:
        work = Align(Discovery("stacks", (), ()), Device(np, "CPU"), (path,), out, AlignOptions(report="none"))
        outcome_of(work, "a", known, {}, resumed=True)
    state.inputs()
    asked = asked_of("xcorr align", {"max_shift": 3}, [path])
    check_output(out, Discovery("stacks", (), ()), [], asked, resume=False, overwrite=True)
    with suppress(OutputError):
        check_output(out, Discovery("stacks", (), ()), [], asked, resume=True, overwrite=False)
    state.forget()
    assert keep.read_text() == "kept"


def record(_):
    return json.dumps(
        {
            "fingerprint": "f",
            "program": "xcorr align",
            "parameters": {"max_shift": 3},
            "inputs": ["a.tif"],
            "outputs": {"a/shifts.csv": "0", "../keep.csv": "0", "run.json": 3},
            "facts": {"frames": 3, "assessment": None},
            "failed": True,
            "stacks": {"a": {"failure": "x", "source": "a", "inputs": {"a.tif": "0"}}},
            "report": {"tolerance": 0.01, "reference_frame": 0, "notes": [], "turns": [[0.5, 1.0]], "assessment": None},
        },
        indent=1,
    ).encode()


def table(_):
    measured = ("=a,b.tif", 1, 0.5, -1.25, 0.9, 1.5, 0.5, -1.25, 0.001, ("edge", "flat"), 0.1, 0.2, 0.5, -1.25)
    return shifts_csv([FrameRow(number, *measured) for number in range(2)]).encode()


def written(write, *arguments, **options):
    def make(folder):
        write(folder / "seed.tif", *arguments, **options)
        return (folder / "seed.tif").read_bytes()

    return make


def npy(data):
    file = io.BytesIO()
    np.save(file, data)
    return lambda _: file.getvalue()


def of_store(name, version, unknown, compression=None):
    """A file of an OME-Zarr store; the others stay sound."""

    def make(folder):
        return (store_beside(folder / "seed", version, compression) / name).read_bytes()

    def read(path):
        store = store_beside(path, version, compression)
        (store / name).write_bytes(path.read_bytes())
        return images(store)

    return Target(make, fields.text_fields, read, unknown, ".part") if importlib.util.find_spec("zarr") else None


def tiff(make, unknown=rules.UNCHECKED, read=images):
    return Target(make, fields.tiff_fields, read, unknown)


def compressed(codec, unknown=rules.UNCHECKED, data=None, **options):
    data = STACK[:2] if data is None else data
    return tiff(written(write_plain, data, compression=codec, **options), unknown)


PLAIN_NPY = {"text": rules.same_bytes, "moved": rules.values}
TEXT = dict.fromkeys(("text", "moved", "cut"), rules.anything)
BMP = dict.fromkeys(("palette", "pixels", "height", "moved"), rules.values) | {"width": rules.same_row_bytes}


def of_library(name, write, suffix, read=images):
    """A kind that a library parses: no more is asked than that changes are refused or read, whatever they are."""
    return Target(write, fields.text_fields, read, TEXT, suffix) if importlib.util.find_spec(name) else None


TARGETS = {
    "plain": tiff(written(write_plain, STACK)),
    "plain-big-endian": tiff(written(write_plain, STACK, byteorder=">")),
    "bigtiff": tiff(written(write_plain, STACK, bigtiff=True)),
    "strips": tiff(written(write_plain, STACK, rowsperstrip=4)),
    "tiles": tiff(written(write_plain, STACK, tile=(16, 16))),
    "float": tiff(written(write_plain, noise((2, 9, 8), "float32"))),
    "shaped": tiff(written(write_shaped, STACK, "TYX")),
    "imagej": tiff(written(write_imagej, noise((3, 2, 6, 5)), "TCYX")),
    "ome": tiff(written(write_ome, noise((3, 2, 6, 5)), "TCYX")),
    "ome-late": tiff(written(ome_behind_a_comment, noise((3, 2, 6, 5)), "TCYX")),
    "rgb": tiff(written(tifffile.imwrite, RGB, photometric="rgb"), read=colours),
    "rgb-ome": tiff(written(tifffile.imwrite, RGB[None], photometric="rgb", ome=True), read=colours),
    "deflate": compressed("zlib", rules.STRUCTURE, predictor=True, rowsperstrip=5),
    "lzw": compressed("lzw", predictor=True),
    "packbits": compressed("packbits", data=noise((2, 20, 16))),
    "zstd": compressed("zstd", tile=(16, 16)),
    "lzma": compressed("lzma", rules.STRUCTURE),
    "jpeg-in-tiff": compressed("jpeg", data=GREY[None]),
    "png": Target(lambda _: imagecodecs.png_encode(GREY), fields.png_fields, images, {}, ".png"),
    "png-colour": Target(lambda _: imagecodecs.png_encode(RGB), fields.png_fields, colours, {}, ".png"),
    "bmp": Target(lambda _: imagecodecs.bmp_encode(GREY), fields.bmp_fields, images, BMP, ".bmp"),
    "bmp-colour": Target(lambda _: imagecodecs.bmp_encode(RGB), fields.bmp_fields, colours, BMP, ".bmp"),
    "jpeg": Target(lambda _: imagecodecs.jpeg8_encode(GREY), fields.text_fields, images, TEXT, ".jpg"),
    "jpeg-colour": Target(lambda _: imagecodecs.jpeg8_encode(RGB), fields.text_fields, colours, TEXT, ".jpg"),
    "npy": Target(npy(STACK), fields.text_fields, images, PLAIN_NPY, ".npy"),
    "npy-fortran": Target(npy(np.asfortranarray(noise((3, 6, 5), "float32"))), fields.text_fields, images, PLAIN_NPY),
    "npy-operand": Target(npy(noise((2, 3, 6, 5), "float64")), fields.text_fields, matrices, PLAIN_NPY, ".npy"),
    "npy-matrix": Target(npy(noise((3, 5), "float32")), fields.text_fields, mixing, PLAIN_NPY, ".npy"),
    "npy-taps": Target(npy(noise((3, 5), "float32")), fields.text_fields, read_taps, PLAIN_NPY, ".npy"),
    "npy-to-apply": Target(npy(noise((3, 2), "float32")), fields.text_fields, shifts_to_apply, PLAIN_NPY, ".npy"),
    "npy-bank": Target(npy(noise((2, 3, 5), "float32")), fields.text_fields, bank, PLAIN_NPY, ".npy"),
    "mrc": of_library("mrcfile", written(formats.write_mrc, noise((3, 14, 11), "float32")), ".mrc"),
    "hdf5": of_library("h5py", written(hdf5), ".h5"),
    "hdf5-gzip": of_library("h5py", written(hdf5, chunks=(1, 14, 11), compression="gzip", shuffle=True), ".h5"),
    "hdf5-virtual": of_library("h5py", written(hdf5_virtual), ".h5"),
    "lif": of_library("readlif", written(formats.write_lif, [noise((3, 1, 2, 7, 9))]), ".lif"),
    "czi": of_library("czifile", written(formats.write_czi, noise((3, 2, 7, 9))), ".czi"),
    "nd2": of_library(
        "nd2", written(write_nd2, noise((3, 1, 2, 7, 8)), names=["a", "b"], pixel_size=0.25, period=40.0), ".nd2"
    ),
    "zarr-2-group": of_store(".zattrs", "0.4", TEXT),
    "zarr-2-array": of_store("0/.zarray", "0.4", TEXT),
    "zarr-3-group": of_store("zarr.json", "0.5", TEXT),
    "zarr-3-array": of_store("0/zarr.json", "0.5", TEXT),
    "zarr-3-shard": of_store("0/c/0/0/0", "0.5", dict.fromkeys(TEXT, rules.values)),
    "zarr-2-zlib": of_store("0/.zarray", "0.4", TEXT, "zlib"),
    "zarr-2-zstd": of_store("0/1/0/0", "0.4", dict.fromkeys(TEXT, rules.values), "zstd"),
    "zarr-3-zstd": of_store("0/zarr.json", "0.5", TEXT, "zstd"),
    "csv-matrix": Target(lambda _: b"a,1,2.5,3e1\nb,0,1,-2\n# c\n", fields.text_fields, mixing, TEXT, ".csv"),
    "csv-taps": Target(lambda _: b"1,2,1\n2;4;2\n1 2 1\n", fields.text_fields, read_taps, TEXT, ".csv"),
    "csv-shifts": Target(table, fields.text_fields, shifts, TEXT, ".result"),
    "csv-to-apply": Target(table, fields.text_fields, shifts_to_apply, TEXT, ".csv"),
    "json-records": Target(record, fields.text_fields, records, TEXT, ".result"),
}
NOT_HERE = [name for name, target in TARGETS.items() if target is None]
"""Kinds whose library is not installed."""
TARGETS = {name: target for name, target in TARGETS.items() if target is not None}
