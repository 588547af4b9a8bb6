"""What the blocks of the pages name without making it: files in the folder where they run, arrays of their Python."""

import shutil
from pathlib import Path

import numpy as np

import xcorr_app as xc
from tests.batch.movies import movie
from tests.conftest import ROOT

ARRAYS = """
import numpy as np, xcorr_app as xc
from tests.batch.movies import movie as _movie
stack = before = red = raw = _movie((48, 52)).astype(np.float32)
images = stack[None]
result = xc.estimate_shifts(stack, max_shift=6)
after = xc.apply_shifts(stack, result)
movie = np.stack([stack, stack], axis=1)
left, right = stack[:2]
rgb = np.full((8, 8, 3), 200.0)
taps, matrix, bank = np.ones((3, 3)), np.eye(2, 4), np.ones((2, 3, 3))
"""


def write_files(folder: Path) -> None:
    """Every file that a page names."""
    (folder / "sample_data").symlink_to(ROOT / "sample_data")
    frames = movie()
    for name in ("movie", "green", "red", "cells", "reference", "FOLDER/green", "RAW_FOLDER/green"):
        (folder / name).parent.mkdir(exist_ok=True)
        xc.write_stack(folder / f"{name}.tif", frames)
    xc.write_stack(folder / "reference.tif", frames[0])
    xc.write_stack(folder / "red_binned.tif", frames.reshape(4, 20, 2, 24, 2).mean(axis=(2, 4)).astype(np.uint16))
    large = movie((96, 96))
    for name, frame in zip(("a", "b"), large, strict=False):
        xc.write_stack(folder / f"{name}.tif", frame)
        np.save(folder / f"{name}.npy", frame[:24, :24].astype(np.float32))
    np.save(folder / "lefts.npy", frames[:2, :24, :24].astype(np.float32))
    np.save(folder / "rights.npy", frames[2:, :24, :24].astype(np.float32))
    channels = np.stack([frames, frames[::-1]], axis=1)
    xc.write_stack(folder / "cells.ome.tif", channels, xc.StackMetadata("TCYX", channels.shape, channels.dtype, "ome"))
    shutil.copy(folder / "cells.ome.tif", folder / "two.ome.tif")
    import tifffile

    tifffile.imwrite(folder / "slide.tif", np.full((32, 32, 3), 180, np.uint8), photometric="rgb")
    (folder / "spectra.csv").write_text("DAPI,GFP\n1,0.2\n0.1,1\n")
    (folder / "m.csv").write_text("1,0.5\n0,1\n")
    (folder / "taps.csv").write_text("1,2,1\n2,4,2\n1,2,1\n")
