"""Folders of oddly named files as they are found and put together: which files are one stack, along which axes."""

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tests.io.samples import write_plain
from xcorr_app.errors import XcorrError
from xcorr_app.io import discover

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


def _names(names: list[str], pages: int = 1, **how: Any) -> Any:
    with tempfile.TemporaryDirectory(prefix="golden-") as name:
        folder = Path(name) / "movie"
        folder.mkdir()
        for number, each in enumerate(names):
            planes = np.arange(pages)[:, None, None] * 100 + np.full((pages, 4, 5), 1 + number)
            write_plain(folder / f"{each}.tif", planes.astype(np.uint16))
        try:
            found = discover([folder], "auto", **how)
        except XcorrError:
            return "refused"
        told: dict[str, Any] = {"failures": len(found.failures)}
        for spec in found.series:
            with spec.open() as source:
                sizes = source.sizes
                planes = [(t, z, c) for t in range(sizes["T"]) for z in range(sizes["Z"]) for c in range(sizes["C"])]
                origins = [source.origin(*each) for each in planes]
                told[spec.name] = {
                    "sizes": [source.metadata.axes, sizes],
                    "planes": " ".join(f"{path.stem}:{page}" for path, page in origins),
                }
        return told


def cases() -> dict[str, Callable[[], Any]]:
    """Every folder by its name."""
    found: dict[str, Callable[[], Any]] = {f"folder-{name}": partial(_names, names) for name, names in NAMES.items()}
    found |= {f"folder-{name}-pages": partial(_names, NAMES[name], pages) for name, pages in PAGES.items()}
    for name in ("times-and-channels", "metaxpress", "row-c"):
        found[f"folder-{name}-channel-1"] = partial(_names, NAMES[name], channel=1)
        found[f"folder-{name}-single"] = partial(_names, NAMES[name], single="stacks")
    return found
