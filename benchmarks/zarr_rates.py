"""OME-Zarr in and out beside TIFF: ``python -m benchmarks.zarr_rates [FOLDER]``; seconds, no device.

A stack of 128 planes of 512 x 512 pixels, smooth with noise as a camera gives it, is written by the product's writers
to the folder (under a new name, brought to the disk) and read through its `Source` from the page cache, eight planes at
a time.
"""

from __future__ import annotations

import math
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from xcorr_app.io import StackMetadata, discover
from xcorr_app.io.cached_planes import read_planes
from xcorr_app.io.outputs import new_writer
from xcorr_app.io.source import plane_positions
from xcorr_app.io.writing.atomic import remove_output

SHAPE = (128, 512, 512)
REPEATS = 5
AT_ONCE = 8
KINDS = ("a.ome.tif", "a.ome.zarr")


def images() -> np.ndarray:
    """Spots under photon noise, uint16."""
    rng = np.random.default_rng(0)
    rows, columns = np.mgrid[:512, :512]
    clean = 200 + 150 * np.sin(rows / 9) * np.cos(columns / 13)
    return rng.poisson(np.broadcast_to(clean, SHAPE)).astype(np.uint16)


def write(path: Path, data: np.ndarray, compression: str | None) -> None:
    """Write the stack."""
    with new_writer(path, StackMetadata("TYX", data.shape, data.dtype, "ome"), compression=compression) as writer:
        for plane in data:
            writer.write(plane)


def read(path: Path) -> None:
    """Read the stack."""
    (spec,) = discover(path).series
    with spec.open() as source:
        positions = plane_positions(source.metadata)
        out = np.empty((AT_ONCE, *SHAPE[1:]), np.uint16)
        for start in range(0, len(positions), AT_ONCE):
            assert not read_planes(source, positions[start : start + AT_ONCE], out)


def seconds(work: Callable[[], None]) -> float:
    """Seconds that it takes."""
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def main(folder: Path) -> None:
    """Print a table of rates in MB of pixels a second: the best of some rounds, in which the kinds take turns."""
    data = images()
    print("| kind | compression | written, MB/s | of TIFF | read, MB/s | of TIFF |\n|---|---|---|---|---|---|")
    for compression in (None, "zstd"):
        best = dict.fromkeys(KINDS, (math.inf, math.inf))
        for _ in range(REPEATS):
            for name in KINDS:
                path = folder / name
                written = seconds(partial(write, path, data, compression))
                times = written, min(seconds(partial(read, path)) for _ in range(REPEATS))
                best[name] = (min(best[name][0], times[0]), min(best[name][1], times[1]))
                remove_output(path)
        for name, times in best.items():
            (out, out_share), (back, back_share) = (
                (data.nbytes / 1e6 / mine, first / mine) for mine, first in zip(times, best[KINDS[0]], strict=True)
            )
            print(f"| {name[2:]} | {compression} | {out:.0f} | {out_share:.2f} | {back:.0f} | {back_share:.2f} |")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as place:
            main(Path(place))
