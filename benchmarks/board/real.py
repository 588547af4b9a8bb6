"""Real sets whose answer is known, from ../shared/data beside the checkout; its README says where each comes from.

Each is measured at the defaults, with ``contrast="none"``, by correlation and sub-pixel fit alone (base), and by a loop
over scikit-image's ``phase_cross_correlation``, once each; seconds are of processor time.
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
from skimage.registration import phase_cross_correlation

from benchmarks._peers import UPSAMPLE
from benchmarks.board.measure import measure, seconds_of
from benchmarks.board.scenes import Array, Series

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"


def _numbered(folder: Path, pattern: str) -> list[Path]:
    def number(path: Path) -> int:
        return int(re.findall(r"\d+", path.stem)[-1])

    return sorted(folder.glob(pattern), key=number)


def _read(paths: list[Path]) -> NDArray[Any]:
    return np.stack([tifffile.imread(path) if path.suffix == ".tif" else io.imread(path) for path in paths])


def _named(folder: Path, *parts: str) -> NDArray[Any]:
    return _read([next(folder.glob(f"*{part}*")) for part in parts])


def pc12(folder: Path) -> list[Series]:
    """Cells, against TurboReg."""
    known = np.array([(0, 0), (8.52, -0.09), (13.67, 0.12), (15.32, 0.85), (12.45, -0.33)])
    return [Series(tifffile.imread(folder / "pc12-unreg.tif"), known)]


def padfield(folder: Path, **options: Any) -> list[Series]:
    """Three pairs of which a quarter to a third is valid."""
    shifts = {"X75Y75": (75, -75), "X-130Y130": (130, 130), "X130Y130": (130, -130)}
    return [
        Series(
            np.stack([io.imread(folder / f"{which}{name}.png") for which in ("Original", "Transformed")]),
            np.array([(0.0, 0.0), shift]),
            options={"max_shift": 200, "min_overlap": 0.1, **options},
        )
        for name, shift in shifts.items()
    ]


def speckle(folder: Path) -> list[Series]:
    """Moved by whole pixels."""
    k = np.arange(16.0)
    return [Series(_read([folder / "ref.tif", *_numbered(folder, "def_*.tif")]), -np.stack([k, k], axis=1))]


def sample5(folder: Path) -> list[Series]:
    """Contrast and noise change."""
    known = np.array([(0, 0), (0, 0), (-0.1, -0.1)])
    return [Series(_named(folder, "Reference", "-000 ", "-001 "), known)]


def sample14(folder: Path) -> list[Series]:
    """A displacement along columns that varies: its mean."""
    exact = np.loadtxt(folder / "sample14_exact.csv", delimiter=",")[:, [1, 3, 5]].mean(axis=0)
    known = np.zeros((4, 2))
    known[1:, 1] = -exact
    return [Series(_named(folder, "Reference", " L1 ", " L3 ", " L5 "), known)]


def mitosis(folder: Path) -> list[Series]:
    """A cell that divides on a stage that stands still."""
    return [Series(_read(_numbered(folder, "*_t*.tif")), np.zeros((51, 2)))]


def two_photon(folder: Path) -> list[Series]:
    """Against a hidden Markov model, whose own error is some 0.5 px."""
    known = np.loadtxt(folder / "shifts_hmm.csv", delimiter=",", skiprows=1)[:, 1:]
    return [Series(tifffile.imread(folder / "example.tif").reshape(20, 128, 256), known)]


def rotation(folder: Path) -> list[Series]:
    """Turned by 20 degrees from frame to frame: only of the last, which is the first again, a shift is known."""
    known = np.full((19, 2), np.nan)
    known[[0, -1]] = 0
    return [Series(_read(_numbered(folder, "CG_*.tif")), known)]


def flow(folder: Path) -> list[Series]:
    """Particles in a flow: its mean, to some tenths."""
    return [Series(_read(sorted(folder.glob("*.bmp"))), np.array([(0, 0), (-5.2, 0.15)]))]


SETS: dict[str, tuple[str, Callable[[Path], list[Series]]]] = {
    "real/pc12": ("pc12", pc12),
    "real/padfield": ("padfield_masked", padfield),
    "real/padfield masked": ("padfield_masked", lambda folder: padfield(folder, mask="nonzero")),
    "real/dice_pixel_shift": ("dice_pixel_shift", speckle),
    "real/dic_sample5": ("dic_sample5", sample5),
    "real/dic_sample14": ("dic_sample14", sample14),
    "real/mitosis": ("mitosis_folder", mitosis),
    "real/sima_2p": ("sima_2p", two_photon),
    "real/dice_rotation20": ("dice_rotation20", rotation),
    "real/openpiv_test1": ("openpiv_test1", flow),
}


def measure_set(name: str) -> dict[str, dict[str, Any]]:
    """Measure a set in each way; in none where its folder is absent."""
    folder, make = SETS[name]
    if not (DATA / folder).is_dir():
        return {}
    many = make(DATA / folder)
    plain = [replace(series, options={"contrast": "none", **series.options}) for series in many]
    peer = sum(seconds_of(by_scikit_image, series.frames) for series in many)
    beside = {"none": measure("first", plain)["cpu"], "scikit-image": peer}
    ways = ("first",) if len(many[0].frames) < 3 else ("first", "template")
    return {way: measure(way, many) | {"beside": beside} for way in ways}


def by_scikit_image(frames: NDArray[Any]) -> Array:
    """Shifts of all frames by a loop over scikit-image's phase correlation."""
    found = [phase_cross_correlation(frames[0], frame, upsample_factor=UPSAMPLE)[0] for frame in frames[1:]]
    return np.array(found)
