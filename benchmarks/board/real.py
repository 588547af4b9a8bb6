"""Real sets whose answer is known, from ../shared/data beside the checkout; its README says where each comes from.

Each is measured as the cases are, once; seconds also with ``contrast="none"`` and by a loop over scikit-image.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import tifffile
from numpy.typing import NDArray
from skimage import io

from benchmarks._peers import skimage_phase
from benchmarks.board.measure import measure, seconds_of
from benchmarks.board.scenes import Series

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"


def _read(paths: list[Path]) -> NDArray[Any]:
    return np.stack([tifffile.imread(path) if path.suffix == ".tif" else io.imread(path) for path in paths])


def _numbered(folder: Path, pattern: str) -> list[Path]:
    return sorted(folder.glob(pattern), key=lambda path: int(re.findall(r"\d+", path.stem)[-1]))


def _named(folder: Path, *parts: str) -> NDArray[Any]:
    return _read([next(folder.glob(f"*{part}*")) for part in parts])


def _cells(folder: Path) -> list[Series]:
    """Against TurboReg."""
    known = [(0, 0), (8.52, -0.09), (13.67, 0.12), (15.32, 0.85), (12.45, -0.33)]
    return [Series(tifffile.imread(folder / "pc12-unreg.tif"), np.array(known))]


def _partly_valid(folder: Path, **options: Any) -> list[Series]:
    """Three pairs of which a quarter to a third is valid."""
    options |= {"max_shift": 200, "min_overlap": 0.1}
    shifts = {"X75Y75": (75.0, -75.0), "X-130Y130": (130.0, 130.0), "X130Y130": (130.0, -130.0)}
    return [
        Series(_named(folder, f"Original{name}.", f"Transformed{name}."), np.array([(0, 0), shift]), options=options)
        for name, shift in shifts.items()
    ]


def _speckle(folder: Path) -> list[Series]:
    """Moved by whole pixels."""
    k = np.arange(16.0)
    return [Series(_read([folder / "ref.tif", *_numbered(folder, "def_*.tif")]), -np.stack([k, k], axis=1))]


def _challenge(folder: Path) -> list[Series]:
    """Contrast and noise change; or a displacement along columns that varies, of which the mean is known."""
    if folder.name == "dic_sample5":
        return [Series(_named(folder, "Reference", "-000 ", "-001 "), np.array([(0, 0), (0, 0), (-0.1, -0.1)]))]
    exact = np.loadtxt(folder / "sample14_exact.csv", delimiter=",")[:, [1, 3, 5]].mean(axis=0)
    return [Series(_named(folder, "Reference", " L1 ", " L3 ", " L5 "), -np.outer([0, *exact], [0, 1]))]


def _two_photon(folder: Path) -> list[Series]:
    """Against a hidden Markov model, whose own error is some 0.5 px."""
    known = np.loadtxt(folder / "shifts_hmm.csv", delimiter=",", skiprows=1)[:, 1:]
    return [Series(tifffile.imread(folder / "example.tif").reshape(20, 128, 256), known)]


def _rotation(folder: Path) -> list[Series]:
    """Turned by 20 degrees from frame to frame: of the last alone, which is the first again, a shift is known."""
    known = np.full((19, 2), np.nan)
    known[[0, -1]] = 0
    return [Series(_read(_numbered(folder, "CG_*.tif")), known)]


SETS: dict[str, tuple[str, Callable[[Path], list[Series]]]] = {
    "real/pc12": ("pc12", _cells),
    "real/padfield": ("padfield_masked", _partly_valid),
    "real/padfield masked": ("padfield_masked", lambda folder: _partly_valid(folder, mask="nonzero")),
    "real/dice_pixel_shift": ("dice_pixel_shift", _speckle),
    "real/dic_sample5": ("dic_sample5", _challenge),
    "real/dic_sample14": ("dic_sample14", _challenge),
    # A cell divides on a stage that stands still.
    "real/mitosis": (
        "mitosis_folder",
        lambda folder: [Series(_read(_numbered(folder, "*_t*.tif")), np.zeros((51, 2)))],
    ),
    "real/sima_2p": ("sima_2p", _two_photon),
    "real/dice_rotation20": ("dice_rotation20", _rotation),
    # Particles in a flow: its mean, to some tenths.
    "real/openpiv_test1": (
        "openpiv_test1",
        lambda folder: [Series(_read(sorted(folder.glob("*.bmp"))), np.array([(0, 0), (-5.2, 0.15)]))],
    ),
}


def measure_set(name: str) -> dict[str, dict[str, Any]]:
    """Measure a set in each way; in none where its folder is absent."""
    folder, make = SETS[name]
    if not (DATA / folder).is_dir():
        return {}
    many = make(DATA / folder)
    plain = [replace(series, options={"contrast": "none", **series.options}) for series in many]
    peer = sum(seconds_of(skimage_phase, s.frames[0], frame, 0) for s in many for frame in s.frames[1:])
    beside = {"none": measure("first", plain)["cpu"], "scikit-image": peer}
    ways = ("first",) if len(many[0].frames) < 3 else ("first", "template")
    return {way: measure(way, many) | {"beside": beside} for way in ways}
