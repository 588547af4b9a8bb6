"""Runs of the program on small files: how they end, every file that they leave, tables of shifts and moved pixels."""

import csv
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import imagecodecs
import numpy as np

from tests.batch.movies import xcorr
from tests.golden import scenes
from xcorr_app import StackMetadata, read_stack, write_stack

Words = tuple[Any, ...]


def _movie(folder: Path) -> Path:
    stack = scenes.plain()[:5].round().astype(np.uint16)
    known = StackMetadata("TYX", stack.shape, stack.dtype, "ome", pixel_size=(0.25, 0.2), unit="µm", time_increment=2.0)
    write_stack(folder / "movie.ome.tif", stack, known)
    return folder / "movie.ome.tif"


def _odd(folder: Path) -> Path:
    stack = np.nan_to_num(scenes.odd_frames(), nan=100).round().astype(np.uint8)
    write_stack(folder / "odd.tif", stack)
    return folder / "odd.tif"


def _channels(folder: Path) -> Path:
    one, two = scenes.plain(0.3), scenes.plain(0.1)
    stack = np.stack([one, 200 - two], axis=1)[:4].round().astype(np.uint16)
    known = StackMetadata("TCYX", stack.shape, stack.dtype, "imagej", channel_names=("red", "far red"))
    write_stack(folder / "two.tif", stack, known)
    return folder / "two.tif"


def _pages(folder: Path) -> Path:
    (folder / "pages").mkdir()
    for t, frame in enumerate(scenes.plain(0.2)[:4]):
        image = frame.clip(0, 255).round().astype(np.uint8)
        (folder / "pages" / f"frame{3 * t}.png").write_bytes(imagecodecs.png_encode(image))
    return folder / "pages"


def _bent(folder: Path) -> Path:
    write_stack(folder / "bent.tif", scenes.bent().round().astype(np.uint16))
    return folder / "bent.tif"


def _turning(folder: Path) -> Path:
    write_stack(folder / "turning.tif", scenes.turning()[:3])
    return folder / "turning.tif"


def _several(folder: Path) -> Path:
    """Two stacks of unlike types and a file that is damaged."""
    (folder / "several").mkdir()
    write_stack(folder / "several" / "float.tif", scenes.odd_frames())
    write_stack(folder / "several" / "short.tif", scenes.plain(0.5)[:2].round().astype(np.int16))
    (folder / "several" / "broken.tif").write_bytes((folder / "several" / "short.tif").read_bytes()[:5000])
    return folder / "several"


def _depth(folder: Path) -> Path:
    stack = scenes.plain(0.2)[:4].round().astype(np.uint8)
    known = StackMetadata("ZYX", stack.shape, stack.dtype, "ome", pixel_size=(2.0, 2.0), unit="nm", z_step=5.0)
    write_stack(folder / "depth.ome.tif", stack, known)
    return folder / "depth.ome.tif"


def _colour(folder: Path) -> Path:
    image = np.random.default_rng(6).integers(1, 256, (17, 22, 3), np.uint8)
    (folder / "of").mkdir()
    (folder / "of" / "slide.png").write_bytes(imagecodecs.png_encode(image))
    return folder / "of"


def _run(command: str, make: Callable[[Path], Path], *words: Any) -> Any:
    """Words that name files of `_file` become their paths."""
    with tempfile.TemporaryDirectory(prefix="golden-") as name:
        folder = Path(name)
        said = [_file(folder, word) for word in words]
        run = xcorr(command, make(folder), *said, "-o", folder / "out", "--device", "cpu")
        return {"code": run.code, **_left_by(folder / "out")}


def _left_by(out: Path) -> dict[str, Any]:
    """Names of the files but for records of how far a run has come; shifts and flags in tables; images."""
    files = {path.relative_to(out).as_posix(): path for path in sorted(out.rglob("*")) if path.is_file()}
    shown = [name for name in files if not name.startswith(".xcorr/") and ".ome.zarr/" not in name]
    found: dict[str, Any] = {"files": shown}
    for name in shown:
        if name.endswith("shifts.csv"):
            found[name] = _table(files[name])
        elif name.endswith((".tif", ".tiff")):
            image = read_stack(files[name])
            values = image.data[np.isfinite(image.data)].astype(np.float64)
            kind = image.metadata.axes, str(image.data.dtype), image.data.shape, image.metadata.pixel_size
            found[name] = {"kind": kind, "mean": values.mean()}
    return found


