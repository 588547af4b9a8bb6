"""Commands over copies of one stack, whose tables and written stacks must be equal byte for byte."""

import shutil

import numpy as np
import tifffile

from tests.batch.movies import xcorr
from tests.registration.scenes import drifting

_ALIGN = ("align", "--max-shift", "16")
COMMANDS = {
    "align": _ALIGN,
    "align --no-apply": (*_ALIGN, "--no-apply"),
    "align --verify none": (*_ALIGN, "--verify", "none"),
    "align --reference template": (*_ALIGN, "--reference", "template"),
    "align --motion rigid": ("align", "--motion", "rigid"),
    "align --motion patches": (*_ALIGN, "--motion", "patches"),
    "filter": ("filter", "--gaussian", "2"),
    "unmix": ("unmix", "--channel-axis", "T"),
}


def stack_of(frames, side):
    """Frames with photon noise of one scene that drifts within 14 pixels."""
    rng = np.random.default_rng(5)
    drift = np.clip(np.cumsum(rng.integers(-1, 2, (frames, 2)), axis=0), -14, 14)
    return rng.poisson(drifting(drift, (side, side), contrast=400, offset=1700).clip(0)).astype(np.uint16)


def prepared(folder, frames, side):
    """Write the stack that is copied, and the matrix of `unmix`."""
    tifffile.imwrite(folder / "one.tif", stack_of(frames, side), photometric="minisblack")
    np.savetxt(folder / "matrix.csv", np.eye(frames) + 0.1, "%.2f", ",")


def results_of(command, names, folder):
    """Contents of the tables and stacks that a command writes of each, and what it printed on standard error.

    The stack ``one.tif`` of the folder is given under these names, in this order; of one that failed there is nothing.
    """
    for path in (given := folder / "in", out := folder / "out"):
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
    paths = [given / f"{name}.tif" for name in names]
    for path in paths:
        path.hardlink_to(folder / "one.tif")
    matrix = ["--matrix", folder / "matrix.csv"] if command == "unmix" else []
    run = xcorr(*COMMANDS[command], *(paths if len(names) > 1 else [given]), "-o", out, "--device", "cuda", *matrix)
    return {name: _contents(out, name) for name in names}, run.stderr


def _contents(out, name):
    kept = [path for path in sorted(out.glob(f"{name}*/*")) if path.suffix in (".csv", ".tif", ".npz")]
    read = ((path.suffix, path.read_bytes()) for path in kept)
    return tuple(content.replace(name.encode(), b"") if suffix == ".csv" else content for suffix, content in read)
