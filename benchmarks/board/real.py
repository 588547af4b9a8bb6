"""Real sets whose answer is known, from ../shared/data beside the checkout; its README says where each comes from.

Each is measured as the cases are, once; seconds beside those of other programs are those of :mod:`benchmarks.real`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tifffile
from numpy.typing import NDArray
from skimage import io

from benchmarks.board.cases import Case
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


def _case(name: str, make: Callable[[Path], list[Series]], folder: str = "", **asked: float) -> Case:
    """Make a case of the one seed there is, without series where the folder is absent."""
    at = DATA / (folder or name)
    ways = ("first",) if name.startswith(("padfield", "openpiv")) else ("first", "template")
    asked |= {} if "masked" in name else {"over_base": 5.0}
    return Case(f"real/{name}", lambda _: make(at) if at.is_dir() else [], ways, asked, calibrated=False)


REAL = (
    _case("pc12", _cells),
    _case("padfield", _partly_valid, "padfield_masked"),
    _case("padfield masked", lambda at: _partly_valid(at, mask="nonzero"), "padfield_masked"),
    _case("dice_pixel_shift", _speckle),
    _case("dic_sample5", _challenge),
    _case("dic_sample14", _challenge),
    # A cell divides on a stage that stands still.
    _case("mitosis", lambda at: [Series(_read(_numbered(at, "*_t*.tif")), np.zeros((51, 2)))], "mitosis_folder"),
    # What is known is not known to half a pixel: no frame is surely missed.
    _case("sima_2p", _two_photon, rms=0.5, missed=20),
    _case("dice_rotation20", _rotation),
    # Particles in a flow: its mean, to some tenths.
    _case("openpiv_test1", lambda at: [Series(_read(sorted(at.glob("*.bmp"))), np.array([(0, 0), (-5.2, 0.15)]))]),
)
