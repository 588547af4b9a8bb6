"""Runs of the program on small files: what it prints, and every file that it leaves."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import imagecodecs
import numpy as np

from tests.batch.movies import xcorr
from tests.golden import outputs, scenes
from xcorr_app import StackMetadata, write_stack

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


def _pattern(folder: Path) -> Path:
    write_stack(folder / "pattern.tif", scenes.over_a_pattern().round().astype(np.uint16))
    return folder / "pattern.tif"


def _colour(folder: Path) -> Path:
    image = np.random.default_rng(6).integers(1, 256, (17, 22, 3), np.uint8)
    (folder / "slide.png").write_bytes(imagecodecs.png_encode(image))
    return folder / "slide.png"


def _run(command: str, make: Callable[[Path], Path], *words: Any) -> Any:
    """Words that name files of `_file` become their paths."""
    with tempfile.TemporaryDirectory(prefix="golden-") as name:
        folder = Path(name) / "here"
        folder.mkdir()
        said = [_file(folder, word) for word in words]
        run = xcorr(command, make(folder), *said, "-o", folder / "out", "--device", "cpu")
        return {
            "code": run.code,
            "printed": _printed(run.stdout, folder, seconds=command == "filter"),
            "errors": outputs.text(run.stderr, folder / "out"),
            "files": outputs.left_by(folder / "out"),
        }


def _printed(said: str, folder: Path, *, seconds: bool) -> Any:
    said = "\n".join(line for line in said.splitlines() if "pace" not in line)
    if seconds:  # a column before the last
        said = re.sub(r"[\d.]+ +(good|failed)", r"\1", said)
    return outputs.text(said, folder / "out")


def _file(folder: Path, word: Any) -> Any:
    rng = np.random.default_rng(9)
    arrays = {"@flat": rng.uniform(0.5, 2, (69, 78)), "@dark": rng.uniform(0, 9, (69, 78))}
    arrays["@mask"] = (rng.random((139, 147)) < 0.98).astype(np.uint8)
    if word in arrays:
        write_stack(folder / f"{word[1:]}.tif", arrays[word].astype(np.float32))
        return folder / f"{word[1:]}.tif"
    texts = {"@taps": "1,2,1\n2,4,3\n", "@matrix": "a,.5,.2,-.3\nb,0,1,-.2\n", "@spectra": "x,y\n9,1\n4,5\n0,7\n"}
    if word in texts:
        (folder / f"{word[1:]}.csv").write_text(texts[word])
        return folder / f"{word[1:]}.csv"
    return word


ALIGN: dict[str, tuple[Callable[[Path], Path], Words]] = {
    "plain": (_movie, ("--verbose",)),
    "template": (
        _movie, ("--reference", "template", "--interpolation", "cubic", "--border", "crop", "--report", "quick")
    ),
    "odd": (_odd, ("--verbose",)),
    "odd-dropped": (_odd, ("--doubtful", "drop", "--report", "none", "--compression", "zlib")),
    "odd-left": (_odd, ("--doubtful", "leave", "--border", "nearest", "--report", "none")),
    "odd-applied": (_odd, ("--doubtful", "apply", "--report", "quick", "--format", "ome-tiff")),
    "channels": (_channels, ("--align-channel", "sum")),
    "channel": (_channels, ("--align-channel", "1", "--interpolation", "fourier", "--report", "none")),
    "one-channel": (_channels, ("--channel", "1", "--report", "none", "--verify", "2")),
    "pages": (_pages, ("--max-shift", "8,7")),
    "mean": (_pages, ("--reference", "mean", "--no-apply", "--report", "none", "--max-shift", "8")),
    "corrected": (
        _movie, ("--flat", "@flat", "--dark", "@dark", "--background", "median", "--correct", "--report", "none")
    ),
    "patches": (_bent, ("--motion", "patches", "--patch", "48", "--field-csv", "--field-ome-tiff")),
    "turning": (_turning, ("--motion", "rigid")),
    "masked": (
        _movie, ("--mask", "threshold:90", "--roi", "3:66,4:74", "--prefilter", "gaussian:1", "--report", "none")
    ),
    "several": (_several, ("--verbose", "--max-shift", "12")),
    "depth": (_depth, ("--reference", "pairs:2", "--smooth-time", "3")),
    "previous": (_odd, ("--reference", "previous", "--min-score", "0.99", "--max-sigma", "0.01")),
    "local": (_pages, ("--contrast", "local:5", "--subpixel", "icgn", "--reference", "1", "--memory", "1MB")),
    "dry": (_movie, ("--dry-run",)),
    "zarr": (_movie, ("--format", "ome-zarr", "--pyramid", "2", "--report", "none")),
}  # fmt: skip
OTHERS: dict[str, tuple[str, Callable[[Path], Path], Words]] = {
    "filter-gaussian": ("filter", _movie, ("--gaussian", "1.2,0.7")),
    "filter-sobel": ("filter", _channels, ("--sobel", "y")),
    "filter-taps": ("filter", _pages, ("--taps", "@taps", "--mode", "constant", "--cval", "40", "--dtype", "float32")),
    "filter-bank": ("filter", _odd, ("--bank", "gabor:2,2", "--stride", "3")),
    "filter-derivatives": ("filter", _turning, ("--bank", "derivatives:1.5", "--stride", "4")),
    "filter-schmid": ("filter", _turning, ("--bank", "schmid", "--stride", "9")),
    "filter-leung-malik": ("filter", _turning, ("--bank", "leung-malik", "--stride", "9")),
    "filter-within": ("filter", _colour, ("--box", "3", "--mode", "valid", "--channel", "gray")),
    "field-stack": ("field", _bent, ("--format", "csv", "--format", "vtk", "--format", "npz", "--pictures", "none")),
    "field-previous": (
        "field",
        _bent,
        ("--reference", "previous", "--refine", "icgn", "--mask", "@mask", "--pictures", "none"),
    ),
    "unmix-matrix": ("unmix", _colour, ("--matrix", "@matrix", "--dtype", "float32")),
    "unmix-spectra": ("unmix", _colour, ("--spectra", "@spectra", "--clip")),
    "unmix-stain": ("unmix", _colour, ("--stain", "hed", "--white", "250")),
}


def _unmixed(make: Callable[[Path], Path], *words: Any) -> Any:
    return _run("unmix", lambda folder: _alone(folder, make), *words)


def _alone(folder: Path, make: Callable[[Path], Path]) -> Path:
    """A folder of the file alone, so that results go into a folder as well."""
    (folder / "of").mkdir()
    make(folder / "of")
    return folder / "of"


def _correlated(suffix: str, *words: Any) -> Any:
    stack = scenes.plain()[:4]
    with tempfile.TemporaryDirectory(prefix="golden-") as name:
        folder = Path(name) / "here"
        folder.mkdir()
        np.save(folder / "left.npy", stack[0])
        write_stack(folder / "right.tif", stack[1:])
        (folder / "out").mkdir()
        files = (folder / "left.npy", folder / "right.tif", "-o", folder / "out" / f"found{suffix}")
        run = xcorr("correlate", *files, "--device", "cpu", "--form", "one-to-many", *words)
        printed = outputs.text(run.stdout + run.stderr, folder / "out")
        return {"code": run.code, "printed": printed, "files": outputs.left_by(folder / "out")}


def _applied(*words: Any) -> Any:
    with tempfile.TemporaryDirectory(prefix="golden-") as name:
        folder = Path(name) / "here"
        folder.mkdir()
        movie = _movie(folder)
        rows = "\n".join(f"{t},{1.5 * t},{-0.7 * t}" for t in (0, 1, 2, 4))
        (folder / "shifts.csv").write_text(f"frame,dy,dx\n{rows}\n")
        run = xcorr("apply", folder / "shifts.csv", movie, "-o", folder / "out", "--device", "cpu", *words)
        printed = _printed(run.stdout, folder, seconds=True)
        return {"code": run.code, "printed": printed, "files": outputs.left_by(folder / "out")}


def cases() -> dict[str, Callable[[], Any]]:
    """Every run by its name."""
    found: dict[str, Callable[[], Any]] = {
        f"align-{name}": partial(_run, "align", make, *words) for name, (make, words) in ALIGN.items()
    }
    for name, (command, make, words) in OTHERS.items():
        found[name] = partial(_unmixed, make, *words) if command == "unmix" else partial(_run, command, make, *words)
    for norm in ("zncc", "none", "phase"):
        found[f"correlate-{norm}"] = partial(_correlated, ".tif", "--normalization", norm, "--max-shift", "9,8")
    found["correlate-peaks"] = partial(_correlated, ".csv", "--peaks", "--subpixel", "dft", "--max-shift", "12")
    found["correlate-archive"] = partial(_correlated, ".npz", "--peaks", "--min-overlap", "0.5")
    found["apply-interpolated"] = partial(_applied, "--missing", "interpolate", "--interpolation", "cubic")
    found["apply-inverted"] = partial(_applied, "--missing", "interpolate", "--invert", "--scale", "0.5", "--crop")
    found["apply-refused"] = partial(_applied)
    return found
