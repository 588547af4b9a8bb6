"""Folders of files as they are found and put together, and what is written of every kind of stack."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import imagecodecs
import numpy as np

from tests.golden import outputs
from tests.io.samples import write_plain
from tests.io.tiff.test_sets import write_set
from xcorr_app.errors import XcorrError
from xcorr_app.io import discover, read_stack, write_stack
from xcorr_app.io.source import StackMetadata

NAMES = {
    "numbers": [f"t{n}" for n in (10, 1, 2)],
    "padded": [f"frame_{n:03d}" for n in (0, 1, 2, 5)],
    "all-axes": [f"e_t{t}_c{c}_z{z}" for t in range(3) for c in range(2) for z in range(2)],
    "channels": [f"img_c{c}" for c in range(3)],
    "times-and-channels": [f"pos_t{t:02d}_ch{c:02d}" for t in range(4) for c in range(2)],
    "positions": [f"s{s}_t{t}" for s in range(2) for t in range(3)],
    "fields": [f"A{w:02d}_f{f}_t{t}_w{c}" for w in (1, 2) for f in (1, 2) for t in range(2) for c in (1, 2)],
    "a-gap": [f"x_z{z}_t{t}" for t in range(3) for z in range(2) if (t, z) != (1, 1)],
    "two-readings": [f"a_t{t}_b{b}" for t in range(2) for b in range(2)],
    "words": ["cell", "dish", "ant 2", "ant 10"],
    "micromanager": [f"img_channel{c:03d}_position000_time{t:09d}_z000" for t in range(2) for c in range(2)],
}
NAMES |= {
    "wells": [f"plate_{row}{column:02d}" for row in "ABC" for column in (1, 12)],
    "row-c": [f"well_C{n}" for n in (1, 2, 3)],
    "row-c-apart": ["x_A1", "x_C1", "x_C2"],
    "split-channels": ["C1-cells", "C2-cells"],
    "opera": [f"r01c{c:02d}f01p0{p}-ch{h}sk1fk1fl1" for c in (1, 2) for p in (1, 2) for h in (1, 2)],
    "metaxpress": [f"exp_B02_s{s}_w{w}" for s in (1, 2) for w in (1, 2)],
    "metamorph": [f"run_w{w}{dye}_s1_t{t}" for w, dye in ((1, "GFP"), (2, "RFP")) for t in (1, 2, 3)],
    "dyes": [f"{n}_{dye}" for n in (1, 2) for dye in ("DAPI", "GFP")],
    "counter": [f"{n:05d}_t{n // 2}_c{n % 2}" for n in range(6)],
    "dates": [f"2024-05-0{day}_1{n}h" for day in (1, 2) for n in range(3)],
    "z-stacks": [f"a_z{z:03d}" for z in range(4)] + [f"b_z{z:03d}" for z in range(4)],
    "times-that-skip": [f"m_t{t}" for t in (0, 5, 10, 15)],
    "many-channels": [f"k_c{c}" for c in range(18)],
    "cases": ["Img_T1_C1", "img_T1_C2", "IMG_T2_C1", "img_T2_C2"],
    "one": ["alone_t3_z2"],
    "dots": ["a.1", "a.2", "a.10"],
    "signs": ["s=1,t=1", "s=1,t=2", "s=2,t=1", "s=2,t=2"],
    "doubled": ["t1", "t01", "t2"],
    "unequal": ["t1_c0", "t1_c1", "t2_c0"],
    "words-of-axes": [f"time{t} slice{z}" for t in range(2) for z in range(2)],
}
PAGES = {"joined": 3, "positions": 2, "channels": 2, "words": 3, "times-and-channels": 2, "row-c": 2, "z-stacks": 2}
NAMES["joined"] = [f"m_t{t}" for t in range(3)]
LAYOUTS = ("auto", "frames", "stacks")


def _names(names: list[str], layout: Any, pages: int = 1, **how: Any) -> Any:
    with tempfile.TemporaryDirectory(prefix="golden-") as name:
        folder = Path(name) / "here" / "movie"
        folder.mkdir(parents=True)
        for number, each in enumerate(names):
            planes = np.arange(pages)[:, None, None] * 100 + np.full((pages, 4, 5), 1 + number)
            write_plain(folder / f"{each}.tif", planes.astype(np.uint16))
        return _found([folder], layout, **how)


def _found(inputs: Any, layout: Any = "auto", **how: Any) -> Any:
    """Series with every plane's middle pixel and place, or why there are none."""
    folder = Path(inputs[0]).parent / "x"
    try:
        found = discover(inputs, layout, **how)
    except XcorrError as error:
        return {"refused": outputs.anywhere(str(error), folder)}
    told: dict[str, Any] = {"layout": found.layout, "notes": [outputs.anywhere(note, folder) for note in found.notes]}
    told["failures"] = [outputs.anywhere(failure.message, folder) for failure in found.failures]
    for spec in found.series:
        with spec.open() as source:
            sizes = source.sizes
            planes = [(t, z, c) for t in range(sizes["T"]) for z in range(sizes["Z"]) for c in range(sizes["C"])]
            origins = [(source.origin(*each)[0].name, source.origin(*each)[1]) for each in planes]
            told[spec.name] = {
                "axes": source.metadata.axes,
                "sizes": sizes,
                "kind": source.metadata.kind,
                "notes": [outputs.anywhere(note, folder) for note in spec.notes],
                "origins": " ".join(f"{name}:{page}" for name, page in origins),
                "middles": [int(source.plane(*each)[1, 2]) for each in planes],
            }
    return told