def _table(path: Path) -> dict[str, Any]:
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    shifts = [[float(row[f"applied_{axis}"] or "nan") for axis in ("dy", "dx")] for row in rows]
    return {"columns": list(rows[0]), "shifts": shifts, "flags": [row["flags"] for row in rows]}


def _file(folder: Path, word: Any) -> Any:
    rng = np.random.default_rng(9)
    if word == "@flat":
        write_stack(folder / "flat.tif", rng.uniform(0.5, 2, (69, 78)).astype(np.float32))
        return folder / "flat.tif"
    texts = {"@taps": "1,2,1\n2,4,3\n", "@matrix": "a,.5,.2,-.3\nb,0,1,-.2\n"}
    if word in texts:
        (folder / f"{word[1:]}.csv").write_text(texts[word])
        return folder / f"{word[1:]}.csv"
    return word


ALIGN: dict[str, tuple[Callable[[Path], Path], Words]] = {
    "plain": (_movie, ()),
    "template": (_movie, ("--reference", "template", "--border", "crop", "--report", "quick")),
    "odd-dropped": (_odd, ("--doubtful", "drop", "--report", "none", "--compression", "zlib")),
    "odd-left": (_odd, ("--doubtful", "leave", "--border", "nearest", "--report", "none")),
    "channels": (_channels, ("--channel", "sum", "--report", "none")),
    "one-channel": (_channels, ("--channel", "1", "--report", "none", "--verify", "2")),
    "pages": (_pages, ("--max-shift", "8,7", "--report", "none")),
    "not-applied": (_pages, ("--reference", "mean", "--no-apply", "--report", "none", "--max-shift", "8")),
    "corrected": (_movie, ("--flat", "@flat", "--background", "median", "--correct", "--report", "none")),
    "patches": (_bent, ("--motion", "patches:48", "--report", "none")),
    "turning": (_turning, ("--motion", "rigid", "--report", "none")),
    "several": (_several, ("--max-shift", "12", "--report", "none")),
    "depth": (_depth, ("--reference", "pairs:2", "--report", "none")),
    "explained": (_movie, ("--explain",)),
    "zarr": (_movie, ("--format", "ome-zarr:2", "--report", "none")),
}
OTHERS: dict[str, tuple[str, Callable[[Path], Path], Words]] = {
    "filter-gaussian": ("filter", _movie, ("--gaussian", "1.2,0.7")),
    "filter-taps": (
        "filter",
        _pages,
        ("--taps", "@taps", "--border", "constant", "--cval", "40", "--dtype", "float32"),
    ),
    "filter-bank": ("filter", _odd, ("--bank", "gabor:2,2")),
    "field": ("field", _bent, ("--format", "csv", "--format", "npz", "--pictures", "none")),
    "unmix": ("unmix", _colour, ("--matrix", "@matrix", "--dtype", "float32")),
}


def _applied(*words: Any) -> Any:
    with tempfile.TemporaryDirectory(prefix="golden-") as name:
        folder = Path(name)
        rows = "\n".join(f"{t},{1.5 * t},{-0.7 * t}" for t in (0, 1, 2, 4))
        (folder / "shifts.csv").write_text(f"frame,dy,dx\n{rows}\n")
        run = xcorr("apply", folder / "shifts.csv", _movie(folder), "-o", folder / "out", "--device", "cpu", *words)
        return {"code": run.code, **_left_by(folder / "out")}


def cases() -> dict[str, Callable[[], Any]]:
    """Every run by its name."""
    found: dict[str, Callable[[], Any]] = {
        f"align-{name}": partial(_run, "align", make, *words) for name, (make, words) in ALIGN.items()
    }
    found |= {name: partial(_run, command, make, *words) for name, (command, make, words) in OTHERS.items()}
    found["apply-interpolated"] = partial(_applied, "--missing", "interpolate", "--interpolation", "cubic")
    found["apply-refused"] = partial(_applied)
    return found