def _mixed(layout: Any) -> Any:
    with tempfile.TemporaryDirectory(prefix="golden-") as name:
        folder = Path(name) / "here" / "many"
        for place in ("a", "b/c", "d"):
            (folder / place).mkdir(parents=True)
        rng = np.random.default_rng(1)
        for n in range(3):
            write_plain(folder / "a" / f"{n}.tif", rng.integers(1, 99, (4, 5), np.uint8))
            write_plain(folder / "b/c" / f"s{n}.tif", rng.integers(1, 99, (2 + n, 4, 5), np.uint16))
        (folder / "d" / "e.tif").write_bytes(b"II*\0broken")
        (folder / "d" / "f.png").write_bytes(imagecodecs.png_encode(rng.integers(0, 99, (6, 7), np.uint8)))
        write_set(folder, rng.integers(1, 999, (2, 3, 2, 4, 5)).astype(np.uint16), positions=2)
        return {
            "folder": _found([folder], layout),
            "parts": _found([folder / "a", folder / "b", folder / "d"], layout),
            "files": _found(sorted((folder / "b/c").iterdir()), layout),
            "glob": _found([folder / "**" / "*.tif"], layout),
            "channel": _found([folder], layout, channel=1),
        }


def _written(axes: str, kind: Any, dtype: str) -> Any:
    sizes = {"T": 3, "Z": 2, "C": 2, "Y": 7, "X": 5}
    rng = np.random.default_rng(len(axes))
    data = rng.integers(1, 250, [sizes[axis] for axis in axes]).astype(dtype)
    known: dict[str, Any] = {"pixel_size": (0.5, 0.25), "unit": "µm"}
    if "Z" in axes:
        known |= {"z_step": 1.5, "z_unit": "µm"}
    if "T" in axes:
        known |= {"time_increment": 2.5, "time_unit": "s"}
    if "C" in axes:
        known |= {"channel_names": ("one", "DAPI")}
    suffix = ".ome.tif" if kind == "ome" else ".tif"
    with tempfile.TemporaryDirectory(prefix="golden-") as name:
        folder = Path(name) / "here" / "out"
        folder.mkdir(parents=True)
        write_stack(folder / f"s{suffix}", data, StackMetadata(axes, data.shape, data.dtype, kind, **known))
        back = read_stack(folder / f"s{suffix}")
        told = {name: getattr(back.metadata, name) for name in (*known, "axes", "shape", "kind")}
        kept = back.metadata.with_frames("T", [0, 2]) if "T" in axes else back.metadata.with_plane_shape(3, 4, 1, 2)
        return {
            "files": outputs.left_by(folder),
            "back": told,
            "data": back.data,
            "fewer": {"shape": kept.shape, "axes": kept.axes, "time_increment": kept.time_increment},
        }


def cases() -> dict[str, Callable[[], Any]]:
    """Every folder and every kind by its name."""
    found: dict[str, Callable[[], Any]] = {
        f"folder-{name}-{layout}": partial(_names, names, layout) for name, names in NAMES.items() for layout in LAYOUTS
    }
    for name, pages in PAGES.items():
        for layout in LAYOUTS:
            found[f"folder-{name}-{layout}-pages"] = partial(_names, NAMES[name], layout, pages)
    for name in ("channels", "times-and-channels", "metaxpress", "split-channels", "row-c"):
        found[f"folder-{name}-channel-1"] = partial(_names, NAMES[name], "auto", channel=1)
        found[f"folder-{name}-single"] = partial(_names, NAMES[name], "auto", single="stacks")
    found |= {f"folder-mixed-{layout}": partial(_mixed, layout) for layout in LAYOUTS}
    for kind in ("ome", "imagej", "tiff"):
        for axes in ("YX", "TYX", "ZYX", "TCYX", "TZCYX", "CZTYX"):
            if (kind, axes) == ("imagej", "CZTYX"):
                continue  # ImageJ has one order of axes
            found[f"written-{kind}-{axes}"] = partial(_written, axes, kind, "uint16" if "C" in axes else "float32")
    return found
